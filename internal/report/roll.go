package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
)

// rollout is how far a new template has got; nil when every member has it, or nobody
// may be given it yet. It began when it was first seen. A pass that came to nothing of
// it leaves it as it was.
func rollout(in cluster.Input, p plan.Plan) *v1alpha1.RolloutStatus {
	before := in.State.Status.Rollout
	step, asked := p.Step(cluster.RuleTemplatesCurrent)
	switch {
	case !asked:
		return before
	case step.Reason != v1alpha1.ReasonRollingOut:
		return nil
	}
	since := metav1.NewTime(in.State.Now).Rfc3339Copy()
	if before != nil {
		since = before.Since
	}
	updated, members := cluster.RolledTo(in)
	return &v1alpha1.RolloutStatus{
		Since: since, Updated: int32(updated), Members: int32(members), StoppedBy: bounded(cluster.RollStoppedBy(in)),
	}
}

// rollEvents tell that a roll begins, that it stops, and that it is over.
func rollEvents(prev, next v1alpha1.ValkeyClusterStatus) []Event {
	before, after := prev.Rollout, next.Rollout
	stopped := func(roll *v1alpha1.RolloutStatus) bool { return roll != nil && roll.StoppedBy != "" }
	var events []Event
	if before == nil && after != nil {
		events = append(events, Event{corev1.EventTypeNormal, v1alpha1.ReasonRollingOut, fmt.Sprintf("the new template is rolled out to %d members", after.Members-after.Updated)})
	}
	if stopped(after) && !stopped(before) {
		events = append(events, Event{corev1.EventTypeWarning, v1alpha1.EventRolloutStopped, "nobody else is replaced: " + after.StoppedBy})
	}
	if before != nil && after == nil {
		events = append(events, Event{corev1.EventTypeNormal, v1alpha1.EventRolledOut, "no member is behind the newest template any more"})
	}
	return events
}
