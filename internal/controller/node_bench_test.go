package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/observe"
)

// bench is a node controller on a fake API server that counts writes.
type bench struct {
	t          *testing.T
	client     client.WithWatch
	reconciler *NodeReconciler
	events     *record.FakeRecorder
	now        time.Time
	facts      protocol.Facts
	writes     int
	refuse     error // what the server answers to patches of claims
}

func newBench(t *testing.T, storage v1alpha1.NodeStorage) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), events: record.NewFakeRecorder(100)}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	b.client = interceptor.NewClient(fake.NewClientBuilder().
		WithScheme(known).
		WithStatusSubresource(&v1alpha1.ValkeyNode{}).
		WithObjects(
			&v1alpha1.ValkeyCluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prod", UID: "cluster-uid"},
				Spec:       v1alpha1.ValkeyClusterSpec{Shards: 3, Replicas: 1},
			},
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, AllowVolumeExpansion: new(true)},
			&v1alpha1.ValkeyNode{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prod-0-1", UID: "node-uid", Generation: 1},
				Spec: v1alpha1.ValkeyNodeSpec{
					ClusterName: "prod", ClusterID: "id-1", Shard: 0, Node: 1, Storage: storage,
					Template: v1alpha1.NodeTemplate{Revision: "r", WorkloadType: v1alpha1.WorkloadStatefulSet, Image: "valkey", AgentImage: "operator"},
				},
			}).
		Build(), b.counting())
	b.reconciler = &NodeReconciler{
		Client: b.client, Events: b.events,
		Observer: observe.NodeObserver{
			Reader: b.client, ReadClasses: true, Now: func() time.Time { return b.now },
			Ask: func(context.Context, string) (protocol.Facts, error) { return b.facts, nil },
		},
	}
	return b
}

func (b *bench) counting() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
			b.writes++
			return to.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			b.writes++
			if _, is := object.(*corev1.PersistentVolumeClaim); is && b.refuse != nil {
				return b.refuse
			}
			return to.Patch(ctx, object, patch, options...)
		},
		Apply: func(ctx context.Context, to client.WithWatch, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			b.writes++
			return to.Apply(ctx, configuration, options...)
		},
		SubResourcePatch: func(ctx context.Context, to client.Client, part string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			b.writes++
			return to.SubResource(part).Patch(ctx, object, patch, options...)
		},
	}
}

// pass runs one pass as a manager would.
func (b *bench) pass() (ctrl.Result, error) {
	b.t.Helper()
	runner := reconcile.AsReconciler(b.client, b.reconciler)
	return runner.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "prod-0-1"}})
}

func (b *bench) mustPass() ctrl.Result {
	b.t.Helper()
	result, err := b.pass()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func read[T client.Object](b *bench, into T, objectName string) T {
	b.t.Helper()
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: "shop", Name: objectName}, into); err != nil {
		b.t.Fatal(err)
	}
	return into
}

func (b *bench) node() *v1alpha1.ValkeyNode { return read(b, &v1alpha1.ValkeyNode{}, "prod-0-1") }
func (b *bench) claim() *corev1.PersistentVolumeClaim {
	return read(b, &corev1.PersistentVolumeClaim{}, "valkey-prod-0-1-data")
}

func (b *bench) update(object client.Object) {
	b.t.Helper()
	if err := b.client.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

// claimStatus changes the claim's status, as the storage controllers do.
func (b *bench) claimStatus(edit func(*corev1.PersistentVolumeClaim)) {
	b.t.Helper()
	claim := b.claim()
	edit(claim)
	if err := b.client.Status().Update(b.t.Context(), claim); err != nil {
		b.t.Fatal(err)
	}
}

// run does what the rest of Kubernetes does once claim and workload are made:
// the volume is bound, and the pod runs and is ready.
func (b *bench) run() {
	b.t.Helper()
	claim := b.claim()
	claim.Spec.StorageClassName = new("fast")
	b.update(claim)
	b.claimStatus(func(claim *corev1.PersistentVolumeClaim) {
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "valkey-prod-0-1-0", UID: "pod-uid", Labels: name.NodeLabels("prod", 0, 1),
		Annotations: map[string]string{name.AnnotationTemplateRevision: "r"},
	}}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.7",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if err := b.client.Create(b.t.Context(), pod); err != nil {
		b.t.Fatal(err)
	}
	b.facts = protocol.Facts{ClusterID: "id-1", Shard: 0, Node: 1, NodeID: "abc", Role: protocol.RoleReplica, Server: protocol.ServerRunning, Ready: true}
}

func (b *bench) settle() {
	b.t.Helper()
	b.mustPass()
	b.run()
	for range 5 {
		b.mustPass()
	}
}

func (b *bench) told() []string {
	var events []string
	for {
		select {
		case event := <-b.events.Events:
			events = append(events, strings.Join(strings.Fields(event)[:2], " "))
		default:
			return events
		}
	}
}

func (b *bench) storageReady() string {
	b.t.Helper()
	found := meta.FindStatusCondition(b.node().Status.Conditions, v1alpha1.ConditionStorageReady)
	if found == nil {
		return ""
	}
	return string(found.Status) + " " + found.Reason
}

func persistent() v1alpha1.NodeStorage {
	return v1alpha1.NodeStorage{Enabled: true, ClaimName: "valkey-prod-0-1-data", Size: new(resource.MustParse("1Gi"))}
}
