package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// stallPatience: after as long without progress a growth is called stalled.
// Nothing is done about it, but the words change.
const stallPatience = 10 * time.Minute

// Evidence is what the standing of a volume is told from. Everything in it was
// read from living objects, so that no crash and no stale status can mislead.
type Evidence struct {
	Claim      *state.Claim // nil when there is none
	Desired    resource.Quantity
	Class      state.Fact[state.Class]
	PodRunning bool
	Now        time.Time
	// Since is when the growth last came further; zero when that is not known. The
	// times of a claim's conditions count without it only: a resizer may renew them
	// with each attempt.
	Since time.Time
	// Failure is the newest event that tells of a failed attempt to grow the
	// volume; nil when there is none or it could not be read.
	Failure *state.ClaimEvent
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
	// NextEligible is when a growth that the provider limits can succeed at
	// the latest; zero when nothing limits it.
	NextEligible time.Time
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
		absent, unbound, rollingBack, satisfied, infeasible, offline, fileSystemPending, limited, retrying, requesting,
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

// satisfied: the volume is large enough. More than enough is accepted, whoever
// asked for it: volumes cannot shrink.
func satisfied(e Evidence) (Standing, bool) {
	if !enough(e) {
		return Standing{}, false
	}
	claim := *e.Claim
	standing := Standing{
		Phase: v1alpha1.StorageSatisfied, Reason: v1alpha1.ReasonVolumesBound,
		Note: fmt.Sprintf("claim %s has %s", claim.Name, claim.Capacity.String()),
	}
	switch {
	case claim.Requested.Cmp(claim.Capacity) > 0 && infeasibleController(claim):
		standing.Note = fmt.Sprintf("claim %s has the %s wanted; it asks for %s, the least that Kubernetes allows it after a growth that its driver could not give",
			claim.Name, claim.Capacity.String(), claim.Requested.String())
	case claim.Requested.Cmp(claim.Capacity) > 0:
		standing.Note = fmt.Sprintf("claim %s has the %s wanted; its request for %s cannot be taken back until its driver answers, and does no harm if it is fulfilled",
			claim.Name, claim.Capacity.String(), claim.Requested.String())
	case claim.Requested.Cmp(e.Desired) > 0:
		standing.Note = fmt.Sprintf("claim %s has %s, above the %s desired (AboveDesired); that is accepted, since volumes cannot shrink",
			claim.Name, claim.Capacity.String(), e.Desired.String())
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

func fileSystemPending(e Evidence) (Standing, bool) {
	claim := *e.Claim
	since, done := controllerDone(claim)
	_, failed := claim.Is(corev1.PersistentVolumeClaimNodeResizeError)
	if failed || !done || claim.Requested.Cmp(e.Desired) < 0 {
		return Standing{}, false
	}
	standing := Standing{Phase: v1alpha1.StorageFileSystemPending, Reason: v1alpha1.ReasonVolumeExpanding}
	note := "its file system follows as soon as its worker looks at the pod"
	switch {
	case !e.PodRunning:
		note = "its file system follows at the next start of the pod"
	case stalled(e, since):
		standing.Reason = v1alpha1.ReasonExpansionStalled
		note = fmt.Sprintf("its worker has not grown its file system for more than %s%s; delete the pod to mount the volume anew", stallPatience, toldBy(e.Failure))
	}
	standing.Note = fmt.Sprintf("claim %s: the volume has grown to %s; %s", claim.Name, claim.Requested.String(), note)
	return standing, true
}

// controllerDone says whether the driver has grown the volume and only its file
// system is behind, and since when; zero when that is not known.
func controllerDone(claim state.Claim) (since time.Time, done bool) {
	pending, is := claim.Is(corev1.PersistentVolumeClaimFileSystemResizePending)
	node := claim.ResizeStatus == resizeNodePending || claim.ResizeStatus == resizeNodeInProgress
	return pending.Since, is || node
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
		standing.Note = fmt.Sprintf("claim %s: the volume shall grow from %s to %s, but nothing has happened for more than %s%s; its driver may be out of space or slow (see the events of the claim), and a smaller size takes no effect until it answers",
			claim.Name, claim.Capacity.String(), claim.Requested.String(), stallPatience, toldBy(e.Failure))
		if !is && claim.ResizeStatus != resizeControllerInProgress {
			standing.Note = fmt.Sprintf("claim %s: nothing has begun to grow the volume from %s to %s for more than %s%s; its StorageClass's driver may have no resizer running",
				claim.Name, claim.Capacity.String(), claim.Requested.String(), stallPatience, toldBy(e.Failure))
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
		standing.Note = fmt.Sprintf("claim %s cannot grow from %s to %s: %s",
			claim.Name, claim.Requested.String(), e.Desired.String(), NotExpandable(class.Value))
		return standing
	}
	standing.Hold, standing.Ask, standing.Look = plan.Settled, &e.Desired, plan.LookWorld
	standing.Reason = v1alpha1.ReasonVolumeExpanding
	standing.Note = fmt.Sprintf("claim %s: the volume grows from %s to %s", claim.Name, claim.Capacity.String(), e.Desired.String())
	return standing
}

func enough(e Evidence) bool { return e.Claim.Capacity.Cmp(e.Desired) >= 0 }

// infeasibleController says whether the driver can never give what the claim asks
// for. An answer to an earlier request, which Kubernetes keeps beside it until the
// next attempt, is none to this one.
func infeasibleController(claim state.Claim) bool {
	answered := claim.Allocated.IsZero() || claim.Allocated.Equal(claim.Requested)
	return answered && (claim.ResizeStatus == resizeControllerInfeasible || claim.ResizeStatus == resizeControllerFailed)
}

// InfeasibleSize is the size that the driver of a claim's volume says it can
// never give, since when it says so (zero when unknown), and whether it does.
func InfeasibleSize(claim state.Claim) (size resource.Quantity, since time.Time, infeasible bool) {
	if !infeasibleController(claim) || claim.Requested.Cmp(claim.Capacity) <= 0 {
		return resource.Quantity{}, time.Time{}, false
	}
	failure, _ := claim.Is(corev1.PersistentVolumeClaimControllerResizeError)
	return claim.Requested, failure.Since, true
}

// stalled says whether something has lasted longer than a growth should. What
// has no known beginning is not stalled.
func stalled(e Evidence, since time.Time) bool {
	since = firstKnown(e.Since, since)
	return !since.IsZero() && e.Now.Sub(since) > stallPatience
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

// NotExpandable tells of a class that allows no growth, and the remedy.
func NotExpandable(class state.Class) string {
	return fmt.Sprintf("StorageClass %s does not allow expansion; set allowVolumeExpansion: true on the class if its driver can grow volumes, or set spec.storage.size back", class.Name)
}
