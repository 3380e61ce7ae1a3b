//go:build apiserver

package apitest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// The garbage collector deletes what a cluster consists of, in any order, while
// the cluster is still there and waits. Nothing comes back meanwhile.
func TestNothingComesBackDuringADeletion(t *testing.T) {
	t.Parallel()
	for propagation, waits := range map[metav1.DeletionPropagation]bool{
		metav1.DeletePropagationForeground: true,
		metav1.DeletePropagationBackground: false,
	} {
		t.Run(string(propagation), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			o := w.operate(server)
			cluster := w.settledCluster(single())
			if err := admin.Delete(t.Context(), cluster, client.PropagationPolicy(propagation)); err != nil {
				t.Fatal(err)
			}
			err := admin.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)
			if waits != (err == nil) {
				t.Fatalf("the cluster is there: %t (%v), want %t", err == nil, err, waits)
			}
			w.awaitDeletionSeen(o, cluster)
			w.wantNothingBack(o)
		})
	}
}

// wantNothingBack asserts that nothing but the kept claim is left when the
// collector has deleted the rest, and that nothing was written meanwhile.
func (w *world) wantNothingBack(o *operator) {
	w.t.Helper()
	o.requests.forget()
	w.collect("ValkeyNode", "StatefulSet") // what nodes own first, which tempts them most
	w.passOnDeleted(o)
	w.collect("ValkeyCluster")
	w.passOnDeleted(o)
	if writes := o.requests.writes(); len(writes) > 0 {
		w.t.Errorf("written during the deletion: %v", writes)
	}
	w.each(func(kind string, child client.Object) {
		if kind != "PersistentVolumeClaim" {
			w.t.Errorf("%s %s is there", kind, child.GetName())
		}
	})
	if sizes := w.capacities(); sizes != "1Gi of 1Gi" {
		w.t.Errorf("the kept volume has %q", sizes)
	}
}

// collect deletes what is owned by objects of some kinds, until nothing is left.
func (w *world) collect(owners ...string) {
	w.t.Helper()
	await(w.t, "all owned objects are gone", func() error {
		var left []string
		w.each(func(kind string, child client.Object) {
			owned := slices.ContainsFunc(child.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
				return slices.Contains(owners, owner.Kind)
			})
			if !owned {
				return
			}
			left = append(left, kind+" "+child.GetName())
			if err := client.IgnoreNotFound(admin.Delete(w.t.Context(), child)); err != nil {
				w.t.Error(err)
			}
		})
		if len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

// awaitDeletionSeen waits until the controllers' own cache shows the deletion,
// and the passes that began before are over.
func (w *world) awaitDeletionSeen(o *operator, cluster *v1alpha1.ValkeyCluster) {
	w.t.Helper()
	await(w.t, "the controllers see the deletion", func() error {
		seen := &v1alpha1.ValkeyCluster{}
		err := o.clusters.Client.Get(w.t.Context(), client.ObjectKeyFromObject(cluster), seen)
		if err == nil && seen.DeletionTimestamp == nil {
			return errors.New("they still see it alive")
		}
		return client.IgnoreNotFound(err)
	})
	w.passOnDeleted(o)
}

// passOnDeleted makes passes as the controllers would for what they still see.
func (w *world) passOnDeleted(o *operator) {
	w.t.Helper()
	var clusters v1alpha1.ValkeyClusterList
	var nodes v1alpha1.ValkeyNodeList
	for _, list := range []client.ObjectList{&clusters, &nodes} {
		if err := admin.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range clusters.Items {
		if _, err := o.clusters.Reconcile(w.t.Context(), &clusters.Items[i]); err != nil {
			w.t.Errorf("a pass for the cluster: %v", err)
		}
	}
	for i := range nodes.Items {
		if _, err := o.nodes.Reconcile(w.t.Context(), &nodes.Items[i]); err != nil {
			w.t.Errorf("a pass for node %s: %v", nodes.Items[i].Name, err)
		}
	}
}

// A finalizer of ours would keep a namespace from going once the operator has
// gone: there is none on anything.
func TestNamespaceGoesWithoutTheOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.operate(server)
	spec := single()
	spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete
	cluster := w.settledCluster(spec)
	o.stop()
	if len(cluster.Finalizers) > 0 {
		t.Errorf("the cluster has finalizers %v", cluster.Finalizers)
	}
	kinds := map[string]bool{}
	w.each(func(kind string, child client.Object) {
		kinds[kind] = true
		for _, finalizer := range child.GetFinalizers() {
			if !strings.HasPrefix(finalizer, "kubernetes.io/") {
				t.Errorf("%s %s has finalizer %s", kind, child.GetName(), finalizer)
			}
		}
	})
	if len(kinds) != len(children()) {
		t.Errorf("looked at %v only", kinds)
	}
	claim := get(w, "valkey-prod-0-0-data", &corev1.PersistentVolumeClaim{})
	if owners := claim.OwnerReferences; len(owners) != 1 || owners[0].UID != cluster.UID || owners[0].Controller != nil && *owners[0].Controller {
		t.Errorf("the claim's owners are %v, want the cluster, not as its controller", owners)
	}
	if err := admin.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)); err != nil || cluster.DeletionTimestamp != nil {
		t.Errorf("the cluster is not gone at once: %v, since %v", err, cluster.DeletionTimestamp)
	}
}

// each visits all objects in the namespace of the kinds that a cluster consists of.
func (w *world) each(visit func(kind string, child client.Object)) {
	w.t.Helper()
	for kind, list := range children() {
		if err := admin.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			child, is := item.(client.Object)
			if !is {
				return fmt.Errorf("%T is no object", item)
			}
			visit(kind, child)
			return nil
		}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func children() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"ValkeyNode": &v1alpha1.ValkeyNodeList{}, "StatefulSet": &appsv1.StatefulSetList{}, "Pod": &corev1.PodList{},
		"Service": &corev1.ServiceList{}, "ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{},
	}
}
