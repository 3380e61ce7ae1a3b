//go:build apiserver

package apitest

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// What is deleted with --cascade=orphan comes back, and takes up what it left.
func TestOrphansAreTakenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	cluster := w.settledCluster(single())
	pod := get(w, name.Workload("prod-0-0")+"-0", &corev1.Pod{}).UID

	w.deleteAlone(get(w, "prod-0-0", &v1alpha1.ValkeyNode{}))
	await(t, "another node controls the workload", func() error {
		var node v1alpha1.ValkeyNode
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "prod-0-0"}, &node); err != nil {
			return err
		}
		return controlledBy(get(w, name.Workload("prod-0-0"), &appsv1.StatefulSet{}), node.UID)
	})
	w.awaitSettled(cluster)

	w.deleteAlone(cluster)
	cluster = w.settledCluster(single())
	await(t, "another cluster controls all objects", func() error {
		var left []error
		w.each(func(kind string, child client.Object) {
			switch kind {
			case "Pod", "StatefulSet", "PersistentVolumeClaim": // a workload's, a node's, and nobody's
			default:
				if err := controlledBy(child, cluster.UID); err != nil {
					left = append(left, fmt.Errorf("%s %s: %w", kind, child.GetName(), err))
				}
			}
		})
		if len(left) > 0 {
			return left[0]
		}
		return nil
	})
	if now := get(w, name.Workload("prod-0-0")+"-0", &corev1.Pod{}).UID; now != pod {
		t.Errorf("the pod was replaced: %s, was %s", now, pod)
	}
}

func controlledBy(object client.Object, uid types.UID) error {
	if controller := metav1.GetControllerOf(object); controller == nil || controller.UID != uid {
		return fmt.Errorf("its controller is %v, want %s", controller, uid)
	}
	return nil
}

// deleteAlone deletes an object but nothing that it owns, as the garbage
// collector does on demand: first the owned objects are released.
func (w *world) deleteAlone(owner client.Object) {
	w.t.Helper()
	if err := admin.Delete(w.t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		w.t.Fatal(err)
	}
	w.each(func(_ string, child client.Object) {
		ofOwner := func(reference metav1.OwnerReference) bool { return reference.UID == owner.GetUID() }
		if !slices.ContainsFunc(child.GetOwnerReferences(), ofOwner) {
			return
		}
		before, _ := child.DeepCopyObject().(client.Object)
		child.SetOwnerReferences(slices.DeleteFunc(slices.Clone(child.GetOwnerReferences()), ofOwner))
		if err := admin.Patch(w.t.Context(), child, client.MergeFrom(before)); err != nil {
			w.t.Fatal(err)
		}
	})
	w.patch(owner, `{"metadata":{"finalizers":null}}`)
}
