//go:build apiserver

package apitest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
)

const (
	// forcedPasses are as many as the drift check makes in an hour.
	forcedPasses = 60
	// quietTime covers several of the looks that the controllers take by
	// themselves, every ten seconds.
	quietTime = 25 * time.Second
)

// A settled cluster costs the API server reads alone: whatever makes the
// controllers look again, they find nothing to write and nothing to tell.
func TestSettledClusterWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.operate(server)
	spec := persistent()
	spec.Replicas = 1
	cluster := w.settledCluster(spec)
	w.growTo2Gi(cluster)
	w.awaitSettled(cluster)
	for _, growing := range []string{"prod", "prod-0-0", "prod-0-1", "prod-1-0", "prod-1-1", "prod-2-0", "prod-2-1"} {
		await(t, "the growth of "+growing+" is told", func() error { return w.oneEvent(growing, v1alpha1.ReasonVolumeExpanded) })
	}
	told := len(w.events())
	o.requests.forget()

	began := time.Now()
	for range forcedPasses {
		w.pass(o)
	}
	// Somebody else's business wakes the controllers as well.
	var pods corev1.PodList
	if err := admin.List(t.Context(), &pods, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		w.patch(&pods.Items[i], `{"metadata":{"annotations":{"somebody":"else"}}}`)
	}
	<-time.After(time.Until(began.Add(quietTime))) // nothing happening has no condition to wait for
	if writes := o.requests.writes(); len(writes) > 0 {
		t.Errorf("a settled cluster was written to: %v", writes)
	}
	if events := w.events(); len(events) != told {
		t.Errorf("a settled cluster told something: %d events, had %d", len(events), told)
	}
}

// pass makes one pass for the cluster and for each of its nodes.
func (w *world) pass(o *operator) {
	w.t.Helper()
	cluster := get(w, "prod", &v1alpha1.ValkeyCluster{})
	if _, err := o.clusters.Reconcile(w.t.Context(), cluster); err != nil {
		w.t.Errorf("a pass for the cluster: %v", err)
	}
	var nodes v1alpha1.ValkeyNodeList
	if err := admin.List(w.t.Context(), &nodes, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range nodes.Items {
		if _, err := o.nodes.Reconcile(w.t.Context(), &nodes.Items[i]); err != nil {
			w.t.Errorf("a pass for node %s: %v", nodes.Items[i].Name, err)
		}
	}
}

// events are what the operator told of the namespace so far.
func (w *world) events() []corev1.Event {
	w.t.Helper()
	var events corev1.EventList
	if err := admin.List(w.t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return events.Items
}
