package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

// A new claim is to be as large as the largest volume of its own shard's members.
func TestReadShard(t *testing.T) {
	t.Parallel()
	claim := func(shard, node int, id, capacity string) *corev1.PersistentVolumeClaim {
		made := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name.Claim(name.Node("prod", shard, node)), Labels: name.NodeLabels("prod", shard, node),
			Annotations: map[string]string{name.AnnotationClusterID: id},
		}}
		made.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Ti")}
		made.Status.Phase = corev1.ClaimBound
		made.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
		return made
	}
	unbound := claim(0, 2, "id-1", "9Gi")
	unbound.Status.Phase = corev1.ClaimPending
	for what, row := range map[string]struct {
		claims []client.Object
		want   string
	}{
		"nobody is there":                     {nil, "0"},
		"capacities count, not requests":      {[]client.Object{claim(0, 0, "id-1", "2Gi"), claim(0, 2, "id-1", "3Gi")}, "3Gi"},
		"another shard's does not count":      {[]client.Object{claim(0, 0, "id-1", "2Gi"), claim(1, 0, "id-1", "3Gi")}, "2Gi"},
		"another cluster's data do not count": {[]client.Object{claim(0, 0, "id-2", "2Gi")}, "0"},
		"one without a volume does not count": {[]client.Object{unbound}, "0"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			observer := NodeObserver{Reader: fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(row.claims...).Build()}
			var seen state.Node
			if err := observer.readShard(t.Context(), whole().node, &seen); err != nil {
				t.Fatal(err)
			}
			if want := resource.MustParse(row.want); seen.ShardCapacity.Cmp(want) != 0 {
				t.Errorf("it is %s, want %s", seen.ShardCapacity.String(), row.want)
			}
		})
	}
}

// The newest failure is read once a growth lasts, and never for one that does not.
func TestReadResizeFailure(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	event := func(eventName, claim, reason, message string, ago time.Duration) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: eventName}, InvolvedObject: corev1.ObjectReference{UID: types.UID(claim)},
			Reason: reason, Message: message, FirstTimestamp: metav1.NewTime(now.Add(-time.Hour)), LastTimestamp: metav1.NewTime(now.Add(-ago)),
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(object client.Object) []string {
			told, _ := object.(*corev1.Event)
			return []string{string(told.InvolvedObject.UID)}
		}).
		WithObjects(
			event("a", "claim", "VolumeResizeFailed", "older", 2*time.Minute), event("b", "claim", "VolumeResizeFailed", "newest", time.Minute),
			event("c", "claim", "FileSystemResizeFailed", "oldest", 3*time.Minute), event("d", "claim", "Resizing", "no failure", 0),
			event("e", "another", "VolumeResizeFailed", "of another claim", 0),
		).Build()
	for what, row := range map[string]struct {
		since     time.Duration
		requested string
		direct    client.Reader
		want      string
	}{
		"it lasts":                   {time.Minute, "2Gi", reader, "newest"},
		"it has just begun":          {growthPatience, "2Gi", reader, ""},
		"nothing grows":              {time.Minute, "1Gi", reader, ""},
		"events cannot be read here": {time.Minute, "2Gi", nil, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			seen := state.Node{Now: now, Namespace: "shop", Claim: &state.Claim{
				UID: "claim", Phase: corev1.ClaimBound, Requested: resource.MustParse(row.requested), Capacity: resource.MustParse("1Gi"),
			}}
			seen.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-row.since)),
			}}
			NodeObserver{Direct: row.direct}.readResizeFailure(t.Context(), &seen)
			got := ""
			if seen.ResizeFailure != nil {
				got = seen.ResizeFailure.Message
			}
			if got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}
