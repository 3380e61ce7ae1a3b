package node

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// comingBackTime is how long a pod may take, from its creation, to be ready after
// its member was stopped for its volume to grow, or got a new template. Until then its absence is our
// doing; later it is told as what it is. A pod is scheduled and its volume mounted
// and its file system grown within a minute, mostly; the rest is for loading.
const comingBackTime = 2 * time.Minute

// longestAway is how long after its stop a member without a pod is taken for one
// that is away for its volume: the half hour after which the cluster lets it run
// again at the latest, and what its pod takes to end and to be made. Later something
// else keeps its pod away.
const longestAway = 35 * time.Minute

// longestReplaced is how long a member may be without a pod while that is replaced:
// a pod is given a minute to end, and its successor is made within seconds.
const longestReplaced = 3 * time.Minute

// podWanted: the workload has its pod, or none while the member is stopped for
// its volume to grow. A workload that somebody else scaled to nothing is left
// alone: that is how a person stops a member.
func podWanted(in Input) plan.Verdict {
	workload := *in.State.Workload
	stopped := plan.Verdict{
		Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld,
		Note: fmt.Sprintf("the member is stopped while its volume %s grows: its driver grows no volume in use", in.Spec.Storage.ClaimName),
	}
	switch {
	case in.Spec.Stopped && workload.Replicas > 0 && !mayEnd(in):
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonFailingOver, Look: plan.LookServer,
			Note: "the member is to be stopped for its volume to grow; it still owns slots that a replica could take, or its agent does not say",
		}
	case in.Spec.Stopped && workload.Replicas > 0:
		stopped.Actions = []plan.Action{scale(workload, 0)}
		return stopped
	case in.Spec.Stopped:
		stopped.Hold = plan.Wait
		return stopped
	case !workload.Stopped:
		return settled()
	}
	if in.Spec.Storage.Enabled && in.State.Claim != nil {
		if verdict := claimUsable(in); verdict.Hold != plan.Settled {
			return verdict
		}
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld, Note: "the member is started again after its stop for its volume to grow",
		Actions: []plan.Action{scale(workload, 1)},
	}
}

// mayEnd says whether the member's pod may be taken away, as its agent sees it now:
// the cluster decided that on an observation, and another election may have been
// since. A slot owner ends only where no replica could take its place, or where it
// serves nobody.
func mayEnd(in Input) bool {
	pod, live := in.State.LivePod()
	if !live || pod.Phase != corev1.PodRunning || !pod.Ready && pod.Problem != "" {
		return true // no server runs
	}
	alone := strings.HasSuffix(in.State.Shape, "x0")
	agent := in.State.Agent
	return agent.Known && (alone || agent.Value.OwnsSlots == protocol.No || agent.Value.Server == protocol.ServerHeld)
}

func scale(workload state.Workload, replicas int32) plan.Action {
	return plan.ScaleWorkload{Kind: workload.Kind, Name: workload.Name, Version: workload.Version, Replicas: replicas}
}

// comingBack words a verdict on a pod that is not ready as what it is part of, while
// the member comes back from a stop of ours: for its volume, or for a new template.
// What a person must mend, and what takes too long, is told as it is.
func comingBack(in Input, verdict plan.Verdict) plan.Verdict {
	told := meta.FindStatusCondition(in.State.Status.Conditions, v1alpha1.ConditionWorkloadReady)
	if told == nil || told.Status != metav1.ConditionFalse || byOurHand[told.Reason] == "" {
		return verdict
	}
	if verdict.Hold != plan.Wait || verdict.Reason == v1alpha1.ReasonObjectRefused || late(in, *told) {
		return verdict
	}
	verdict.Reason = told.Reason
	verdict.Note = fmt.Sprintf("the member starts again %s: %s", byOurHand[told.Reason], verdict.Note)
	return verdict
}

// byOurHand are the reasons for which the operator takes a pod away, and what a
// member comes back from that was.
var byOurHand = map[string]string{
	v1alpha1.ReasonVolumeExpanding: "after its stop for its volume to grow",
	v1alpha1.ReasonRollingOut:      "with the new template",
}

// late says whether a member whose pod was taken away is without one for longer than
// that takes.
func late(in Input, told metav1.Condition) bool {
	pod, live := in.State.LivePod()
	away := in.State.Now.Sub(told.LastTransitionTime.Time)
	switch {
	case live:
		return pod.Problem != "" || in.State.Now.Sub(pod.CreatedAt) > comingBackTime
	case told.Reason == v1alpha1.ReasonVolumeExpanding || len(in.State.Pods) > 0:
		return away > longestAway
	default:
		return away > longestReplaced
	}
}
