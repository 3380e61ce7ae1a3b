package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// stalledStops is what the rule about volumes in use says when stopping their
// members did not help, and whether it does.
func stalledStops(p plan.Plan) (finding, bool) {
	step, asked := p.Step(cluster.RuleOfflineVolumesGrown)
	if !asked || step.Hold != plan.Blocked || step.Reason != v1alpha1.ReasonExpansionStalled {
		return finding{}, false
	}
	return finding{step.Reason, step.Note}, true
}

// carriedOut says whether what stands in a volume's way is being dealt with:
// its driver grows no volume in use, and members are stopped for that.
func carriedOut(in cluster.Input, p plan.Plan, reason string) bool {
	_, stalled := stalledStops(p)
	return reason == v1alpha1.ReasonOfflineExpansionRequired && cluster.StopsMembers(in.Spec) && !stalled
}

// missed says whether clients miss a member whose pod is not ready: unless it is
// excused, and has a replica. Slots that are not served are told before that.
func missed(in cluster.Input, member state.Member) bool {
	return in.Spec.Replicas == 0 || !cluster.Excused(in, member)
}

// returning says whether a rule that is not settled does no more than take back a
// member that was away: it is made known at its new address, and, if it lost its
// memory with its pod, given to its primary as a new replica.
func returning(in cluster.Input, p plan.Plan, rule string) bool {
	away := map[string]bool{}
	for _, member := range in.State.Members {
		if member.Wanted && cluster.Away(in, member) {
			away[member.Name] = true
		}
	}
	switch rule {
	case "nodesMet":
		return len(away) > 0
	case "replicasAttached":
		step, _ := p.Step(rule)
		return len(step.Actions) > 0 && !slices.ContainsFunc(step.Actions, func(action plan.Action) bool {
			attach, is := action.(plan.AttachReplica)
			return !is || !away[attach.Replica.Node]
		})
	default:
		return false
	}
}

// restartEvents tell that a member is stopped for its volume to grow, and that it
// runs again.
func restartEvents(prev, next v1alpha1.ValkeyNodeStatus) []Event {
	before, after := conditionOf(prev, v1alpha1.ConditionWorkloadReady), conditionOf(next, v1alpha1.ConditionWorkloadReady)
	was, is := before.Reason == v1alpha1.ReasonVolumeExpanding, after.Reason == v1alpha1.ReasonVolumeExpanding
	switch {
	case is && !was:
		return []Event{{corev1.EventTypeNormal, v1alpha1.EventVolumeExpansionRestart, after.Message}}
	case was && prev.PodUID == "" && next.PodUID != "":
		return []Event{{corev1.EventTypeNormal, v1alpha1.EventVolumeExpansionRestart, "the member is started again: pod " + next.PodName}}
	default:
		return nil
	}
}
