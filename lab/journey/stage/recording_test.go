package stage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
)

func podVersion(shard, node string, ready corev1.ConditionStatus) Version[*corev1.Pod] {
	return Version[*corev1.Pod]{Object: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{contract.LabelShardIndex: shard, contract.LabelNodeIndex: node}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}}
}

func TestOutagesAreToldInOrder(t *testing.T) {
	t.Parallel()
	const up, down = corev1.ConditionTrue, corev1.ConditionFalse
	for name, c := range map[string]struct {
		versions []Version[*corev1.Pod]
		order    []string
		together int
	}{
		"a member that has yet to start is no outage": {
			[]Version[*corev1.Pod]{podVersion("0", "0", down), podVersion("0", "0", up)},
			nil,
			0,
		},
		"one after the other": {
			[]Version[*corev1.Pod]{
				podVersion("0", "0", up), podVersion("0", "1", up), podVersion("0", "1", down),
				podVersion("0", "1", up), podVersion("0", "0", down),
			},
			[]string{"0-1", "0-0"},
			1,
		},
		"two of a shard at once": {
			[]Version[*corev1.Pod]{podVersion("0", "0", up), podVersion("0", "1", up), podVersion("0", "1", down), podVersion("0", "0", down)},
			[]string{"0-1", "0-0"},
			2,
		},
		"two of different shards": {
			[]Version[*corev1.Pod]{podVersion("0", "1", up), podVersion("1", "1", up), podVersion("0", "1", down), podVersion("1", "1", down)},
			[]string{"0-1", "1-1"},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order, together := Outages(c.versions)
			if diff := cmp.Diff(c.order, order); diff != "" {
				t.Error(diff)
			}
			if together != c.together {
				t.Errorf("%d were down together, want %d", together, c.together)
			}
		})
	}
}

func TestEachSizeThatAClaimAskedForIsToldOnce(t *testing.T) {
	t.Parallel()
	claim := func(name, size string) Version[*corev1.PersistentVolumeClaim] {
		return Version[*corev1.PersistentVolumeClaim]{Object: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			}},
		}}
	}
	got := Asked([]Version[*corev1.PersistentVolumeClaim]{
		claim("a", "64Mi"), claim("b", "64Mi"), claim("a", "64Mi"), claim("a", "1Gi"), claim("a", "128Mi"), claim("a", "128Mi"),
	})
	if diff := cmp.Diff(map[string][]string{"a": {"64Mi", "1Gi", "128Mi"}, "b": {"64Mi"}}, got); diff != "" {
		t.Error(diff)
	}
}
