package node

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

type quantity = resource.Quantity

// Evidence is what the standing of a volume is told from. Everything in it was
// read from living objects, so that no crash and no stale status can mislead.
type Evidence struct {
	Claim      *state.Claim // nil when there is none
	Desired    resource.Quantity
	Class      state.Fact[state.Class]
	PodRunning bool
	Now        time.Time
	// Since is when the growth was first seen; zero when that is not known.
	// A claim's own conditions are believed before it.
	Since time.Time
}

// Standing is where a volume stands, and what follows from it.
type Standing struct {
	Phase  v1alpha1.StoragePhase
	Hold   plan.Hold
	Reason string
	Note   string
	Look   time.Duration
	// Ask is the size that the claim shall ask for from now on; nil to leave
	// it alone.
	Ask *resource.Quantity
}

// Stand tells where the volume of a node stands. A size that the API server
// refused a moment ago counts as rejected.
func Stand(in Input) Standing {
	standing := Classify(evidence(in))
	if standing.Ask == nil {
		return standing
	}
	if verdict, refused := refusedLately(in, *standing.Ask); refused {
		standing.Phase, standing.Ask = v1alpha1.StorageRejected, nil
		standing.Hold, standing.Reason, standing.Note, standing.Look = verdict.Hold, verdict.Reason, verdict.Note, verdict.Look
	}
	return standing
}

func evidence(in Input) Evidence {
	pod, live := in.State.LivePod()
	gathered := Evidence{
		Claim: in.State.Claim, Desired: in.desired(), Class: in.State.Class, Now: in.State.Now,
		PodRunning: live && pod.Phase == corev1.PodRunning,
	}
	ready := meta.FindStatusCondition(in.State.Status.Conditions, v1alpha1.ConditionStorageReady)
	if ready != nil && ready.Status == metav1.ConditionFalse &&
		(ready.Reason == v1alpha1.ReasonVolumeExpanding || ready.Reason == v1alpha1.ReasonExpansionStalled) {
		gathered.Since = ready.LastTransitionTime.Time
	}
	return gathered
}

// The server's words for allocatedResourceStatuses. Older texts and early
// releases wrote Failed for Infeasible.
const (
	resizeControllerInProgress = string(corev1.PersistentVolumeClaimControllerResizeInProgress)
	resizeControllerInfeasible = string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
	resizeControllerFailed     = "ControllerResizeFailed"
	resizeNodePending          = string(corev1.PersistentVolumeClaimNodeResizePending)
	resizeNodeInProgress       = string(corev1.PersistentVolumeClaimNodeResizeInProgress)
	resizeNodeInfeasible       = string(corev1.PersistentVolumeClaimNodeResizeInfeasible)
	resizeNodeFailed           = "NodeResizeFailed"
)

// Classify tells where a volume stands; the first evidence that fits decides.
// It tells done by the capacity alone: conditions and statuses may be stale,
// unknown to us, or missing on older servers.
func Classify(e Evidence) Standing {
	for _, judge := range []func(Evidence) (Standing, bool){
		absent, unbound, rollingBack, satisfied, infeasible, offline, fileSystemPending, retrying, requesting,
	} {
		if standing, fits := judge(e); fits {
			return standing
		}
	}
	return controllerResizing(e)
}

func absent(e Evidence) (Standing, bool) {
	switch {
	case e.Claim == nil:
		return Standing{
			Phase: v1alpha1.StorageMissing, Hold: plan.Wait, Reason: v1alpha1.ReasonVolumesPending, Look: plan.LookWorld,
			Note: "the claim does not exist yet",
		}, true
	case e.Claim.Terminating:
		return Standing{
			Phase: v1alpha1.StorageTerminating, Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeUnavailable, Look: plan.LookWorld,
			Note: fmt.Sprintf("claim %s is being deleted", e.Claim.Name),
		}, true
	case e.Claim.Phase == corev1.ClaimLost:
		return Standing{
			Phase: v1alpha1.StorageLost, Hold: plan.Blocked, Reason: v1alpha1.ReasonVolumeUnavailable,
			Note: fmt.Sprintf("claim %s lost its volume", e.Claim.Name),
		}, true
	}
	return Standing{}, false
}

func unbound(e Evidence) (Standing, bool) {
	if e.Claim.Phase == corev1.ClaimBound {
		return Standing{}, false
	}
	standing := Standing{Phase: v1alpha1.StorageUnbound, Hold: plan.Wait, Reason: v1alpha1.ReasonVolumesPending, Look: plan.LookWorld}
	switch {
	case e.Claim.ClassName == "":
		standing.Note = fmt.Sprintf("claim %s waits for a volume, and no StorageClass is the default; make one the default, or name one in spec.storage.storageClassName of a new cluster", e.Claim.Name)
	case e.Class.Known && !e.Class.Value.Exists:
		standing.Hold, standing.Reason = plan.Blocked, v1alpha1.ReasonStorageClassMissing
		standing.Note = fmt.Sprintf("claim %s waits for a volume of StorageClass %s, which does not exist; create the class, or create the cluster anew with one that exists", e.Claim.Name, e.Claim.ClassName)
	default:
		standing.Note = fmt.Sprintf("claim %s waits for a volume of StorageClass %s", e.Claim.Name, e.Claim.ClassName)
	}
	return standing, true
}

// rollingBack takes an impossible request back after the user did: the volume
// is large enough, but its request would be tried for ever.
func rollingBack(e Evidence) (Standing, bool) {
	claim := *e.Claim
	if !enough(e) || !infeasibleController(claim) || claim.Requested.Cmp(claim.Capacity) <= 0 {
		return Standing{}, false
	}
	smallest := justAbove(claim.Capacity)
	if smallest.Cmp(claim.Requested) >= 0 {
		return Standing{}, false
	}
	return Standing{
		Phase: v1alpha1.StorageRollingBack, Reason: v1alpha1.ReasonVolumeExpanding, Ask: &smallest,
		Note: fmt.Sprintf("claim %s asks for %s, which its driver cannot give; it is lowered to %s, the least that Kubernetes allows",
			claim.Name, claim.Requested.String(), smallest.String()),
	}, true
}

func satisfied(e Evidence) (Standing, bool) {
	if !enough(e) {
		return Standing{}, false
	}
	standing := Standing{
		Phase: v1alpha1.StorageSatisfied, Reason: v1alpha1.ReasonVolumesBound,
		Note: fmt.Sprintf("claim %s has %s", e.Claim.Name, e.Claim.Capacity.String()),
	}
	// Drivers round up, so capacity alone says nothing of a wish to shrink.
	if e.Claim.Requested.Cmp(e.Desired) > 0 {
		standing.Reason = v1alpha1.ReasonVolumeShrinkRefused
		standing.Note = fmt.Sprintf("claim %s asks for %s, more than the %s wanted; volumes cannot shrink, so nothing was done",
			e.Claim.Name, e.Claim.Requested.String(), e.Desired.String())
	}
	return standing, true
}

func infeasible(e Evidence) (Standing, bool) {
	claim := *e.Claim
	switch {
	case infeasibleController(claim):
		standing := Standing{
			Phase: v1alpha1.StorageInfeasibleController, Hold: plan.Blocked, Reason: v1alpha1.ReasonExpansionInfeasible,
			Note: fmt.Sprintf("claim %s: the driver of its volume cannot give %s%s; set spec.storage.size to a size that it can give",
				claim.Name, claim.Requested.String(), quoted(claim, corev1.PersistentVolumeClaimControllerResizeError)),
		}
		if !claim.Requested.Equal(e.Desired) {
			// Another wish than the impossible one, and still above the
			// capacity: Kubernetes lets an infeasible request be lowered.
			standing.Hold, standing.Ask = plan.Settled, &e.Desired
			standing.Reason = v1alpha1.ReasonVolumeExpanding
			standing.Note = fmt.Sprintf("claim %s asks for %s instead of %s, which its driver cannot give", claim.Name, e.Desired.String(), claim.Requested.String())
		}
		return standing, true
	case claim.ResizeStatus == resizeNodeInfeasible || claim.ResizeStatus == resizeNodeFailed:
		return Standing{
			Phase: v1alpha1.StorageInfeasibleNode, Hold: plan.Blocked, Reason: v1alpha1.ReasonExpansionInfeasible,
			Note: fmt.Sprintf("claim %s: its volume has grown, but its file system cannot be grown on the worker%s; a smaller size does not help: delete the pod to mount the volume anew, or rebuild the member on a new volume",
				claim.Name, quoted(claim, corev1.PersistentVolumeClaimNodeResizeError)),
		}, true
	}
	return Standing{}, false
}

// offline: the driver says that it grows no volume in use. A changed wish is
// still asked for, since the claim follows it once the pod is gone.
func offline(e Evidence) (Standing, bool) {
	failure, failed := e.Claim.Is(corev1.PersistentVolumeClaimControllerResizeError)
	if !failed || !strings.Contains(failure.Message, "FailedPrecondition") {
		return Standing{}, false
	}
	standing := Standing{
		Phase: v1alpha1.StorageOfflineRequired, Hold: plan.Blocked, Reason: v1alpha1.ReasonOfflineExpansionRequired,
		Note: fmt.Sprintf("claim %s: its driver grows a volume only while no pod uses it (it said: %s); the volume keeps its size while the member runs", e.Claim.Name, failure.Message),
	}
	return askIfSmaller(e, standing), true
}

func fileSystemPending(e Evidence) (Standing, bool) {
	claim := *e.Claim
	_, pending := claim.Is(corev1.PersistentVolumeClaimFileSystemResizePending)
	node := claim.ResizeStatus == resizeNodePending || claim.ResizeStatus == resizeNodeInProgress
	_, failed := claim.Is(corev1.PersistentVolumeClaimNodeResizeError)
	if failed || (!pending && !node) || claim.Requested.Cmp(e.Desired) < 0 {
		return Standing{}, false
	}
	note := "its file system follows as soon as its worker looks at the pod"
	if !e.PodRunning {
		note = "its file system follows at the next start of the pod"
	}
	return Standing{
		Phase: v1alpha1.StorageFileSystemPending, Reason: v1alpha1.ReasonVolumeExpanding,
		Note: fmt.Sprintf("claim %s: the volume has grown to %s; %s", claim.Name, claim.Requested.String(), note),
	}, true
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
		Note: fmt.Sprintf("claim %s: growing failed and is being repeated: %s", e.Claim.Name, failure.Message),
	}
	if stalled(e, failure.Since) {
		standing.Reason = v1alpha1.ReasonExpansionStalled
		standing.Note = fmt.Sprintf("claim %s: growing has failed for more than %s: %s", e.Claim.Name, stallPatience, failure.Message)
	}
	return askIfSmaller(e, standing), true
}

// requesting: the claim does not ask for the size yet.
func requesting(e Evidence) (Standing, bool) {
	if e.Claim.Requested.Cmp(e.Desired) >= 0 {
		return Standing{}, false
	}
	return askIfSmaller(e, Standing{Phase: v1alpha1.StorageRequesting}), true
}

// controllerResizing: the claim asks for enough and nothing failed, so the
// driver is at work, whether it says so yet or not.
func controllerResizing(e Evidence) Standing {
	claim := *e.Claim
	standing := Standing{
		Phase: v1alpha1.StorageControllerResizing, Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld,
		Note: fmt.Sprintf("claim %s: the volume grows from %s to %s", claim.Name, claim.Capacity.String(), claim.Requested.String()),
	}
	resizing, is := claim.Is(corev1.PersistentVolumeClaimResizing)
	if stalled(e, resizing.Since) {
		standing.Reason = v1alpha1.ReasonExpansionStalled
		standing.Note = fmt.Sprintf("claim %s: the volume shall grow from %s to %s, but nothing has happened for more than %s; its driver may be out of space or slow (see the events of the claim), and a smaller size takes no effect until it answers",
			claim.Name, claim.Capacity.String(), claim.Requested.String(), stallPatience)
		if !is && claim.ResizeStatus != resizeControllerInProgress {
			standing.Note = fmt.Sprintf("claim %s: nothing has begun to grow the volume from %s to %s for more than %s; its StorageClass's driver may have no resizer running",
				claim.Name, claim.Capacity.String(), claim.Requested.String(), stallPatience)
		}
	}
	return standing
}

// askIfSmaller lets the claim ask for the desired size if it asks for less,
// unless its class is known to allow no growth.
func askIfSmaller(e Evidence, standing Standing) Standing {
	claim := *e.Claim
	if claim.Requested.Cmp(e.Desired) >= 0 {
		return standing
	}
	class := e.Class
	if class.Known && class.Value.Exists && !class.Value.Expandable {
		standing.Phase, standing.Hold, standing.Look = v1alpha1.StorageRejected, plan.Blocked, 0
		standing.Reason = v1alpha1.ReasonStorageClassNotExpandable
		standing.Note = fmt.Sprintf("claim %s cannot grow from %s to %s: StorageClass %s does not allow expansion; set allowVolumeExpansion: true on the class if its driver can grow volumes, or set spec.storage.size back",
			claim.Name, claim.Requested.String(), e.Desired.String(), class.Value.Name)
		return standing
	}
	standing.Hold, standing.Ask, standing.Look = plan.Settled, &e.Desired, plan.LookWorld
	standing.Reason = v1alpha1.ReasonVolumeExpanding
	standing.Note = fmt.Sprintf("claim %s: the volume grows from %s to %s", claim.Name, claim.Capacity.String(), e.Desired.String())
	return standing
}

func enough(e Evidence) bool { return e.Claim.Capacity.Cmp(e.Desired) >= 0 }

func infeasibleController(claim state.Claim) bool {
	return claim.ResizeStatus == resizeControllerInfeasible || claim.ResizeStatus == resizeControllerFailed
}

// stalled says whether something has lasted longer than a growth should. What
// has no known beginning is not stalled.
func stalled(e Evidence, since time.Time) bool {
	if since.IsZero() {
		since = e.Since
	}
	return !since.IsZero() && e.Now.Sub(since) > stallPatience
}

// quoted is the message of a condition, to follow a sentence.
func quoted(claim state.Claim, condition corev1.PersistentVolumeClaimConditionType) string {
	if found, is := claim.Is(condition); is && found.Message != "" {
		return " (it said: " + found.Message + ")"
	}
	return ""
}

// justAbove is the least request above a capacity: one step of the size in
// which such volumes are usually made.
func justAbove(capacity resource.Quantity) resource.Quantity {
	step := resource.MustParse("1Mi")
	if one := resource.MustParse("1Gi"); capacity.Cmp(one) >= 0 {
		step = one
	}
	above := capacity.DeepCopy()
	above.Add(step)
	return above
}
