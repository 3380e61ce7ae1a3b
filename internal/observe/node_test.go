package observe

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	return known
}

// objects are a node that is all there; tests leave some out or edit them.
type objects struct {
	node       *v1alpha1.ValkeyNode
	cluster    *v1alpha1.ValkeyCluster
	claim      *corev1.PersistentVolumeClaim
	class      *storagev1.StorageClass
	set        *appsv1.StatefulSet
	deployment *appsv1.Deployment
	pod        *corev1.Pod
	facts      protocol.Facts
	silent     error
	mayRead    bool
}

func whole() *objects {
	node := &v1alpha1.ValkeyNode{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "prod-0-1", UID: "node-uid", Generation: 3,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ValkeyCluster", Name: "prod", UID: "cluster-uid"}},
		},
		Spec: v1alpha1.ValkeyNodeSpec{
			ClusterName: "prod", ClusterID: "id-1", Shard: 0, Node: 1,
			Storage:  v1alpha1.NodeStorage{Enabled: true, ClaimName: "valkey-prod-0-1-data"},
			Template: v1alpha1.NodeTemplate{WorkloadType: v1alpha1.WorkloadStatefulSet, Revision: "r"},
		},
	}
	meta := func(objectName, uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: objectName, UID: types.UID(uid), Labels: name.NodeLabels("prod", 0, 1)}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("valkey-prod-0-1-data", "claim")}
	claim.Annotations = map[string]string{name.AnnotationClusterID: "id-1"}
	claim.Spec.StorageClassName = new("fast")
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	set := &appsv1.StatefulSet{ObjectMeta: meta("valkey-prod-0-1", "set")}
	set.Annotations = map[string]string{name.AnnotationTemplateRevision: "r"}
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "ValkeyNode", Name: "prod-0-1", UID: "node-uid"}}
	pod := &corev1.Pod{ObjectMeta: meta("valkey-prod-0-1-0", "pod")}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7"}
	return &objects{
		node: node, claim: claim, set: set, pod: pod, mayRead: true,
		cluster: &v1alpha1.ValkeyCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prod", UID: "cluster-uid"},
			Spec:       v1alpha1.ValkeyClusterSpec{Shards: 3, Replicas: 1},
		},
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, AllowVolumeExpansion: new(true)},
		facts: protocol.Facts{ClusterID: "id-1", Shard: 0, Node: 1, NodeID: "abc"},
	}
}

func (o *objects) snapshot(t *testing.T, funcs interceptor.Funcs) (state.Node, error) {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(scheme(t)).WithInterceptorFuncs(funcs)
	add := func(there bool, object client.Object) {
		if there {
			builder.WithObjects(object)
		}
	}
	add(o.cluster != nil, o.cluster)
	add(o.claim != nil, o.claim)
	add(o.class != nil, o.class)
	add(o.set != nil, o.set)
	add(o.deployment != nil, o.deployment)
	add(o.pod != nil, o.pod)
	observer := NodeObserver{
		Reader: builder.Build(), ReadClasses: o.mayRead,
		Ask: func(_ context.Context, address string) (protocol.Facts, error) {
			if address != "10.0.0.7" {
				t.Errorf("asked %s", address)
			}
			return o.facts, o.silent
		},
		Now: func() time.Time { return time.Unix(0, 0) },
	}
	return observer.Snapshot(t.Context(), o.node)
}

// seen is what tests look at in a snapshot.
type seen struct {
	Going, Claim, Workload, Other bool
	ClusterUID, Shape             string
	Class                         state.Fact[state.Class]
	Pods                          int
	Agent                         bool
}

func TestNodeSnapshot(t *testing.T) {
	t.Parallel()
	fast := state.Seen(state.Class{Name: "fast", Exists: true, Expandable: true})
	all := seen{Claim: true, Workload: true, ClusterUID: "cluster-uid", Shape: "3x1", Class: fast, Pods: 1, Agent: true}
	with := func(edit func(*seen)) seen {
		expected := all
		edit(&expected)
		return expected
	}
	noClass := state.Unknown[state.Class]("the claim names no class")
	for what, row := range map[string]struct {
		edit func(*objects)
		want seen
	}{
		"everything is there": {func(*objects) {}, all},
		"no claim":            {func(o *objects) { o.claim = nil }, with(func(s *seen) { s.Claim, s.Class = false, noClass })},
		"no class":            {func(o *objects) { o.class = nil }, with(func(s *seen) { s.Class = state.Seen(state.Class{Name: "fast"}) })},
		"a class that does not speak of growth forbids it": {
			func(o *objects) { o.class.AllowVolumeExpansion = nil },
			with(func(s *seen) { s.Class.Value.Expandable = false }),
		},
		"classes may not be read": {
			func(o *objects) { o.mayRead = false },
			with(func(s *seen) { s.Class = state.Unknown[state.Class]("StorageClasses may not be read") }),
		},
		"no workload": {func(o *objects) { o.set = nil }, with(func(s *seen) { s.Workload = false })},
		"a workload of the other kind": {
			func(o *objects) { o.node.Spec.Template.WorkloadType = v1alpha1.WorkloadDeployment },
			with(func(s *seen) { s.Workload, s.Other = false, true }),
		},
		"no pod": {func(o *objects) { o.pod = nil }, with(func(s *seen) { s.Pods, s.Agent = 0, false })},
		"another member's pod": {
			func(o *objects) { o.pod.Labels = name.NodeLabels("prod", 0, 0) },
			with(func(s *seen) { s.Pods, s.Agent = 0, false }),
		},
		"a silent agent":               {func(o *objects) { o.silent = errors.New("timeout") }, with(func(s *seen) { s.Agent = false })},
		"another cluster's agent":      {func(o *objects) { o.facts.ClusterID = "id-2" }, with(func(s *seen) { s.Agent = false })},
		"another shard's agent":        {func(o *objects) { o.facts.Shard = 1 }, with(func(s *seen) { s.Agent = false })},
		"another member's agent":       {func(o *objects) { o.facts.Node = 0 }, with(func(s *seen) { s.Agent = false })},
		"a pod that does not run":      {func(o *objects) { o.pod.Status.Phase = corev1.PodPending }, with(func(s *seen) { s.Agent = false })},
		"a pod that has no address":    {func(o *objects) { o.pod.Status.PodIP = "" }, with(func(s *seen) { s.Agent = false })},
		"an ephemeral member":          {func(o *objects) { o.node.Spec.Storage.Enabled = false }, with(func(s *seen) { s.Claim, s.Class = false, noClass })},
		"the cluster is gone":          {func(o *objects) { o.cluster = nil }, with(func(s *seen) { s.Going, s.ClusterUID, s.Shape = true, "", "" })},
		"the cluster is another one":   {func(o *objects) { o.cluster.UID = "other" }, with(func(s *seen) { s.Going, s.ClusterUID = true, "other" })},
		"an orphan follows its name":   {func(o *objects) { o.cluster.UID = "other"; o.node.OwnerReferences = nil }, with(func(s *seen) { s.ClusterUID = "other" })},
		"the cluster is being deleted": {func(o *objects) { going(o.cluster) }, with(func(s *seen) { s.Going = true })},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o := whole()
			row.edit(o)
			snapshot, err := o.snapshot(t, interceptor.Funcs{})
			if err != nil {
				t.Fatal(err)
			}
			got := seen{
				Going: snapshot.ClusterDeleting, Claim: snapshot.Claim != nil, Workload: snapshot.Workload != nil,
				Other: snapshot.OtherWorkload != nil, ClusterUID: snapshot.ClusterUID, Shape: snapshot.Shape,
				Class: snapshot.Class, Pods: len(snapshot.Pods), Agent: snapshot.Agent.Known,
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("saw something else (-want +got):\n%s", diff)
			}
		})
	}
}

func going(cluster *v1alpha1.ValkeyCluster) {
	cluster.DeletionTimestamp = new(metav1.Unix(1, 0))
	cluster.Finalizers = []string{"foregroundDeletion"}
}

// What the API server does not answer is not the same as absent.
func TestAnUnreadableServerIsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection refused")
	for what, kind := range map[string]client.Object{
		"cluster": &v1alpha1.ValkeyCluster{}, "claim": &corev1.PersistentVolumeClaim{},
		"StatefulSet": &appsv1.StatefulSet{}, "Deployment": &appsv1.Deployment{},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, err := whole().snapshot(t, interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				if reflect.TypeOf(into) == reflect.TypeOf(kind) {
					return broken
				}
				return reader.Get(ctx, key, into, options...)
			}})
			if !errors.Is(err, broken) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// By these facts a workload that lost its owner is told from somebody else's.
func TestWorkloadsTellWhoseTheyAre(t *testing.T) {
	t.Parallel()
	owned := func(kind, owner, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(uid), Controller: new(true)}}
	}
	for what, row := range map[string]struct {
		owners            []metav1.OwnerReference
		orphaned, earlier bool
	}{
		"a controller":               {owners: owned("ValkeyNode", "prod-0-1", "node-uid")},
		"an earlier one":             {owners: owned("ValkeyNode", "prod-0-1", "old-uid"), earlier: true},
		"somebody else's":            {owners: owned("Other", "prod-0-1", "other-uid")},
		"nobody":                     {orphaned: true},
		"an owner, not a controller": {owners: []metav1.OwnerReference{{Kind: "ConfigMap", Name: "x", UID: "other-uid"}}, orphaned: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o := whole()
			o.set.OwnerReferences = row.owners
			o.set.Annotations[name.AnnotationClusterID] = "id-1"
			snapshot, err := o.snapshot(t, interceptor.Funcs{})
			if err != nil {
				t.Fatal(err)
			}
			want := &state.Workload{
				Kind: v1alpha1.WorkloadStatefulSet, Name: "valkey-prod-0-1", UID: "set", Version: snapshot.Workload.Version, Revision: "r", Replicas: 1, ClusterID: "id-1",
				Labels: name.NodeLabels("prod", 0, 1), Orphaned: row.orphaned, Earlier: row.earlier,
			}
			for _, owner := range row.owners {
				want.OwnerUIDs = append(want.OwnerUIDs, string(owner.UID))
			}
			if diff := cmp.Diff(want, snapshot.Workload); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
