//go:build apiserver

package apitest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// persistent is the spec of a cluster with volumes: three members, no replicas.
func persistent() v1alpha1.ValkeyClusterSpec {
	return v1alpha1.ValkeyClusterSpec{
		Shards: 3, Image: "valkey/valkey:9.1.2",
		Storage: &v1alpha1.Storage{
			Enabled: true, Size: new(resource.MustParse("1Gi")), StorageClassName: new(classGrowing),
		},
	}
}

// single is the smallest spec with a volume.
func single() v1alpha1.ValkeyClusterSpec {
	spec := persistent()
	spec.Shards = 1
	return spec
}

// cluster makes a ValkeyCluster called prod.
func (w *world) cluster(spec v1alpha1.ValkeyClusterSpec) *v1alpha1.ValkeyCluster {
	w.t.Helper()
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod"}, Spec: spec}
	if err := admin.Create(w.t.Context(), cluster); err != nil {
		w.t.Fatalf("making a cluster: %v", err)
	}
	return cluster
}

// settledCluster makes a cluster and waits until nothing is left to do.
func (w *world) settledCluster(spec v1alpha1.ValkeyClusterSpec) *v1alpha1.ValkeyCluster {
	w.t.Helper()
	cluster := w.cluster(spec)
	w.awaitSettled(cluster)
	return cluster
}

func (w *world) awaitSettled(cluster *v1alpha1.ValkeyCluster) {
	w.t.Helper()
	await(w.t, "the cluster is settled", func() error {
		if err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		status := cluster.Status
		if status.State != v1alpha1.StateReady || status.ObservedGeneration != cluster.Generation {
			return fmt.Errorf("it is %s at generation %d of %d: %s: %s", status.State, status.ObservedGeneration, cluster.Generation, status.Reason, status.Message)
		}
		return w.nodesSettled(cluster)
	})
}

func (w *world) nodesSettled(cluster *v1alpha1.ValkeyCluster) error {
	var nodes v1alpha1.ValkeyNodeList
	if err := admin.List(w.t.Context(), &nodes, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	if want := int(cluster.Spec.Shards * (cluster.Spec.Replicas + 1)); len(nodes.Items) != want {
		return fmt.Errorf("%d nodes, want %d", len(nodes.Items), want)
	}
	for _, node := range nodes.Items {
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionWorkloadReady, v1alpha1.ConditionStorageReady} {
			if !meta.IsStatusConditionTrue(node.Status.Conditions, kind) {
				return fmt.Errorf("node %s is not %s: %v", node.Name, kind, node.Status.Conditions)
			}
		}
		if node.Status.ObservedGeneration != node.Generation {
			return fmt.Errorf("node %s has not been looked at since its last change", node.Name)
		}
	}
	return nil
}

// growTo2Gi edits the size in a cluster's spec, as its user.
func (w *world) growTo2Gi(cluster *v1alpha1.ValkeyCluster) {
	w.t.Helper()
	w.patch(cluster, `{"spec":{"storage":{"size":"2Gi"}}}`)
}

// patch sends a merge patch.
func (w *world) patch(object client.Object, patch string) {
	w.t.Helper()
	if err := admin.Patch(w.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatalf("patching %s: %v", object.GetName(), err)
	}
}

// get reads an object of the world's namespace.
func get[T client.Object](w *world, name string, into T) T {
	w.t.Helper()
	if err := admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, into); err != nil {
		w.t.Fatalf("reading %s: %v", name, err)
	}
	return into
}

// capacities are what the claims of the namespace have and ask for.
func (w *world) capacities() string {
	w.t.Helper()
	var claims corev1.PersistentVolumeClaimList
	if err := admin.List(w.t.Context(), &claims, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var sizes []string
	for _, claim := range claims.Items {
		requested, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
		sizes = append(sizes, capacity.String()+" of "+requested.String())
	}
	return strings.Join(sizes, ", ")
}

// conditionIs complains unless a condition has a status and reason.
func conditionIs(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) error {
	found := meta.FindStatusCondition(conditions, kind)
	if found == nil || found.Status != status || found.Reason != reason {
		return fmt.Errorf("condition %s is %v, want %s because of %s", kind, found, status, reason)
	}
	return nil
}
