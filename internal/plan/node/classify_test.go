package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// verdict is what a row expects; the sentence is for people.
type verdict struct {
	Phase  v1alpha1.StoragePhase
	Hold   plan.Hold
	Reason string
	Ask    string
}

const (
	resizing      = corev1.PersistentVolumeClaimResizing
	fsPending     = corev1.PersistentVolumeClaimFileSystemResizePending
	controllerErr = corev1.PersistentVolumeClaimControllerResizeError
	nodeErr       = corev1.PersistentVolumeClaimNodeResizeError
)

// Rows start from a bound claim that asks for 1Gi and has 1Gi, while 2Gi are
// desired.
var standings = map[string]struct {
	edit func(*Evidence)
	want verdict
}{
	"no claim": {
		func(e *Evidence) { e.Claim = nil },
		verdict{v1alpha1.StorageMissing, plan.Wait, v1alpha1.ReasonVolumesPending, ""},
	},
	"a claim on its way out is not touched, though too small": {
		func(e *Evidence) { e.Claim.Terminating = true },
		verdict{v1alpha1.StorageTerminating, plan.Wait, v1alpha1.ReasonVolumeUnavailable, ""},
	},
	"a claim that lost its volume": {
		func(e *Evidence) { e.Claim.Phase = corev1.ClaimLost },
		verdict{v1alpha1.StorageLost, plan.Blocked, v1alpha1.ReasonVolumeUnavailable, ""},
	},
	"an unbound claim waits, though too small: growing it would be refused": {
		func(e *Evidence) { e.Claim.Phase = corev1.ClaimPending; e.Claim.Capacity = resource.Quantity{} },
		verdict{v1alpha1.StorageUnbound, plan.Wait, v1alpha1.ReasonVolumesPending, ""},
	},
	"an unbound claim of a class that does not exist": {
		func(e *Evidence) {
			e.Claim.Phase = corev1.ClaimPending
			e.Class = state.Seen(state.Class{Name: "fast"})
		},
		verdict{v1alpha1.StorageUnbound, plan.Blocked, v1alpha1.ReasonStorageClassMissing, ""},
	},
	"an unbound claim of a class that may not be read": {
		func(e *Evidence) {
			e.Claim.Phase = corev1.ClaimPending
			e.Class = state.Unknown[state.Class]("forbidden")
		},
		verdict{v1alpha1.StorageUnbound, plan.Wait, v1alpha1.ReasonVolumesPending, ""},
	},
	"an unbound claim without a class": {
		func(e *Evidence) { e.Claim.Phase = corev1.ClaimPending; e.Claim.ClassName = "" },
		verdict{v1alpha1.StorageUnbound, plan.Wait, v1alpha1.ReasonVolumesPending, ""},
	},
	"large enough": {
		func(e *Evidence) { e.Desired = size("1Gi") },
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"large enough, written another way": {
		func(e *Evidence) { e.Desired = size("1024Mi") },
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"the driver rounded up beyond the wish, so nothing needs asking": {
		func(e *Evidence) { e.Claim.Capacity = size("2Gi") },
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"large enough, with stale statuses": {
		func(e *Evidence) {
			e.Desired = size("1Gi")
			e.Claim.ResizeStatus = resizeNodeInProgress
			e.Claim.Conditions = []state.ClaimCondition{condition(resizing, "", time.Hour), condition(nodeErr, "no", time.Hour)}
		},
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"large enough, with conditions that we do not know": {
		func(e *Evidence) {
			e.Desired = size("1Gi")
			e.Claim.Conditions = []state.ClaimCondition{condition("Unused", "", time.Hour)}
		},
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"the wish is below what the volume has": {
		func(e *Evidence) { e.Desired = size("512Mi") },
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumeShrinkRefused, ""},
	},
	"somebody else asked for more than the wish": {
		func(e *Evidence) { e.Desired, e.Claim.Requested = size("1Gi"), size("4Gi") },
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumeShrinkRefused, ""},
	},
	"somebody else asked for more, and it is not there yet": {
		func(e *Evidence) { e.Claim.Requested = size("4Gi") },
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"an impossible request is taken back to just above the capacity": {
		func(e *Evidence) {
			e.Desired, e.Claim.Requested = size("1Gi"), size("10Ti")
			e.Claim.ResizeStatus = resizeControllerInfeasible
		},
		verdict{v1alpha1.StorageRollingBack, plan.Settled, v1alpha1.ReasonVolumeExpanding, "2Gi"},
	},
	"an impossible request on a small volume is taken back in small steps": {
		func(e *Evidence) {
			e.Desired, e.Claim.Requested, e.Claim.Capacity = size("64Mi"), size("10Ti"), size("64Mi")
			e.Claim.ResizeStatus = resizeControllerInfeasible
		},
		verdict{v1alpha1.StorageRollingBack, plan.Settled, v1alpha1.ReasonVolumeExpanding, "65Mi"},
	},
	"an impossible request of just one step is left alone": {
		func(e *Evidence) {
			e.Desired, e.Claim.Requested = size("1Gi"), size("2Gi")
			e.Claim.ResizeStatus = resizeControllerInfeasible
		},
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumeShrinkRefused, ""},
	},
	"the driver cannot give what is wanted": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInfeasible
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "OutOfRange", time.Minute)}
		},
		verdict{v1alpha1.StorageInfeasibleController, plan.Blocked, v1alpha1.ReasonExpansionInfeasible, ""},
	},
	"the same in an older server's words": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), "ControllerResizeFailed"
		},
		verdict{v1alpha1.StorageInfeasibleController, plan.Blocked, v1alpha1.ReasonExpansionInfeasible, ""},
	},
	"the wish was lowered to one that may be possible": {
		func(e *Evidence) { e.Claim.Requested, e.Claim.ResizeStatus = size("10Ti"), resizeControllerInfeasible },
		verdict{v1alpha1.StorageInfeasibleController, plan.Settled, v1alpha1.ReasonVolumeExpanding, "2Gi"},
	},
	"the worker cannot grow the file system": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodeInfeasible
			e.Claim.Conditions = []state.ClaimCondition{condition(fsPending, "", time.Minute), condition(nodeErr, "no", time.Minute)}
		},
		verdict{v1alpha1.StorageInfeasibleNode, plan.Blocked, v1alpha1.ReasonExpansionInfeasible, ""},
	},
	"the driver grows no volume in use": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInProgress
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "rpc error: code = FailedPrecondition desc = in use", time.Minute)}
		},
		verdict{v1alpha1.StorageOfflineRequired, plan.Blocked, v1alpha1.ReasonOfflineExpansionRequired, ""},
	},
	"the volume has grown, the file system not": {
		func(e *Evidence) { e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodePending },
		verdict{v1alpha1.StorageFileSystemPending, plan.Settled, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the same from conditions alone, as on older servers": {
		func(e *Evidence) {
			e.Claim.Requested = size("2Gi")
			e.Claim.Conditions = []state.ClaimCondition{condition(resizing, "", time.Minute), condition(fsPending, "", time.Second)}
		},
		verdict{v1alpha1.StorageFileSystemPending, plan.Settled, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"a condition that is there but not True says nothing": {
		func(e *Evidence) {
			e.Claim.Requested = size("2Gi")
			e.Claim.Conditions = []state.ClaimCondition{{Type: string(fsPending), Status: corev1.ConditionFalse}}
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"a larger wish while the file system is pending": {
		func(e *Evidence) {
			e.Desired, e.Claim.Requested, e.Claim.ResizeStatus = size("4Gi"), size("2Gi"), resizeNodePending
		},
		verdict{v1alpha1.StorageRequesting, plan.Settled, v1alpha1.ReasonVolumeExpanding, "4Gi"},
	},
	"the worker's attempt failed and is repeated": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodePending
			e.Claim.Conditions = []state.ClaimCondition{condition(fsPending, "", time.Minute), condition(nodeErr, "busy", time.Minute)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Wait, v1alpha1.ReasonExpansionRetrying, ""},
	},
	"the driver's attempt failed and is repeated": {
		func(e *Evidence) {
			e.Claim.Requested = size("2Gi")
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "Internal", 9*time.Minute)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Wait, v1alpha1.ReasonExpansionRetrying, ""},
	},
	"attempts have failed for long": {
		func(e *Evidence) {
			e.Claim.Requested = size("2Gi")
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "Internal", 11*time.Minute)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Wait, v1alpha1.ReasonExpansionStalled, ""},
	},
	"a larger wish while attempts fail": {
		func(e *Evidence) {
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "Internal", time.Minute)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Settled, v1alpha1.ReasonVolumeExpanding, "2Gi"},
	},
	"asked for, and nothing heard yet": {
		func(e *Evidence) { e.Claim.Requested = size("2Gi") },
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the driver is at work": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInProgress
			e.Claim.Conditions = []state.ClaimCondition{condition(resizing, "", 9*time.Minute)}
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"a status that we do not know is no error": {
		func(e *Evidence) { e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), "Pondering" },
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the driver is at work for long": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInProgress
			e.Claim.Conditions = []state.ClaimCondition{condition(resizing, "", 11*time.Minute)}
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonExpansionStalled, ""},
	},
	"nothing heard for long": {
		func(e *Evidence) { e.Claim.Requested, e.Since = size("2Gi"), noon.Add(-11*time.Minute) },
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonExpansionStalled, ""},
	},
	"too small, and the class allows growth": {
		func(*Evidence) {},
		verdict{v1alpha1.StorageRequesting, plan.Settled, v1alpha1.ReasonVolumeExpanding, "2Gi"},
	},
	"too small, and the class may not be read: admission decides": {
		func(e *Evidence) { e.Class = state.Unknown[state.Class]("forbidden") },
		verdict{v1alpha1.StorageRequesting, plan.Settled, v1alpha1.ReasonVolumeExpanding, "2Gi"},
	},
	"too small, and the class is gone: admission decides": {
		func(e *Evidence) { e.Class = state.Seen(state.Class{Name: "fast"}) },
		verdict{v1alpha1.StorageRequesting, plan.Settled, v1alpha1.ReasonVolumeExpanding, "2Gi"},
	},
	"too small, and the class forbids growth: nothing is asked": {
		func(e *Evidence) { e.Class = state.Seen(state.Class{Name: "fast", Exists: true}) },
		verdict{v1alpha1.StorageRejected, plan.Blocked, v1alpha1.ReasonStorageClassNotExpandable, ""},
	},
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for what, row := range standings {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := evidence(grown())
			e.Desired = size("2Gi")
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
