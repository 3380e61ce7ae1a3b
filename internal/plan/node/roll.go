package node

import (
	"fmt"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// templateCurrent applies the pod template when what the user asked for has
// changed, and only then: what else this version of the operator would build
// differently is taken along by the next such change. The pod goes with that, so it
// must be one that may end. A workload that somebody else scaled to nothing stays so:
// the template would start it.
func templateCurrent(in Input) plan.Verdict {
	if in.State.Workload.Revision == in.Spec.Template.Revision {
		return settled()
	}
	if workload := in.State.Workload; workload.Replicas == 0 && !workload.Stopped {
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending, Look: plan.LookWorld,
			Note: fmt.Sprintf("%s %s was scaled to 0 by somebody else; it gets the new template once it is scaled to 1", workload.Kind, workload.Name),
		}
	}
	if !mayEnd(in) {
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonFailingOver, Look: plan.LookServer,
			Note: "the pod is to be replaced by one of the new template; its server still owns slots that a replica could take, or its agent does not say",
		}
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonRollingOut, Note: "the pod is being replaced by one of the new template",
		Actions: []plan.Action{ensureWorkload(in)},
	}
}

// podCurrent: the pod is made from the workload's template. Its controller replaces
// one of an older template, but may wait for a broken one to become well first: that
// one is deleted.
func podCurrent(in Input) plan.Verdict {
	pod, live := in.State.LivePod()
	if !live || pod.Revision == in.State.Workload.PodRevision {
		return settled()
	}
	verdict := plan.Verdict{
		Hold: plan.Wait, Reason: v1alpha1.ReasonRollingOut, Look: plan.LookServer,
		Note: fmt.Sprintf("pod %s is being replaced by one of the new template", pod.Name),
	}
	if in.State.Workload.Kind == v1alpha1.WorkloadStatefulSet && !pod.Ready && mayEnd(in) {
		verdict.Hold, verdict.Actions = plan.Settled, []plan.Action{plan.DeletePod{Pod: pod.Name, UID: pod.UID}}
	}
	return verdict
}

// PodRevision is the revision of the template that a node's pod was made from, and
// whether that is known.
func PodRevision(in Input, pod state.Pod) (string, bool) {
	workload := in.State.Workload
	if workload != nil && pod.Revision == workload.PodRevision {
		return workload.Revision, true
	}
	return pod.Revision, pod.Revision != ""
}
