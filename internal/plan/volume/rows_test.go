package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func size(text string) resource.Quantity { return resource.MustParse(text) }

// grown is a bound claim that asks for 1Gi and has 1Gi, while 2Gi are desired.
func grown() Evidence {
	return Evidence{
		Claim: &state.Claim{
			Name: "valkey-prod-2-1-data", UID: "claim-uid", Version: "7", Phase: corev1.ClaimBound,
			ClassName: "fast", VolumeName: "pv-1", Requested: size("1Gi"), Capacity: size("1Gi"),
		},
		Desired: size("2Gi"), Now: noon, PodRunning: true,
		Class: state.Seen(state.Class{Name: "fast", Exists: true, Expandable: true}),
	}
}

func condition(kind corev1.PersistentVolumeClaimConditionType, message string, age time.Duration) state.ClaimCondition {
	return state.ClaimCondition{Type: string(kind), Status: corev1.ConditionTrue, Message: message, Since: noon.Add(-age)}
}

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
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"somebody else asked for more than the wish": {
		func(e *Evidence) { e.Desired, e.Claim.Requested = size("1Gi"), size("4Gi") },
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
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
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"the driver cannot give what is wanted": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInfeasible
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "OutOfRange", time.Minute)}
		},
		verdict{v1alpha1.StorageInfeasibleController, plan.Blocked, v1alpha1.ReasonExpansionInfeasible, ""},
	},
	"the answer is about an earlier request, which was lowered since": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.Allocated, e.Claim.ResizeStatus = size("2Gi"), size("10Ti"), resizeControllerInfeasible
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
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
	"the driver is asked again and again, which renews the claim's condition": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus, e.Since = size("2Gi"), resizeControllerInProgress, noon.Add(-11*time.Minute)
			e.Claim.Conditions = []state.ClaimCondition{condition(resizing, "", 20*time.Second)}
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonExpansionStalled, ""},
	},
	"another size is asked for while an old condition still stands": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus, e.Since = size("2Gi"), resizeControllerInProgress, noon.Add(-time.Minute)
			e.Claim.Conditions = []state.ClaimCondition{condition(resizing, "", 11*time.Minute)}
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"nothing heard for long": {
		func(e *Evidence) { e.Claim.Requested, e.Since = size("2Gi"), noon.Add(-11*time.Minute) },
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonExpansionStalled, ""},
	},
	"the wish is what a claim grown by hand has not: more is accepted": {
		func(e *Evidence) {
			e.Desired, e.Claim.Requested, e.Claim.Capacity = size("2Gi"), size("4Gi"), size("4Gi")
		},
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"the volume grows, in the server's and in the conditions' words, with both conditions at once": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.Allocated, e.Claim.ResizeStatus = size("2Gi"), size("2Gi"), resizeNodePending
			e.Claim.Conditions = []state.ClaimCondition{condition(fsPending, "Waiting for user to (re-)start a pod", time.Second), condition(resizing, "", time.Minute)}
		},
		verdict{v1alpha1.StorageFileSystemPending, plan.Settled, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the kubelet is at work": {
		func(e *Evidence) { e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodeInProgress },
		verdict{v1alpha1.StorageFileSystemPending, plan.Settled, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the worker has not grown the file system for long": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodePending
			e.Claim.Conditions = []state.ClaimCondition{condition(fsPending, "", 11*time.Minute)}
		},
		verdict{v1alpha1.StorageFileSystemPending, plan.Settled, v1alpha1.ReasonExpansionStalled, ""},
	},
	"the file system has been behind for long, but no pod runs": {
		func(e *Evidence) {
			e.PodRunning = false
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodePending
			e.Claim.Conditions = []state.ClaimCondition{condition(fsPending, "", 11*time.Minute)}
		},
		verdict{v1alpha1.StorageFileSystemPending, plan.Settled, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"errors whose status is unknown or False say nothing": {
		func(e *Evidence) {
			e.Claim.Requested = size("2Gi")
			e.Claim.Conditions = []state.ClaimCondition{
				{Type: string(controllerErr), Status: corev1.ConditionFalse, Message: "FailedPrecondition"},
				{Type: string(nodeErr), Status: corev1.ConditionUnknown, Message: "no"},
			}
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the worker cannot grow the file system, in an older server's words": {
		func(e *Evidence) { e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), "NodeResizeFailed" },
		verdict{v1alpha1.StorageInfeasibleNode, plan.Blocked, v1alpha1.ReasonExpansionInfeasible, ""},
	},
	"the worker could not grow the file system, and then did": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.Capacity, e.Claim.ResizeStatus = size("2Gi"), size("2Gi"), resizeNodeInfeasible
		},
		verdict{v1alpha1.StorageSatisfied, plan.Settled, v1alpha1.ReasonVolumesBound, ""},
	},
	"the resizer says by an event alone that the volume is in use": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInProgress
			e.Failure = &state.ClaimEvent{Message: "CSI driver x only supports offline expansion and volume is currently in-use"}
		},
		verdict{v1alpha1.StorageOfflineRequired, plan.Blocked, v1alpha1.ReasonOfflineExpansionRequired, ""},
	},
	"the volume was in use, and has grown since": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodePending
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "FailedPrecondition", time.Minute)}
			e.Failure = &state.ClaimEvent{Message: "only supports offline expansion"}
		},
		verdict{v1alpha1.StorageFileSystemPending, plan.Settled, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the provider allows no further change for some time": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInProgress
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "Internal: VolumeModificationRateExceeded: You've reached the maximum modification rate per volume limit", 11*time.Minute)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Wait, v1alpha1.ReasonExpansionRateLimited, ""},
	},
	"the provider says so by an event alone": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInProgress
			e.Failure = &state.ClaimEvent{Message: "ResourceExhausted: LimitExceeded: too many modifications", First: noon.Add(-time.Hour)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Wait, v1alpha1.ReasonExpansionRateLimited, ""},
	},
	"the provider allows no further change, and a larger one is wished for": {
		func(e *Evidence) {
			e.Claim.Conditions = []state.ClaimCondition{condition(controllerErr, "in cooldown", time.Minute)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Settled, v1alpha1.ReasonVolumeExpanding, "2Gi"},
	},
	"an event of another failure explains nothing yet": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeControllerInProgress
			e.Failure = &state.ClaimEvent{Message: "ResourceExhausted: pool is full"}
		},
		verdict{v1alpha1.StorageControllerResizing, plan.Wait, v1alpha1.ReasonVolumeExpanding, ""},
	},
	"the worker's attempts have failed for long": {
		func(e *Evidence) {
			e.Claim.Requested, e.Claim.ResizeStatus = size("2Gi"), resizeNodePending
			e.Claim.Conditions = []state.ClaimCondition{condition(nodeErr, "busy", 11*time.Minute)}
		},
		verdict{v1alpha1.StorageRetrying, plan.Wait, v1alpha1.ReasonExpansionStalled, ""},
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
