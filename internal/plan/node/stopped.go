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
// its member was stopped for its volume to grow. Until then its absence is our
// doing; later it is told as what it is. A pod is scheduled and its volume mounted
// and its file system grown within a minute, mostly; the rest is for loading.
const comingBackTime = 2 * time.Minute

// longestAway is how long after its stop a member without a pod is taken for one
// that is away for its volume: the half hour after which the cluster lets it run
// again at the latest, and what its pod takes to end and to be made. Later something
// else keeps its pod away.
const longestAway = 35 * time.Minute

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
// since. A slot owner ends only where no replica could take its place.
func mayEnd(in Input) bool {
	pod, live := in.State.LivePod()
	if !live || pod.Phase != corev1.PodRunning {
		return true // it serves nobody
	}
	alone := strings.HasSuffix(in.State.Shape, "x0")
	return in.State.Agent.Known && (alone || in.State.Agent.Value.OwnsSlots == protocol.No)
}

func scale(workload state.Workload, replicas int32) plan.Action {
	return plan.ScaleWorkload{Kind: workload.Kind, Name: workload.Name, Version: workload.Version, Replicas: replicas}
}

// comingBack words a verdict on a pod that is not ready as what it is part of, while
// the member comes back from being stopped for its volume. What a person
// must mend, and what takes too long, is told as it is.
func comingBack(in Input, verdict plan.Verdict) plan.Verdict {
	told := meta.FindStatusCondition(in.State.Status.Conditions, v1alpha1.ConditionWorkloadReady)
	wasStopped := told != nil && told.Status == metav1.ConditionFalse && told.Reason == v1alpha1.ReasonVolumeExpanding
	if !wasStopped || verdict.Hold != plan.Wait || verdict.Reason == v1alpha1.ReasonObjectRefused || late(in, told.LastTransitionTime.Time) {
		return verdict
	}
	verdict.Reason = v1alpha1.ReasonVolumeExpanding
	verdict.Note = "the member starts again after its stop for its volume to grow: " + verdict.Note
	return verdict
}

// late says whether a member that was stopped is away for longer than that takes.
func late(in Input, stopped time.Time) bool {
	pod, live := in.State.LivePod()
	if !live {
		return in.State.Now.Sub(stopped) > longestAway
	}
	return pod.Problem != "" || in.State.Now.Sub(pod.CreatedAt) > comingBackTime
}
