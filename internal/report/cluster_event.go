package report

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// ClusterEvents are what happened between two statuses of a cluster: one event
// a transition, none while nothing changes.
func ClusterEvents(prev, next v1alpha1.ValkeyClusterStatus) []Event {
	var events []Event
	events = append(events, rollEvents(prev, next)...)
	events = append(events, storageEvents(prev, next)...)
	events = append(events, useEvents(prev, next)...)
	events = append(events, readyEvents(prev, next)...)
	before, after := condition(prev, v1alpha1.ConditionDegraded), condition(next, v1alpha1.ConditionDegraded)
	// Trouble with volumes is told as such, and not a second time.
	aboutVolumes := condition(next, v1alpha1.ConditionStorageReady).Reason == after.Reason
	if after.Status == metav1.ConditionTrue && before.Reason != after.Reason && !aboutVolumes {
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: after.Reason, Message: after.Message})
	}
	before, after = condition(prev, v1alpha1.ConditionConfigurationWarning), condition(next, v1alpha1.ConditionConfigurationWarning)
	if after.Status == metav1.ConditionTrue && before.Reason != after.Reason {
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: after.Reason, Message: after.Message})
	}
	return events
}

func condition(status v1alpha1.ValkeyClusterStatus, conditionType string) metav1.Condition {
	if found := meta.FindStatusCondition(status.Conditions, conditionType); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func readyEvents(prev, next v1alpha1.ValkeyClusterStatus) []Event {
	before, after := condition(prev, v1alpha1.ConditionReady), condition(next, v1alpha1.ConditionReady)
	switch {
	case after.Status == metav1.ConditionTrue && before.Status != metav1.ConditionTrue:
		return []Event{{Type: corev1.EventTypeNormal, Reason: after.Reason, Message: after.Message}}
	case after.Status == metav1.ConditionFalse && before.Status == metav1.ConditionTrue:
		return []Event{{Type: corev1.EventTypeWarning, Reason: after.Reason, Message: after.Message}}
	default:
		return nil
	}
}
