package volume

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// ratePeriod: the longest time for which a provider was seen to allow no
// further change of a volume (EBS, one change in six hours).
const ratePeriod = 6 * time.Hour

// offline: the driver says that it grows no volume in use. A changed wish is
// still asked for, since the claim follows it once the pod is gone.
func offline(e Evidence) (Standing, bool) {
	said, offline := saidOffline(e)
	if _, grown := controllerDone(*e.Claim); grown || !offline {
		return Standing{}, false
	}
	standing := Standing{
		Phase: v1alpha1.StorageOfflineRequired, Hold: plan.Blocked, Reason: v1alpha1.ReasonOfflineExpansionRequired,
		Note: fmt.Sprintf("claim %s: its driver grows a volume only while no pod uses it (it said: %s); with spec.storage.expansion.offlinePolicy RollingRestart members are stopped for that one after the other, with Manual it is yours to stop them; until then the volume keeps its %s",
			e.Claim.Name, said, e.Claim.Capacity.String()),
	}
	return askIfSmaller(e, standing), true
}

// saidOffline is what the driver or its resizer said of a volume in use, and
// whether they did. The driver's code stays on the claim; the resizer's own
// refusals to try again come as events only.
func saidOffline(e Evidence) (string, bool) {
	failure, failed := e.Claim.Is(corev1.PersistentVolumeClaimControllerResizeError)
	if failed && strings.Contains(failure.Message, "FailedPrecondition") {
		return shortened(failure.Message), true
	}
	if e.Failure != nil && strings.Contains(e.Failure.Message, "only supports offline expansion") {
		return shortened(e.Failure.Message), true
	}
	return "", false
}

// limited: the provider allows no further change of the volume for some time.
// The resizer tries again by itself, so that nothing needs doing.
func limited(e Evidence) (Standing, bool) {
	said, since, limited := saidLimited(e)
	if !limited {
		return Standing{}, false
	}
	next := since.Add(ratePeriod)
	for !next.After(e.Now) {
		next = next.Add(ratePeriod)
	}
	return askIfSmaller(e, Standing{
		Phase: v1alpha1.StorageRetrying, Hold: plan.Wait, Reason: v1alpha1.ReasonExpansionRateLimited, Look: plan.LookWorld,
		NextEligible: next,
		Note: fmt.Sprintf("claim %s: the provider allows no further change of the volume for the moment (it said: %s); the driver's resizer tries again by itself, and the growth should be through by %s",
			e.Claim.Name, said, next.UTC().Format(time.RFC3339)),
	}), true
}

func saidLimited(e Evidence) (said string, since time.Time, limited bool) {
	if failure, failed := e.Claim.Is(corev1.PersistentVolumeClaimControllerResizeError); failed {
		if !limitsRate(failure.Message) {
			return "", time.Time{}, false
		}
		return shortened(failure.Message), firstKnown(failure.Since, e.Since, e.Now), true
	}
	if e.Failure != nil && limitsRate(e.Failure.Message) {
		return shortened(e.Failure.Message), firstKnown(e.Failure.First, e.Since, e.Now), true
	}
	return "", time.Time{}, false
}

// rateTexts are how providers say that a volume was changed too recently, in
// lower case. All words of a row must be there.
var rateTexts = [][]string{
	{"volumemodificationrateexceeded"},
	{"modification rate"},
	{"maximum modification"},
	{"cooldown"},
	{"cool-down"},
	{"6 hours"},
	{"limitexceeded", "modif"},
}

func limitsRate(message string) bool {
	lower := strings.ToLower(message)
	return slices.ContainsFunc(rateTexts, func(words []string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(lower, word) })
	})
}

// retrying: the resizer and the kubelet repeat failed attempts by themselves.
func retrying(e Evidence) (Standing, bool) {
	failure, failed := e.Claim.Is(corev1.PersistentVolumeClaimControllerResizeError)
	if !failed {
		failure, failed = e.Claim.Is(corev1.PersistentVolumeClaimNodeResizeError)
	}
	if !failed {
		return Standing{}, false
	}
	standing := Standing{
		Phase: v1alpha1.StorageRetrying, Hold: plan.Wait, Reason: v1alpha1.ReasonExpansionRetrying, Look: plan.LookWorld,
		Note: fmt.Sprintf("claim %s: growing failed and is being repeated: %s", e.Claim.Name, shortened(failure.Message)),
	}
	if stalled(e, failure.Since) {
		standing.Reason = v1alpha1.ReasonExpansionStalled
		standing.Note = fmt.Sprintf("claim %s: growing has failed for more than %s: %s; it is still being repeated, see the log of the driver's resizer",
			e.Claim.Name, stallPatience, shortened(failure.Message))
	}
	return askIfSmaller(e, standing), true
}

func firstKnown(times ...time.Time) time.Time {
	for _, known := range times {
		if !known.IsZero() {
			return known
		}
	}
	return time.Time{}
}

// quoted is the message of a condition, to follow a sentence.
func quoted(claim state.Claim, condition corev1.PersistentVolumeClaimConditionType) string {
	if found, is := claim.Is(condition); is && found.Message != "" {
		return " (it said: " + shortened(found.Message) + ")"
	}
	return ""
}

// toldBy is the message of an event, to follow a sentence.
func toldBy(event *state.ClaimEvent) string {
	if event == nil || event.Message == "" {
		return ""
	}
	return " (its newest event says: " + shortened(event.Message) + ")"
}

// longestQuote bounds what drivers say, in bytes: some quote whole requests.
const longestQuote = 400

func shortened(message string) string {
	if len(message) <= longestQuote {
		return message
	}
	return strings.ToValidUTF8(message[:longestQuote], "") + " …"
}
