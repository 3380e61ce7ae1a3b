//go:build apiserver

package apitest

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// Users sort events by their last time and look for VolumeExpan: each
// transition of a cluster is one event, with that time.
func TestEachTransitionIsOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	cluster := w.settledCluster(persistent())
	w.holdGrowth(true)
	w.growTo2Gi(cluster)
	await(t, "the growth is seen", func() error {
		return conditionIs(get(w, "prod", cluster).Status.Conditions, v1alpha1.ConditionStorageReady, metav1.ConditionFalse, v1alpha1.ReasonVolumeExpanding)
	})
	w.holdGrowth(false)
	w.awaitSettled(cluster)

	for _, reason := range []string{v1alpha1.ReasonHealthy, v1alpha1.ReasonVolumeExpanding, v1alpha1.ReasonVolumeExpanded} {
		await(t, "there is one event "+reason, func() error { return w.oneEvent(cluster.Name, reason) })
	}
	for _, event := range w.events() {
		if event.LastTimestamp.IsZero() || event.FirstTimestamp.IsZero() || event.Count != 1 {
			t.Errorf("event %s of %s: first %v, last %v, count %d", event.Reason, event.InvolvedObject.Name, event.FirstTimestamp, event.LastTimestamp, event.Count)
		}
		if event.Reason == v1alpha1.ReasonVolumeExpanding && !strings.Contains(event.Message, "2Gi") {
			t.Errorf("the event does not tell the size: %s", event.Message)
		}
	}
}

// oneEvent complains unless an object has exactly one event with a reason.
func (w *world) oneEvent(object, reason string) error {
	var found []string
	for _, event := range w.events() {
		if event.InvolvedObject.Name == object && event.Reason == reason {
			found = append(found, event.Message)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%d events %s: %q", len(found), reason, found)
	}
	return nil
}
