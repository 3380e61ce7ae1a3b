package volume

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for what, row := range standings {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := grown()
			row.edit(&e)
			standing := Classify(e)
			got := verdict{Phase: standing.Phase, Hold: standing.Hold, Reason: standing.Reason}
			if standing.Ask != nil {
				got.Ask = standing.Ask.String()
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("standing differs (-want +got):\n%s\n%s", diff, standing.Note)
			}
			if standing.Note == "" {
				t.Error("the standing has no sentence")
			}
		})
	}
}

// Each phase of a single volume is produced by some row.
func TestEveryPhaseHasARow(t *testing.T) {
	t.Parallel()
	seen := map[v1alpha1.StoragePhase]bool{}
	for _, row := range standings {
		seen[row.want.Phase] = true
	}
	for _, phase := range []v1alpha1.StoragePhase{
		v1alpha1.StorageMissing, v1alpha1.StorageTerminating, v1alpha1.StorageLost, v1alpha1.StorageUnbound,
		v1alpha1.StorageRollingBack, v1alpha1.StorageSatisfied, v1alpha1.StorageInfeasibleController,
		v1alpha1.StorageInfeasibleNode, v1alpha1.StorageOfflineRequired, v1alpha1.StorageFileSystemPending,
		v1alpha1.StorageRetrying, v1alpha1.StorageControllerResizing, v1alpha1.StorageRejected, v1alpha1.StorageRequesting,
	} {
		if !seen[phase] {
			t.Errorf("no row of TestClassify is in phase %s", phase)
		}
	}
}

// Who waits for a person says what that person shall do.
func TestBlockedVerdictsSayWhy(t *testing.T) {
	t.Parallel()
	for what, row := range standings {
		e := grown()
		row.edit(&e)
		if standing := Classify(e); standing.Hold == plan.Blocked && len(standing.Note) < 30 {
			t.Errorf("%s: the sentence is too short to help: %q", what, standing.Note)
		}
	}
}

// Evidence of any kind gives a standing with a phase and a sentence, and no
// size below what the claim has.
func TestClassifyIsTotal(t *testing.T) {
	t.Parallel()
	statuses := []string{"", resizeControllerInProgress, resizeControllerInfeasible, resizeNodePending, resizeNodeInProgress, resizeNodeInfeasible, "Pondering"}
	kinds := []corev1.PersistentVolumeClaimConditionType{resizing, fsPending, controllerErr, nodeErr, "Unused"}
	rapid.Check(t, func(t *rapid.T) {
		e := grown()
		gibibytes := func(what string) resource.Quantity {
			return *resource.NewQuantity(int64(rapid.IntRange(0, 4).Draw(t, what))<<30, resource.BinarySI)
		}
		e.Desired, e.Claim.Requested, e.Claim.Capacity = gibibytes("desired"), gibibytes("requested"), gibibytes("capacity")
		e.Claim.ResizeStatus = rapid.SampledFrom(statuses).Draw(t, "status")
		e.Claim.Phase = rapid.SampledFrom([]corev1.PersistentVolumeClaimPhase{"", corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost}).Draw(t, "phase")
		for _, kind := range rapid.SliceOf(rapid.SampledFrom(kinds)).Draw(t, "conditions") {
			e.Claim.Conditions = append(e.Claim.Conditions, condition(kind, "words", time.Minute))
		}
		standing := Classify(e)
		if standing.Phase == "" || standing.Note == "" || standing.Reason == "" {
			t.Fatalf("a standing without words: %+v", standing)
		}
		if standing.Ask == nil {
			return
		}
		if standing.Ask.Cmp(e.Claim.Capacity) <= 0 {
			t.Fatalf("asks for %s of a volume of %s", standing.Ask.String(), e.Claim.Capacity.String())
		}
		if standing.Ask.Cmp(e.Claim.Requested) < 0 && !infeasibleController(*e.Claim) {
			t.Fatalf("lowers a request that is not impossible: %+v", standing)
		}
	})
}

// A rate limit is told with the time by which it is over, and that is never past.
func TestARateLimitHasAnEnd(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct{ age, want time.Duration }{
		"just now":        {0, 6 * time.Hour},
		"an hour ago":     {time.Hour, 5 * time.Hour},
		"six hours ago":   {6 * time.Hour, 6 * time.Hour},
		"half a day more": {13 * time.Hour, 5 * time.Hour},
	} {
		e := grown()
		e.Claim.Requested = size("2Gi")
		e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "modification rate", row.age)}
		if got := Classify(e).NextEligible.Sub(noon); got != row.want {
			t.Errorf("%s: it ends after %s, want %s", what, got, row.want)
		}
	}
}

// What stands still is explained by what was heard of it last.
func TestAStallQuotesTheNewestEvent(t *testing.T) {
	t.Parallel()
	e := grown()
	e.Claim.Requested, e.Since = size("2Gi"), noon.Add(-time.Hour)
	e.Failure = &state.ClaimEvent{Message: "the pool is full " + strings.Repeat("x", 5000)}
	standing := Classify(e)
	if !strings.Contains(standing.Note, "the pool is full") || len(standing.Note) > 1000 {
		t.Errorf("it says, in %d bytes: %.200s", len(standing.Note), standing.Note)
	}
}
