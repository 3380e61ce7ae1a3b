package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

func TestWhatIsReadOfATemplate(t *testing.T) {
	t.Parallel()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{name.AnnotationTemplateRevision: "r"}}}
	var before, after state.Workload
	readTemplate(&before, template)
	template.Spec.TerminationGracePeriodSeconds = new(int64(120))
	readTemplate(&after, template)
	got, want := []state.Workload{before, after}, []state.Workload{{PodRevision: "r"}, {PodRevision: "r", GraceSeconds: 120}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorkloadsPods(t *testing.T) {
	t.Parallel()
	marked := map[string]string{name.AnnotationStopped: v1alpha1.ReasonVolumeExpanding}
	for what, row := range map[string]struct {
		annotations map[string]string
		replicas    *int32
		want        state.Workload
	}{
		"it has its pod":                        {nil, new(int32(1)), state.Workload{Replicas: 1}},
		"replicas that are not set mean one":    {nil, nil, state.Workload{Replicas: 1}},
		"the operator keeps its pod away":       {marked, new(int32(0)), state.Workload{Stopped: true}},
		"somebody else scaled it to nothing":    {nil, new(int32(0)), state.Workload{}},
		"somebody scaled up what we had scaled": {marked, new(int32(1)), state.Workload{Replicas: 1, Stopped: true}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			object := &metav1.ObjectMeta{Name: "w", UID: "u", ResourceVersion: "9", Annotations: row.annotations}
			row.want.Orphaned = true
			row.want.Kind, row.want.Name, row.want.UID, row.want.Version = v1alpha1.WorkloadStatefulSet, "w", "u", "9"
			if diff := cmp.Diff(row.want, workloadOf(&v1alpha1.ValkeyNode{}, v1alpha1.WorkloadStatefulSet, object, row.replicas)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
