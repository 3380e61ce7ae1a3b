package controller_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// A driver grows no volume in use, and the user lets members be stopped for it.
func TestKilledWhileGrowingOffline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, persistent(2, 1))
	w.settle()
	w.write(60)
	w.settle() // the replicas have the keys
	before := w.picture()
	w.growsOffline("3Gi")
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		sameMembers(t, before, end)
		for node, m := range end.Members {
			if m.Size != "3Gi" || m.Capacity != "3Gi" {
				t.Errorf("node %s has %s and asks for %s", node, m.Capacity, m.Size)
			}
		}
	})
}

// growsOffline has the user ask for another size of a driver that grows no volume
// in use.
func (w *world) growsOffline(size string) {
	w.t.Helper()
	w.offline = true
	cluster := w.cluster()
	cluster.Spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineRollingRestart
	w.must(w.api.Update(w.t.Context(), cluster))
	w.resize(size)
}

func shardOf(object client.Object) string { return object.GetLabels()[name.LabelShardIndex] }

// checkStops fails the test when the operator takes a pod away that must stay: a
// slot owner's, where there is a replica, or the second one of a shard.
func (w *world) checkStops(pods []*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		at, lives := w.live[pod.Status.PodIP]
		if !lives {
			continue
		}
		myself, _ := w.servers.Nodes()[at.server].View().Myself()
		if !myself.Slots.IsEmpty() && w.cluster().Spec.Replicas > 0 {
			w.t.Errorf("%s is stopped while it owns slots %s", pod.Name, myself.Slots)
		}
		for _, object := range w.list(&appsv1.StatefulSetList{}) {
			_, replicas := templateOf(object)
			if replicas == 0 && podOf(object) != pod.Name && shardOf(object) == shardOf(pod) {
				w.t.Errorf("%s is stopped beside %s", pod.Name, object.GetName())
			}
		}
	}
}
