package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/volume"
	"valkey.io/valkey-operator/internal/state"
)

// Stand tells where the volume of a node stands. A size that the API server
// refused a moment ago counts as rejected.
func Stand(in Input) volume.Standing {
	standing := volume.Classify(evidence(in))
	if standing.Ask == nil {
		return standing
	}
	if verdict, refused := refusedLately(in, *standing.Ask); refused {
		standing.Phase, standing.Ask = v1alpha1.StorageRejected, nil
		standing.Hold, standing.Reason, standing.Note, standing.Look = verdict.Hold, verdict.Reason, verdict.Note, verdict.Look
	}
	return standing
}

func evidence(in Input) volume.Evidence {
	pod, live := in.State.LivePod()
	gathered := volume.Evidence{
		Claim: in.State.Claim, Desired: in.desired(), Class: in.State.Class, Now: in.State.Now,
		PodRunning: live && pod.Phase == corev1.PodRunning, Failure: in.State.ResizeFailure,
	}
	if told := in.State.Status.Storage; told != nil && told.ProgressedAt != nil {
		gathered.Since = told.ProgressedAt.Time
	}
	if failure := gathered.Failure; failure != nil && failure.Last.Before(gathered.Since) {
		gathered.Failure = nil // it tells of an earlier step
	}
	return gathered
}

// refusedLately repeats the API server's no to a size instead of asking for it
// again too soon. What was refused for its class is asked again as soon as the
// class allows it.
func refusedLately(in Input, size resource.Quantity) (plan.Verdict, bool) {
	refusal := in.State.Refusal
	if refusal == nil || !refusal.Size.Equal(size) {
		return plan.Verdict{}, false
	}
	left := plan.RefusalPatience - in.State.Now.Sub(refusal.At)
	if left <= 0 || classMended(in, refusal.Reason) {
		return plan.Verdict{}, false
	}
	return plan.Verdict{Hold: plan.Blocked, Reason: refusal.Reason, Note: RefusalNote(in, *refusal), Look: left}, true
}

// classMended says whether a growth was refused while the class forbade it, as
// this node said, and the class is known to allow it by now.
func classMended(in Input, reason string) bool {
	class := in.State.Class
	return reason == v1alpha1.ReasonStorageClassNotExpandable && class.Known && class.Value.Expandable
}

// RefusalNote is the server's own words, and what to do where those do not say.
func RefusalNote(in Input, refusal state.Refusal) string {
	claim := in.State.Claim
	if claim == nil || refusal.Reason != v1alpha1.ReasonExpansionRefused || refusal.Size.Cmp(claim.Requested) >= 0 {
		return refusal.Message
	}
	return fmt.Sprintf("claim %s asks for %s, which its driver cannot give, and this API server does not let the request be lowered to %s (Kubernetes does from 1.32 on; it said: %s); the data is safe and the volume keeps its %s; set spec.storage.size to what the driver can give above that, or set the volume's reclaim policy to Retain and make the claim anew on it with a smaller request",
		claim.Name, claim.Requested.String(), refusal.Size.String(), refusal.Message, claim.Capacity.String())
}
