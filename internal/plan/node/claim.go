package node

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// claimExists makes the claim, takes up one with our identity, and refuses any
// other.
func claimExists(in Input) plan.Verdict {
	if in.State.Claim != nil {
		return claimUsable(in)
	}
	if in.Spec.Storage.Size == nil {
		// The node's two halves are written one after the other.
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonVolumesPending, Look: plan.LookWorld,
			Note: fmt.Sprintf("claim %s is made as soon as its size is known", in.Spec.Storage.ClaimName),
		}
	}
	born := in.member()
	born.Spec.Storage.Size = new(in.birthSize())
	if verdict, refused := refusedLately(in, *born.Spec.Storage.Size); refused {
		return verdict
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonVolumesPending, Note: fmt.Sprintf("claim %s is being made", in.Spec.Storage.ClaimName),
		Look:    plan.LookWorld,
		Actions: []plan.Action{plan.CreateClaim{Claim: build.Claim(born)}},
	}
}

// claimUsable says whether a pod of this member may mount the claim.
func claimUsable(in Input) plan.Verdict {
	claim := *in.State.Claim
	if why := foreign(claim, in.Spec); why != "" {
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonForeignVolume,
			Look: plan.LookWorld, // it has no label of ours by which its change would wake us
			Note: fmt.Sprintf("claim %s is not touched: %s; move it away, or set its annotation %s to %s if its data shall be this cluster's",
				claim.Name, why, name.AnnotationClusterID, in.Spec.ClusterID),
		}
	}
	switch {
	case claim.Terminating:
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeUnavailable, Look: plan.LookWorld,
			Note: fmt.Sprintf("claim %s is being deleted; no new pod mounts it, and once its last pod has ended a new, empty one is made", claim.Name),
		}
	case claim.Phase == corev1.ClaimLost:
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonVolumeUnavailable,
			Note: fmt.Sprintf("claim %s lost its volume %s; bring the volume back, or delete the claim to start this member anew", claim.Name, claim.VolumeName),
		}
	}
	return settled()
}

// foreign tells what makes a claim somebody else's; empty when it is ours.
func foreign(claim state.Claim, spec v1alpha1.ValkeyNodeSpec) string {
	switch {
	case claim.ClusterID == "":
		return "it does not say whose data it holds"
	case claim.ClusterID != spec.ClusterID:
		return fmt.Sprintf("it holds data of cluster id %s, and this cluster's is %s", claim.ClusterID, spec.ClusterID)
	}
	for label, value := range name.NodeLabels(spec.ClusterName, int(spec.Shard), int(spec.Node)) {
		had, labelled := claim.Labels[label]
		if labelled && had != value && identifying(label) {
			return fmt.Sprintf("its label %s is %s, and this member's is %s", label, had, value)
		}
	}
	return ""
}

// identifying labels say which member a claim belongs to.
func identifying(label string) bool {
	return label == name.LabelCluster || label == name.LabelShardIndex || label == name.LabelNodeIndex
}

// claimMarked keeps the labels and annotations by which a claim is found and
// taken up again.
func claimMarked(in Input) plan.Verdict {
	claim := *in.State.Claim
	annotations := map[string]string{}
	if in.State.Shape != "" && claim.Shape != in.State.Shape {
		annotations[name.AnnotationShape] = in.State.Shape
	}
	if agent := in.State.Agent; agent.Known && agent.Value.NodeID != "" && claim.NodeID != agent.Value.NodeID {
		annotations[name.AnnotationNodeID] = agent.Value.NodeID
	}
	labels := in.member().Labels()
	maps.DeleteFunc(labels, func(label, value string) bool { return claim.Labels[label] == value })
	if len(annotations) == 0 && len(labels) == 0 {
		return settled()
	}
	return plan.Verdict{Actions: []plan.Action{plan.MarkClaim{
		Claim: claim.Name, Version: claim.Version, Labels: labels, Annotations: annotations,
	}}}
}

// claimOwnedByPolicy lets the claim go with its cluster, or outlive it.
func claimOwnedByPolicy(in Input) plan.Verdict {
	claim := *in.State.Claim
	wanted := in.Spec.Storage.Retention.WhenDeleted == v1alpha1.RetentionDelete
	if in.State.ClusterUID == "" || claim.OwnedBy(in.State.ClusterUID) == wanted {
		return settled()
	}
	return plan.Verdict{Actions: []plan.Action{plan.OwnClaim{
		Claim: claim.Name, Version: claim.Version, Owned: wanted,
		Owner: plan.Owner{Name: in.Spec.ClusterName, UID: in.State.ClusterUID},
	}}}
}

// claimLargeEnough asks for the size that is wanted, and says what stands in
// the way of a growth. Growth waits for nothing but the claim itself.
func claimLargeEnough(in Input) plan.Verdict {
	standing := Stand(in)
	if standing.Ask == nil {
		return plan.Verdict{Hold: standing.Hold, Reason: standing.Reason, Note: standing.Note, Look: standing.Look}
	}
	claim := *in.State.Claim
	return plan.Verdict{
		Reason: standing.Reason, Note: standing.Note, Look: plan.LookWorld,
		Actions: []plan.Action{plan.ExpandClaim{
			Claim: claim.Name, Version: claim.Version, From: claim.Requested, To: *standing.Ask,
		}},
	}
}

// fileSystemGrown nudges the kubelet: the volume has grown, and the file system
// follows when the kubelet next looks at the pod, which a changed annotation
// makes it do at once.
func fileSystemGrown(in Input) plan.Verdict {
	standing := Stand(in)
	if standing.Phase != v1alpha1.StorageFileSystemPending {
		return plan.Verdict{Reason: standing.Reason, Note: standing.Note}
	}
	waiting := plan.Verdict{Hold: plan.Wait, Reason: standing.Reason, Note: standing.Note, Look: plan.LookWorld}
	pod, live := in.State.LivePod()
	if !live || pod.Phase != corev1.PodRunning {
		return waiting
	}
	if nudge := nudgeFor(in); pod.Nudge != nudge {
		waiting.Actions = []plan.Action{plan.MarkPod{
			Pod: pod.Name, UID: pod.UID, Annotations: map[string]string{name.AnnotationResizeNudge: nudge},
		}}
	}
	return waiting
}

// nudgeFor is the annotation's value: another one for each size, and for each
// further minute that the file system stays behind.
func nudgeFor(in Input) string {
	claim := *in.State.Claim
	minutes := 0
	if pending, is := claim.Is(corev1.PersistentVolumeClaimFileSystemResizePending); is && !pending.Since.IsZero() {
		minutes = max(0, int(in.State.Now.Sub(pending.Since)/nudgePeriod))
	}
	return fmt.Sprintf("%s-%d", claim.Requested.String(), minutes)
}
