package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

// scaled is how many pods a workload has, and its annotations.
type scaled struct {
	Replicas    int32
	Annotations map[string]string
}

func TestScaleWorkload(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "valkey-prod-0-1", Annotations: map[string]string{"mine": "1"}}
	set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1))}}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
	for kind, workload := range map[v1alpha1.WorkloadType]client.Object{v1alpha1.WorkloadStatefulSet: set, v1alpha1.WorkloadDeployment: deployment} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			hands := Applier{Client: fake.NewClientBuilder().WithObjects(workload).Build(), Namespace: "shop"}
			seen := func() (string, scaled) {
				if err := hands.Client.Get(t.Context(), client.ObjectKeyFromObject(workload), workload); err != nil {
					t.Fatal(err)
				}
				replicas := set.Spec.Replicas
				if kind == v1alpha1.WorkloadDeployment {
					replicas = deployment.Spec.Replicas
				}
				return workload.GetResourceVersion(), scaled{*replicas, workload.GetAnnotations()}
			}
			first, _ := seen()
			for _, row := range []struct {
				replicas int32
				want     scaled
			}{
				{0, scaled{0, map[string]string{"mine": "1", name.AnnotationStopped: v1alpha1.ReasonVolumeExpanding}}},
				{1, scaled{1, map[string]string{"mine": "1"}}},
			} {
				version, _ := seen()
				if err := hands.do(t.Context(), plan.ScaleWorkload{Kind: kind, Name: meta.Name, Version: version, Replicas: row.replicas}); err != nil {
					t.Fatal(err)
				}
				if _, got := seen(); !cmp.Equal(row.want, got) {
					t.Errorf("scaled to %d (-want +got):\n%s", row.replicas, cmp.Diff(row.want, got))
				}
			}
			err := hands.do(t.Context(), plan.ScaleWorkload{Kind: kind, Name: meta.Name, Version: first, Replicas: 0})
			if !errors.Is(err, ErrStale) {
				t.Errorf("a scale of what has changed since gives %v", err)
			}
		})
	}
}
