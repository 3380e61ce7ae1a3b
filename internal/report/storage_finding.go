package report

import (
	"fmt"
	"slices"
	"strings"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
)

var (
	// hardReasons are the reasons that do not go away by waiting, the worst first.
	hardReasons = []string{
		v1alpha1.ReasonForeignVolume, v1alpha1.ReasonVolumeUnavailable, v1alpha1.ReasonStorageClassMissing, v1alpha1.ReasonObjectRefused,
		v1alpha1.ReasonExpansionInfeasible, v1alpha1.ReasonStorageClassNotExpandable, v1alpha1.ReasonQuotaExceeded,
		v1alpha1.ReasonLimitRangeExceeded, v1alpha1.ReasonExpansionRefused, v1alpha1.ReasonOfflineExpansionRequired,
		v1alpha1.ReasonExpansionStalled, v1alpha1.ReasonConfigRefused, v1alpha1.ReasonDowngradeRefused,
	}
	// softReasons are troubles that pass, the longest first.
	softReasons = []string{v1alpha1.ReasonExpansionRateLimited, v1alpha1.ReasonExpansionRetrying}
)

// hard says whether a reason does not go away by waiting.
func hard(reason string) bool { return slices.Contains(hardReasons, reason) }

// severity orders reasons, the worst first.
func severity(reason string) int {
	all := slices.Concat(hardReasons, softReasons)
	if at := slices.Index(all, reason); at >= 0 {
		return at
	}
	return len(all)
}

// storageFinding says whether every volume has the size asked for. What does not
// go away by waiting comes first, the worst of it.
func storageFinding(in cluster.Input, p plan.Plan, o plan.Outcome, storage *v1alpha1.StorageStatus) (bool, finding) {
	if storage == nil {
		return true, finding{v1alpha1.ReasonStorageDisabled, "the cluster is ephemeral: its data lives and dies with its pods"}
	}
	if stalled, is := stalledStops(p); is {
		return false, stalled
	}
	volumes := volumesOf(in)
	if told, found := worse(refusedGrowth(in, p, o), worstVolumes(in, p, volumes, hardReasons)); found {
		return false, told
	}
	if told := worstVolumes(in, p, volumes, softReasons); told.reason != "" {
		return false, told
	}
	pending := pendingVolumes(in)
	switch step, asked := p.Step("sizeNotBelowCapacity"); {
	case growthIn(in, p, o).waits:
		return false, finding{v1alpha1.ReasonVolumeExpanding, expandingMessage(in, volumes)}
	case len(pending) > 0:
		return false, finding{v1alpha1.ReasonVolumesPending, "waiting for the volumes of claims " + strings.Join(firstFew(pending), ", ")}
	case storage.ExpandingSince != nil:
		// The claims were seen before their nodes' word of them. It ends when
		// all agree, so that it ends once.
		return false, finding{v1alpha1.ReasonVolumeExpanding, expandingMessage(in, volumes)}
	case asked && step.Hold == plan.Blocked:
		return true, finding{step.Reason, step.Note}
	case storage.ExpandedAt != nil:
		return true, finding{v1alpha1.ReasonVolumeExpanded, sizesMessage(storage, len(volumes), "have grown to")}
	}
	return true, finding{v1alpha1.ReasonVolumesBound, sizesMessage(storage, len(volumes), "have")}
}

func worse(a, b finding) (finding, bool) {
	if a.reason == "" || b.reason != "" && severity(b.reason) < severity(a.reason) {
		return b, b.reason != ""
	}
	return a, true
}

// refusedGrowth is why a growth was not begun, if that is so.
func refusedGrowth(in cluster.Input, p plan.Plan, o plan.Outcome) finding {
	if refusal, refused := cluster.RefusalIn(o); refused {
		return finding{refusal.Reason, cluster.RefusalNote(refusal)}
	}
	if step, asked := p.Step(cluster.RuleGrowthPossible); asked && step.Hold == plan.Blocked {
		return finding{step.Reason, step.Note}
	}
	if step, asked := p.Step(cluster.RuleSizesCurrent); asked && step.Hold == plan.Blocked {
		if refused, is := cluster.RefusedGrowth(in); is { // beside others that go on
			return finding{refused.Reason, refused.Note}
		}
	}
	return finding{}
}

// worstVolumes is the worst of some reasons among the volumes: which ones have it,
// and what is to be done. It is empty when none has any.
func worstVolumes(in cluster.Input, p plan.Plan, volumes []v1alpha1.VolumeStatus, reasons []string) finding {
	for _, reason := range reasons {
		if carriedOut(in, p, reason) {
			continue
		}
		var names []string
		message := ""
		for _, volume := range volumes {
			if volume.Reason != reason {
				continue
			}
			if len(names) == 0 {
				message = volume.Message
			}
			names = append(names, volume.Claim)
		}
		if len(names) > 0 {
			return finding{reason, fmt.Sprintf("%d of %d volumes (%s): %s%s",
				len(names), len(volumes), strings.Join(firstFew(names), ", "), message, othersLeft(in))}
		}
	}
	return finding{}
}

// othersLeft says how many volumes were left alone on account of others.
func othersLeft(in cluster.Input) string {
	left := 0
	for _, member := range in.State.Members {
		if member.Wanted && behind(in, member) && untouched(in, member) {
			left++
		}
	}
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("; %d volumes that shall grow as well were left alone", left)
}

func expandingMessage(in cluster.Input, volumes []v1alpha1.VolumeStatus) string {
	var rest []string
	var from, to *v1alpha1.CapacityRange
	for _, member := range in.State.Members {
		if member.Wanted && behind(in, member) {
			rest = append(rest, fmt.Sprintf("%s %s", member.Claim.Name, member.Claim.Capacity.String()))
			widen(&from, member.Claim.Capacity)
			widen(&to, target(in, member))
		}
	}
	if len(rest) == 0 {
		return fmt.Sprintf("growing to %s: all %d volumes are done", in.Spec.Storage.Size.String(), len(volumes))
	}
	return fmt.Sprintf("growing from %s to %s: %d of %d volumes are done; %s",
		span(*from), span(*to), len(volumes)-len(rest), len(volumes), strings.Join(firstFew(rest), ", "))
}

// sizesMessage tells what the volumes have; it is true also of those that have
// more than was asked for.
func sizesMessage(storage *v1alpha1.StorageStatus, count int, verb string) string {
	has, asked := storage.Capacity, storage.RequestedSize
	switch {
	case has == nil || has.Min.Cmp(*asked) == 0 && has.Max.Cmp(*asked) == 0:
		return fmt.Sprintf("all %d volumes %s %s", count, verb, asked.String())
	case has.Min.Cmp(*asked) > 0:
		return fmt.Sprintf("all %d volumes have %s, more than the %s asked for", count, span(*has), asked.String())
	default:
		return fmt.Sprintf("all %d volumes have %s, some more than the %s asked for", count, span(*has), asked.String())
	}
}

// span is a range in words, and a single size where there is but one.
func span(sizes v1alpha1.CapacityRange) string {
	if sizes.Min.Cmp(sizes.Max) == 0 {
		return sizes.Min.String()
	}
	return sizes.Min.String() + " to " + sizes.Max.String()
}

func pendingVolumes(in cluster.Input) []string {
	var pending []string
	for _, member := range in.State.Members {
		if member.Wanted && (member.Claim == nil || member.Claim.Capacity.IsZero()) {
			pending = append(pending, name.Claim(member.Name))
		}
	}
	return pending
}
