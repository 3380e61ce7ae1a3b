//go:build apiserver

package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
)

// An apply that omits a field removes it, so the half of a node's spec that
// changes at any time has a manager of its own.
func TestTwoManagersShareANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	spec := single()
	spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionRetain
	cluster := w.settledCluster(spec)
	before := get(w, "prod-0-0", &v1alpha1.ValkeyNode{})
	w.growTo2Gi(cluster)
	w.awaitSettled(cluster)
	after := get(w, "prod-0-0", &v1alpha1.ValkeyNode{})

	if after.Spec.Storage.Size.String() != "2Gi" {
		t.Errorf("the node asks for %s", after.Spec.Storage.Size)
	}
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		t.Errorf("growth changed the template:\n%s", diff)
	}
	owned := map[string][]string{}
	for _, entry := range after.ManagedFields {
		if entry.Subresource == "" {
			owned[entry.Manager] = append(owned[entry.Manager], storageFields(t, entry)...)
		}
	}
	want := map[string][]string{
		name.FieldManager:        {"f:claimName", "f:enabled", "f:storageClassName"},
		name.FieldManagerStorage: {"f:retention", "f:size"},
	}
	if diff := cmp.Diff(want, owned); diff != "" {
		t.Errorf("owners of the storage fields:\n%s", diff)
	}
}

// storageFields are the fields of spec.storage that an entry owns.
func storageFields(t *testing.T, entry metav1.ManagedFieldsEntry) []string {
	t.Helper()
	var fields struct {
		Spec struct {
			Storage map[string]any `json:"f:storage"`
		} `json:"f:spec"`
	}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(fields.Spec.Storage))
}

func TestServiceKeepsWhatIsOthersAndOnlyThat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	cluster := w.settledCluster(single())
	service := get(w, name.Service("prod"), &corev1.Service{})

	// Somebody adds their own, and changes ours.
	w.patch(service, `{"metadata":{"annotations":{"mesh":"on"},"labels":{"team":"a","`+name.LabelPartOf+`":"b"}}}`)
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(1)
	if err := admin.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	await(t, "the port is corrected", func() error { return w.serviceIsOurs(service) })
	if service.Annotations["mesh"] != "on" || service.Labels["team"] != "a" {
		t.Errorf("what another manager added is gone: %v, %v", service.Annotations, service.Labels)
	}

	// An older version of the operator applied more than this one does.
	older := build.Service(build.Cluster{Namespace: w.namespace, Name: "prod", UID: string(cluster.UID)}).
		WithLabels(map[string]string{"old": "1"})
	if err := admin.Apply(t.Context(), older, client.FieldOwner(name.FieldManager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	await(t, "the older version's label is gone", func() error {
		if get(w, service.Name, service).Labels["old"] != "" {
			return fmt.Errorf("the labels are %v", service.Labels)
		}
		return w.serviceIsOurs(service)
	})
}

// serviceIsOurs complains unless the Service has its port and labels.
func (w *world) serviceIsOurs(service *corev1.Service) error {
	get(w, service.Name, service)
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != name.PortClient || service.Spec.Ports[0].TargetPort.String() != name.PortNameClient {
		return fmt.Errorf("the ports are %v", service.Spec.Ports)
	}
	for label, value := range name.ClusterLabels("prod") {
		if service.Labels[label] != value {
			return fmt.Errorf("label %s is %q", label, service.Labels[label])
		}
	}
	return nil
}

// An object of ours that is deleted comes back.
func TestDeletedObjectsComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	w.settledCluster(single())
	for what, object := range map[string]client.Object{
		"the client Service":    &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name.Service("prod")}},
		"the headless Service":  &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name.HeadlessService("prod")}},
		"the settings":          &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name.Service("prod")}},
		"the disruption budget": &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name.Service("prod")}},
		"the node":              &v1alpha1.ValkeyNode{ObjectMeta: metav1.ObjectMeta{Name: "prod-0-0"}},
	} {
		object.SetNamespace(w.namespace)
		key := client.ObjectKeyFromObject(object)
		if err := admin.Get(t.Context(), key, object); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		old := object.GetUID()
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		await(t, what+" is back", func() error {
			if err := admin.Get(t.Context(), key, object); err != nil {
				return err
			}
			if object.GetUID() == old {
				return fmt.Errorf("it has not gone yet")
			}
			return nil
		})
	}
}

func TestForeignObjectsAreNotTakenOver(t *testing.T) {
	t.Parallel()
	for what, foreign := range map[string]client.Object{
		"Service/valkey-prod": &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "valkey-prod"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		},
		"ConfigMap/valkey-prod": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "valkey-prod"}},
		"Secret/internal-prod-system-passwords": &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "internal-prod-system-passwords"}, StringData: map[string]string{name.UserOperator: "known"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			foreign.SetNamespace(w.namespace)
			if err := admin.Create(t.Context(), foreign); err != nil {
				t.Fatal(err)
			}
			before := foreign.GetResourceVersion()
			w.operate(server)
			cluster := w.cluster(single())
			await(t, "the status names the taken name", func() error {
				get(w, "prod", cluster)
				if cluster.Status.State != v1alpha1.StateFailed || cluster.Status.Reason != v1alpha1.ReasonNameTaken {
					return fmt.Errorf("it is %s: %s: %s", cluster.Status.State, cluster.Status.Reason, cluster.Status.Message)
				}
				return nil
			})
			if after := get(w, foreign.GetName(), foreign).GetResourceVersion(); after != before {
				t.Errorf("it was written to: version %s, was %s", after, before)
			}
		})
	}
}

func TestAForeignClaimIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name.Claim("prod-0-0")},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(classGrowing),
			Resources: corev1.VolumeResourceRequirements{Requests: storage(corev1.ResourceStorage, "1Gi")},
		},
	}
	if err := admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.operate(server)
	cluster := w.cluster(single())
	await(t, "the cluster names the foreign volume", func() error {
		return conditionIs(get(w, "prod", cluster).Status.Conditions, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonForeignVolume)
	})
	claim := get(w, foreign.Name, &corev1.PersistentVolumeClaim{})
	for _, entry := range claim.ManagedFields {
		if entry.Manager == name.FieldManager {
			t.Errorf("the operator wrote to it: %v", entry)
		}
	}
	var sets appsv1.StatefulSetList
	if err := admin.List(t.Context(), &sets, client.InNamespace(w.namespace)); err != nil || len(sets.Items) > 0 {
		t.Errorf("%d workloads were made against it (%v)", len(sets.Items), err)
	}
}
