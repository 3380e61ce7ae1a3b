package node

import (
	"fmt"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// workloadExists makes the workload, also while the claim is pending: many
// volumes are made only once a pod wants them. It is not made against a claim
// that is on its way out or belongs to somebody else.
func workloadExists(in Input) plan.Verdict {
	if other := in.State.OtherWorkload; other != nil {
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonChangeNotSupported,
			Note: fmt.Sprintf("%s %s runs this member, but a %s is wanted; set spec.workloadType back to %s",
				other.Kind, other.Name, in.Spec.Template.WorkloadType, other.Kind),
		}
	}
	workload := in.State.Workload
	switch {
	case workload == nil:
		return workloadMissing(in)
	case workload.Earlier:
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending, Look: plan.LookServer,
			Note: fmt.Sprintf("%s %s goes with an earlier ValkeyNode of this name; it is made anew once it is gone", workload.Kind, workload.Name),
		}
	case !workload.OwnedBy(in.State.UID) && !leftBehind(in, *workload):
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonNameTaken, Look: plan.LookWorld,
			Note: fmt.Sprintf("%s %s belongs to somebody else; delete it, or give the ValkeyCluster another name", workload.Kind, workload.Name),
		}
	case workload.Terminating:
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending, Look: plan.LookWorld,
			Note: fmt.Sprintf("%s %s is being deleted; it is made anew once it is gone", workload.Kind, workload.Name),
		}
	case !workload.OwnedBy(in.State.UID):
		return plan.Verdict{
			Reason: v1alpha1.ReasonPodPending, Note: fmt.Sprintf("%s %s was left without an owner and is taken up", workload.Kind, workload.Name),
			Actions: []plan.Action{plan.Adopt{
				Kind: string(workload.Kind), Name: workload.Name, UID: workload.UID, Owner: build.NodeReference(in.member()),
			}},
		}
	}
	return settled()
}

// leftBehind says whether a workload was made for this member, and lost its
// owner with a ValkeyNode that was deleted alone.
func leftBehind(in Input, workload state.Workload) bool {
	if !workload.Orphaned || workload.ClusterID != in.Spec.ClusterID {
		return false
	}
	for label, value := range in.member().Labels() {
		if workload.Labels[label] != value {
			return false
		}
	}
	return true
}

func workloadMissing(in Input) plan.Verdict {
	if in.Spec.Storage.Enabled && in.State.Claim == nil && in.Spec.Storage.Size == nil {
		// The claim comes with the size, the next moment: a pod that is scheduled
		// without it waits for the scheduler's second try.
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending, Look: plan.LookServer,
			Note: "the workload is made together with its claim",
		}
	}
	if in.Spec.Storage.Enabled && in.State.Claim != nil {
		if verdict := claimUsable(in); verdict.Hold != plan.Settled {
			return verdict
		}
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonPodPending, Note: "the workload is being made",
		Actions: []plan.Action{ensureWorkload(in)},
	}
}

func ensureWorkload(in Input) plan.Action {
	member := in.member()
	return plan.Ensure{
		Kind: string(in.Spec.Template.WorkloadType), Name: name.Workload(in.State.Name),
		Config: build.Workload(member), Manager: name.FieldManager,
	}
}

// podLabelled keeps the pod's role label as the server said last.
func podLabelled(in Input) plan.Verdict {
	pod, live := in.State.LivePod()
	role := string(in.State.Agent.Value.Role)
	if !live || !in.State.Agent.Known || role == "" || pod.Labels[name.LabelRole] == role {
		return plan.Verdict{Look: lookAgent}
	}
	return plan.Verdict{
		Look:    lookAgent,
		Actions: []plan.Action{plan.MarkPod{Pod: pod.Name, UID: pod.UID, Labels: map[string]string{name.LabelRole: role}}},
	}
}

// podReady waits for the pod and tells what stands in its way.
func podReady(in Input) plan.Verdict {
	pod, live := in.State.LivePod()
	if !live {
		return comingBack(in, podMissing(in))
	}
	if pod.Ready {
		return plan.Verdict{Reason: v1alpha1.ReasonPodReady, Note: fmt.Sprintf("pod %s is ready", pod.Name)}
	}
	if verdict, held := memberHeld(in); held {
		return verdict
	}
	if verdict, refused := settingRefused(in, pod); refused {
		return comingBack(in, verdict)
	}
	waiting := plan.Verdict{Hold: plan.Wait, Look: plan.LookServer}
	switch {
	case pod.Problem != "":
		waiting.Reason = v1alpha1.ReasonPodPending
		waiting.Note = fmt.Sprintf("pod %s: %s", pod.Name, pod.Problem)
	case pod.IP == "":
		waiting.Reason = v1alpha1.ReasonPodPending
		waiting.Note = fmt.Sprintf("pod %s is being started", pod.Name)
	case in.State.Agent.Known && in.State.Agent.Value.NotReady != "":
		waiting.Reason = v1alpha1.ReasonMembersStarting
		waiting.Note = fmt.Sprintf("pod %s: %s", pod.Name, in.State.Agent.Value.NotReady)
	default:
		waiting.Reason = v1alpha1.ReasonMembersStarting
		waiting.Note = fmt.Sprintf("pod %s runs but is not ready yet", pod.Name)
	}
	return comingBack(in, waiting)
}

func podMissing(in Input) plan.Verdict {
	waiting := plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending, Look: plan.LookServer}
	workload := in.State.Workload
	live := 0
	for _, pod := range in.State.Pods {
		if pod.Terminating {
			waiting.Note = fmt.Sprintf("pod %s is ending; the next one starts after it", pod.Name)
		} else if !pod.Finished() {
			live++
		}
	}
	switch {
	case live > 1:
		waiting.Note = "the member has more than one pod; all but one are about to end"
	case waiting.Note != "":
	case workload.Problem != "":
		waiting.Reason = v1alpha1.ReasonObjectRefused
		waiting.Note = fmt.Sprintf("%s %s cannot make its pod: %s", workload.Kind, workload.Name, workload.Problem)
		waiting.Look = plan.LookWorld
	default:
		waiting.Note = fmt.Sprintf("%s %s has no pod yet; if that lasts, its events say why", workload.Kind, workload.Name)
	}
	return waiting
}

// release is what a person may do about a held member when the data is lost for good.
func release(in Input) string {
	return fmt.Sprintf("; if there is no better copy of its data, let it start without by annotating ValkeyNode %s with %s=%s",
		in.State.Name, name.AnnotationStartEmpty, in.State.Agent.Value.Hold)
}

// memberHeld is the verdict on a member whose agent keeps the server from
// starting, and whether that is so.
func memberHeld(in Input) (plan.Verdict, bool) {
	agent := in.State.Agent
	if !agent.Known {
		return plan.Verdict{}, false
	}
	switch agent.Value.Decision {
	case protocol.DecisionForeignVolume:
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonForeignVolume, Look: lookAgent, Note: agent.Value.Message,
		}, true
	case protocol.DecisionVersionTooOld:
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonDowngradeRefused, Look: lookAgent, Note: agent.Value.Message,
		}, true
	case protocol.DecisionTableDamaged, protocol.DecisionDataDamaged:
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonFilesDamaged, Look: plan.LookServer, Note: agent.Value.Message + release(in),
		}, true
	case protocol.DecisionHeldEmpty:
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonMemberHeld, Look: plan.LookServer, Note: agent.Value.Message + release(in),
		}, true
	case protocol.DecisionVolumeLocked, protocol.DecisionVolumeUnusable, protocol.DecisionVolumeFull:
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonMemberHeld, Look: plan.LookServer, Note: agent.Value.Message,
		}, true
	default:
		return plan.Verdict{}, false
	}
}
