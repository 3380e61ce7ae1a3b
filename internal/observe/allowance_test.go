package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/state"
)

func sizeOf(text string) *resource.Quantity { return new(resource.MustParse(text)) }

// growingCluster asks for 2Gi; its members' nodes ask for some size each, and their
// volumes have 1Gi.
func growingCluster(asked ...string) (*v1alpha1.ValkeyCluster, state.Cluster) {
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"}}
	cluster.Spec.Storage = &v1alpha1.Storage{Enabled: true, Size: sizeOf("2Gi")}
	var seen state.Cluster
	for _, size := range asked {
		seen.Members = append(seen.Members, state.Member{
			Wanted: true, Claim: &state.Claim{Capacity: resource.MustParse("1Gi")},
			Record: &state.NodeRecord{Spec: v1alpha1.ValkeyNodeSpec{Storage: v1alpha1.NodeStorage{Size: sizeOf(size)}}},
		})
	}
	return cluster, seen
}

// Quotas and limits cost a request each, so that they are asked for only when a
// growth is about to begin.
func TestGrowthBegins(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		asked []string
		edit  func(*v1alpha1.ValkeyCluster, *state.Cluster)
		want  bool
	}{
		"nobody was told":                     {asked: []string{"1Gi", "1Gi"}, want: true},
		"one was told":                        {asked: []string{"1Gi", "2Gi"}},
		"all were told":                       {asked: []string{"2Gi", "2048Mi"}},
		"one was told and has grown":          {asked: []string{"2Gi", "1Gi"}, edit: func(_ *v1alpha1.ValkeyCluster, s *state.Cluster) { s.Members[0].Claim.Capacity = *sizeOf("2Gi") }, want: true},
		"all have the size":                   {asked: []string{"1Gi"}, edit: func(_ *v1alpha1.ValkeyCluster, s *state.Cluster) { s.Members[0].Claim.Capacity = *sizeOf("2Gi") }},
		"a node has no size yet":              {asked: []string{"1Gi"}, edit: func(_ *v1alpha1.ValkeyCluster, s *state.Cluster) { s.Members[0].Record.Spec.Storage.Size = nil }},
		"the cluster is ephemeral":            {edit: func(c *v1alpha1.ValkeyCluster, _ *state.Cluster) { c.Spec.Storage = nil }},
		"a shard grows by itself":             {asked: []string{"2Gi"}, edit: grownTo("3Gi", ""), want: true},
		"a shard is at its largest by itself": {asked: []string{"2Gi"}, edit: grownTo("3Gi", "2Gi")},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cluster, seen := growingCluster(row.asked...)
			if row.edit != nil {
				row.edit(cluster, &seen)
			}
			if got := growthBegins(cluster, seen); got != row.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

func grownTo(target, most string) func(*v1alpha1.ValkeyCluster, *state.Cluster) {
	return func(cluster *v1alpha1.ValkeyCluster, _ *state.Cluster) {
		cluster.Status.Storage = &v1alpha1.StorageStatus{Shards: []v1alpha1.ShardStorageStatus{{AutoTarget: sizeOf(target)}}}
		if most != "" {
			cluster.Spec.Storage.AutoExpansion = &v1alpha1.AutoExpansion{MaxSize: sizeOf(most)}
		}
	}
}

func storageList(amounts map[corev1.ResourceName]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for counted, amount := range amounts {
		list[counted] = resource.MustParse(amount)
	}
	return list
}

func TestAllowances(t *testing.T) {
	t.Parallel()
	classed := corev1.ResourceName("fast" + classQuota)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "small"},
		Status: corev1.ResourceQuotaStatus{
			Hard: storageList(map[corev1.ResourceName]string{corev1.ResourceRequestsStorage: "10Gi", classed: "5Gi", corev1.ResourcePods: "3"}),
			Used: storageList(map[corev1.ResourceName]string{corev1.ResourceRequestsStorage: "4Gi", corev1.ResourcePods: "3"}),
		},
	}
	scoped := quota.DeepCopy()
	scoped.Name, scoped.Spec.Scopes = "scoped", []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "caps"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypePersistentVolumeClaim, Max: storageList(map[corev1.ResourceName]string{corev1.ResourceStorage: "8Gi"})},
		{Type: corev1.LimitTypePersistentVolumeClaim, Min: storageList(map[corev1.ResourceName]string{corev1.ResourceStorage: "1Gi"})},
		{Type: corev1.LimitTypeContainer, Max: storageList(map[corev1.ResourceName]string{corev1.ResourceStorage: "1Gi"})},
	}}}
	elsewhere := limits.DeepCopy()
	elsewhere.Namespace = "other"
	cluster, seen := growingCluster("1Gi")
	observer := ClusterObserver{Direct: fake.NewClientBuilder().WithObjects(quota, scoped, limits, elsewhere).Build()}
	observer.allowances(t.Context(), cluster, &seen)
	slices.SortFunc(seen.Quotas.Value, func(a, b state.Quota) int { return strings.Compare(a.Class, b.Class) })
	same := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Equal(b) })
	if diff := cmp.Diff(state.Seen([]state.Quota{{Name: "small", Left: *sizeOf("6Gi")}, {Name: "small", Class: "fast", Left: *sizeOf("5Gi")}}), seen.Quotas, same); diff != "" {
		t.Errorf("quotas (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(state.Seen([]state.ClaimLimit{{Name: "caps", Max: *sizeOf("8Gi")}}), seen.Limits, same); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

// What may not be read is unknown, and nothing is read without need.
func TestAllowancesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	reads := 0
	direct := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			reads++
			return errors.New("forbidden")
		},
	}).Build()
	for asked, want := range map[string]int{"1Gi": 2, "2Gi": 0} {
		reads = 0
		cluster, seen := growingCluster(asked)
		ClusterObserver{Direct: direct}.allowances(t.Context(), cluster, &seen)
		if reads != want || seen.Quotas.Known || seen.Limits.Known {
			t.Errorf("asked for %s: %d reads, quotas %+v, limits %+v", asked, reads, seen.Quotas, seen.Limits)
		}
	}
}

func TestClassesOfClaims(t *testing.T) {
	t.Parallel()
	objects := []client.Object{
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, AllowVolumeExpansion: new(true)},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}},
	}
	seen := state.Cluster{Claims: []state.Claim{{ClassName: "fast"}, {ClassName: "fast"}, {ClassName: "fixed"}, {ClassName: "gone"}, {}}}
	reader := fake.NewClientBuilder().WithObjects(objects...).Build()
	ClusterObserver{Reader: reader, ReadClasses: true}.classes(t.Context(), &seen)
	want := map[string]state.Class{"fast": {Name: "fast", Exists: true, Expandable: true}, "fixed": {Name: "fixed", Exists: true}, "gone": {Name: "gone"}}
	if diff := cmp.Diff(want, seen.Classes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ClusterObserver{Reader: reader}.classes(t.Context(), &seen)
	if len(seen.Classes) > 0 || seen.Class("fast").Known {
		t.Errorf("without the right to read them they are %v", seen.Classes)
	}
}
