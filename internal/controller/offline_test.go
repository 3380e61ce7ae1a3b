package controller_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		allHave(t, end, "3Gi")
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
			if _, replicas := templateOf(object); replicas == 0 && podOf(object) != pod.Name && shardOf(object) == shardOf(pod) {
				w.t.Errorf("%s is stopped beside %s", pod.Name, object.GetName())
			}
		}
		w.checkOthersServe(pod)
	}
}

// checkOthersServe fails the test when a pod that serves is taken away while another
// member of its shard does not run.
func (w *world) checkOthersServe(leaving *corev1.Pod) {
	w.t.Helper()
	running := 0
	for _, object := range w.list(&corev1.PodList{}) {
		if pod, _ := object.(*corev1.Pod); shardOf(pod) == shardOf(leaving) && ready(pod) && ready(leaving) {
			running++
		}
	}
	if ready(leaving) && running != int(w.cluster().Spec.Replicas)+1 {
		w.t.Errorf("%s is taken away while %d members of its shard are ready", leaving.Name, running)
	}
}

// With a replica in each shard the cluster serves all the while, and says so.
func TestReadyWhileGrowingOffline(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.growsOffline("3Gi")
	for range mostRounds {
		before := w.tap.count
		w.pass()
		conditions := w.cluster().Status.Conditions
		for kind, want := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionDegraded: metav1.ConditionFalse} {
			if told := meta.FindStatusCondition(conditions, kind); told.Status != want {
				t.Fatalf("after %d s: %s is %s: %s: %s", w.ticks, kind, told.Status, told.Reason, told.Message)
			}
		}
		if moved := w.tick(); !moved && w.tap.count == before && w.ready() {
			break
		}
	}
	for node, m := range w.picture().Members {
		if m.Capacity != "3Gi" {
			t.Errorf("node %s has %s", node, m.Capacity)
		}
	}
}

// Nobody is stopped without the user's leave, however long it takes, and a member
// that a person stops stays so until the person starts it again.
func TestAPersonStopsAMemberForItsVolume(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.offline = true
	w.resize("3Gi")
	rounds := func(count int) {
		for range count {
			w.pass()
			w.tick()
		}
	}
	scale := func(replicas int32) {
		set := &appsv1.StatefulSet{}
		w.must(w.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name.Workload(name.Node(clusterName, 0, 1))}, set))
		set.Spec.Replicas = &replicas
		w.must(w.api.Update(t.Context(), set))
	}
	rounds(60)
	if reason := w.cluster().Status.Reason; reason != v1alpha1.ReasonOfflineExpansionRequired || len(w.list(&corev1.PodList{})) != 6 {
		t.Fatalf("it says %s and has %d pods", reason, len(w.list(&corev1.PodList{})))
	}
	scale(0)
	rounds(30)
	if pods := len(w.list(&corev1.PodList{})); pods != 5 {
		t.Fatalf("there are %d pods", pods)
	}
	scale(1)
	rounds(30)
	if m := w.picture().Members[name.Node(clusterName, 0, 1)]; m.Capacity != "3Gi" {
		t.Errorf("the volume has %s", m.Capacity)
	}
}

// A person who takes the leave back while a member is stopped gets it back.
func TestLeaveTakenBackWhileAMemberIsStopped(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.growsOffline("3Gi")
	for range mostRounds {
		w.pass()
		if w.tick(); len(w.list(&corev1.PodList{})) < 6 {
			break
		}
	}
	cluster := w.cluster()
	cluster.Spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineManual
	w.must(w.api.Update(t.Context(), cluster))
	for range 30 {
		w.pass()
		w.tick()
	}
	if pods := len(w.list(&corev1.PodList{})); pods != 6 {
		t.Errorf("there are %d pods", pods)
	}
}

// A replica that cannot catch up does not take over, however often it is asked.
// The primary goes on meanwhile: it is never stopped in its place, and takes writes
// between the tries.
func TestPrimaryIsNotStoppedWithoutASuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, persistent(1, 1))
	w.settle()
	w.write(60)
	w.growsOffline("3Gi")
	primary, replica := w.servers.Nodes()[0], w.servers.Nodes()[1]
	rounds := func(count int) {
		for range count {
			w.pass()
			w.tick()
		}
	}
	for range mostRounds { // until the replica's volume has grown
		if rounds(1); w.picture().Members[name.Node(clusterName, 0, 1)].Capacity == "3Gi" {
			break
		}
	}
	rounds(2) // it syncs
	replica.Lag(true)
	w.must(w.servers.Write("what the replica lacks", "value"))
	rounds(120)
	asked := 0
	for _, write := range w.tap.log {
		if strings.HasPrefix(write, "CLUSTER FAILOVER") {
			asked++
		}
	}
	if asked < 2 || asked > 5 {
		t.Errorf("it was asked %d times in two minutes", asked)
	}
	if myself, _ := primary.View().Myself(); !primary.Running() || myself.Slots.IsEmpty() {
		t.Errorf("the primary runs: %t, owns %s", primary.Running(), myself.Slots)
	}
	replica.Lag(false)
	w.settle()
	if m := w.picture().Members[name.Node(clusterName, 0, 0)]; m.Capacity != "3Gi" {
		t.Errorf("the former primary's volume has %s", m.Capacity)
	}
}
