package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

func TestOnePassMakesClaimAndWorkload(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.mustPass()
	if got := b.claim().Spec.Resources.Requests.Storage().String(); got != "1Gi" {
		t.Errorf("the claim asks for %s", got)
	}
	set := read(b, &appsv1.StatefulSet{}, "valkey-prod-0-1")
	if got := set.Annotations[name.AnnotationTemplateRevision]; got != "r" {
		t.Errorf("the workload's revision is %q", got)
	}
	if got := b.storageReady(); got != "False VolumesPending" {
		t.Errorf("StorageReady is %s", got)
	}
}

func TestANodeComesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	status := b.node().Status
	type summary struct{ Role, NodeID, Pod, Storage, Phase, Label, Mark string }
	got := summary{
		status.Role, status.NodeID, status.PodName, b.storageReady(), string(status.Storage.Phase),
		read(b, &corev1.Pod{}, "valkey-prod-0-1-0").Labels[name.LabelRole], b.claim().Annotations[name.AnnotationNodeID],
	}
	want := summary{"replica", "abc", "valkey-prod-0-1-0", "True VolumesBound", "Satisfied", "replica", "abc"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the node differs (-want +got):\n%s", diff)
	}
}

func TestAnEphemeralNodeHasNoClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t, v1alpha1.NodeStorage{})
	b.mustPass()
	err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "valkey-prod-0-1-data"}, &corev1.PersistentVolumeClaim{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading the claim gives %v", err)
	}
	if got := b.storageReady(); got != "True StorageDisabled" {
		t.Errorf("StorageReady is %s", got)
	}
}

func TestASettledNodeWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	b.told()
	b.writes = 0
	for range 60 {
		b.now = b.now.Add(time.Minute)
		if result := b.mustPass(); result.RequeueAfter < time.Second {
			t.Fatalf("looks again after %s", result.RequeueAfter)
		}
	}
	if b.writes != 0 {
		t.Errorf("%d writes in an hour", b.writes)
	}
	if events := b.told(); len(events) > 0 {
		t.Errorf("events in an hour: %v", events)
	}
}

// Another build of the operator, with another agent, replaces no pod.
func TestAnotherAgentImageWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	node := b.node()
	node.Spec.Template.AgentImage = "operator:next"
	b.update(node)
	b.writes = 0
	b.mustPass()
	if b.writes != 0 {
		t.Errorf("%d writes", b.writes)
	}
}

func (b *bench) grow(size string) {
	b.t.Helper()
	node := b.node()
	node.Spec.Storage.Size = new(resource.MustParse(size))
	b.update(node)
}

func TestAVolumeGrows(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	b.told()
	b.grow("2Gi")
	b.mustPass()
	if got := b.claim().Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Fatalf("the claim asks for %s", got)
	}

	b.claimStatus(func(claim *corev1.PersistentVolumeClaim) {
		claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending}
	})
	b.mustPass()
	if got := read(b, &corev1.Pod{}, "valkey-prod-0-1-0").Annotations[name.AnnotationResizeNudge]; got != "2Gi-0" {
		t.Errorf("the pod's nudge is %q", got)
	}

	b.claimStatus(func(claim *corev1.PersistentVolumeClaim) {
		claim.Status.AllocatedResourceStatuses = nil
		claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
	})
	b.mustPass()
	if got := b.storageReady(); got != "True VolumeExpanded" {
		t.Errorf("StorageReady is %s", got)
	}
	if diff := cmp.Diff([]string{"Normal VolumeExpanding", "Normal VolumeExpanded"}, b.told()); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

// A quota's no is told once, asked again every quarter of a minute, and forgotten as soon
// as the wish is taken back.
func TestARefusedGrowth(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	b.told()
	b.grow("2Gi")
	b.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data", errors.New("exceeded quota: small"))
	b.mustPass()
	if got := b.storageReady(); got != "False QuotaExceeded" {
		t.Errorf("StorageReady is %s", got)
	}
	if !meta.IsStatusConditionTrue(b.node().Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("Ready is not True")
	}
	b.writes = 0
	for range 12 {
		b.now = b.now.Add(10 * time.Second)
		b.mustPass()
	}
	if b.writes != 6 { // passes come every ten seconds
		t.Errorf("asked %d times in two minutes", b.writes)
	}
	if diff := cmp.Diff([]string{"Warning VolumeExpansionBlocked"}, b.told()); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
	b.grow("1Gi")
	b.mustPass()
	if got := b.storageReady(); got != "True VolumesBound" {
		t.Errorf("after going back StorageReady is %s", got)
	}
}

// A plan that rests on an older claim is no fault: it is made anew soon.
func TestAStalePlanIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	b.grow("2Gi")
	b.refuse = apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data", errors.New("changed"))
	if result := b.mustPass(); result.RequeueAfter > plan.LookServer {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
}

func TestAFaultBacksOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	b.grow("2Gi")
	b.refuse = errors.New("connection refused")
	if _, err := b.pass(); !errors.Is(err, b.refuse) {
		t.Errorf("error is %v", err)
	}
}

func TestNothingIsMadeAnewWhileTheClusterGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	cluster := read(b, &v1alpha1.ValkeyCluster{}, "prod")
	cluster.Finalizers = []string{"foregroundDeletion"}
	b.update(cluster)
	for _, object := range []client.Object{cluster, b.claim(), read(b, &appsv1.StatefulSet{}, "valkey-prod-0-1")} {
		if err := b.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	b.writes = 0
	b.mustPass()
	if b.writes != 0 {
		t.Errorf("%d writes", b.writes)
	}
}

func TestNodeOfLabels(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		labels map[string]string
		want   []string
	}{
		"a member's object": {name.NodeLabels("prod", 2, 1), []string{"prod-2-1"}},
		"a cluster's":       {name.ClusterLabels("prod"), nil},
		"somebody else's":   {map[string]string{"app": "other"}, nil},
		"a label by hand":   {map[string]string{name.LabelCluster: "prod", name.LabelShardIndex: "x", name.LabelNodeIndex: "1"}, nil},
	} {
		var got []string
		for _, request := range nodeOfLabels(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: row.labels}}) {
			got = append(got, request.Name)
		}
		if !slices.Equal(row.want, got) {
			t.Errorf("%s: got %v, want %v", what, got, row.want)
		}
	}
}

// The cache may show a node as it was before the last pass wrote its status.
// Such a pass writes nothing and tells nothing.
func TestAnOldStatusTellsNothingTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, persistent())
	b.settle()
	b.told()
	b.grow("2Gi")
	old := b.node()
	b.mustPass()
	b.told()
	result, err := b.reconciler.Reconcile(t.Context(), old)
	if err != nil || result.RequeueAfter > plan.LookServer {
		t.Errorf("looks again after %s, error %v", result.RequeueAfter, err)
	}
	if events := b.told(); len(events) > 0 {
		t.Errorf("told again: %v", events)
	}
}
