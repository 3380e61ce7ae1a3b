package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// A growth that is known not to be possible touches no node and no claim, and goes on by
// itself once it is.
func TestAGrowthThatIsNotPossible(t *testing.T) {
	t.Parallel()
	fixed := func(w *world, allowed bool) {
		class := &storagev1.StorageClass{}
		w.must(w.api.Get(w.t.Context(), client.ObjectKey{Name: className}, class))
		class.AllowVolumeExpansion = &allowed
		w.must(w.api.Update(w.t.Context(), class))
	}
	for what, row := range map[string]struct {
		hinder, help func(w *world)
		reason       string
	}{
		"the class does not allow it": {
			hinder: func(w *world) { fixed(w, false) }, help: func(w *world) { fixed(w, true) },
			reason: v1alpha1.ReasonStorageClassNotExpandable,
		},
		"a quota has room for some of the volumes": {
			hinder: func(w *world) {
				w.must(w.api.Create(w.t.Context(), &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
					Status:     corev1.ResourceQuotaStatus{Hard: storageOf("10Gi"), Used: storageOf("6Gi")},
				}))
			},
			help: func(w *world) {
				w.must(w.api.Delete(w.t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"}}))
			},
			reason: v1alpha1.ReasonQuotaExceeded,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := formed(t, true)
			row.hinder(w)
			w.resize("3Gi")
			for range 5 {
				w.pass()
				w.tick()
			}
			told := meta.FindStatusCondition(w.cluster().Status.Conditions, v1alpha1.ConditionStorageReady)
			if told.Reason != row.reason || !strings.Contains(told.Message, "no volume was touched") {
				t.Errorf("it says %s: %s", told.Reason, told.Message)
			}
			if asked := w.asked(); asked != "map[1Gi:12]" {
				t.Errorf("nodes and claims ask for %s", asked)
			}
			row.help(w)
			w.settle()
			allHave(t, w.picture(), "3Gi")
		})
	}
}

func storageOf(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse(size)}
}

// asked counts the nodes and claims that ask for each size.
func (w *world) asked() string {
	w.t.Helper()
	sizes := map[string]int{}
	for _, object := range append(w.list(&v1alpha1.ValkeyNodeList{}), w.list(&corev1.PersistentVolumeClaimList{})...) {
		switch asks := object.(type) {
		case *v1alpha1.ValkeyNode:
			sizes[asks.Spec.Storage.Size.String()]++
		case *corev1.PersistentVolumeClaim:
			sizes[asks.Spec.Resources.Requests.Storage().String()]++
		}
	}
	return fmt.Sprint(sizes)
}

// A member that lost its volume gets one that holds what its shard holds, though the
// spec asks for less: somebody grew the other volumes by hand.
func TestAVolumeIsBornAsLargeAsItsShards(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	grown := &corev1.PersistentVolumeClaim{}
	w.must(w.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name.Claim(name.Node(clusterName, 1, 0))}, grown))
	grown.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("5Gi")
	grown.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("5Gi")
	w.must(w.api.Update(t.Context(), grown))
	w.settle()
	lost := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name.Claim(name.Node(clusterName, 1, 1))}}
	w.must(w.api.Delete(t.Context(), lost))
	delete(w.sizes, lost.Name)
	w.endPods(func(pod *corev1.Pod) bool { return nodeOfPod(pod) == name.Node(clusterName, 1, 1) })
	w.settle()
	end := w.picture()
	for node, want := range map[string]string{name.Node(clusterName, 1, 1): "5Gi", name.Node(clusterName, 2, 1): "1Gi"} {
		if got := end.Members[node].Capacity; got != want {
			t.Errorf("the volume of node %s has %s, want %s", node, got, want)
		}
	}
	told := meta.FindStatusCondition(w.cluster().Status.Conditions, v1alpha1.ConditionStorageReady)
	if told.Status != metav1.ConditionTrue || !strings.Contains(told.Message, "1Gi to 5Gi") {
		t.Errorf("it says %s %s: %s", told.Status, told.Reason, told.Message)
	}
}
