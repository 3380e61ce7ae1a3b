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
	for _, kind := range []v1alpha1.WorkloadType{v1alpha1.WorkloadStatefulSet, v1alpha1.WorkloadDeployment} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			meta := metav1.ObjectMeta{Namespace: "shop", Name: "valkey-prod-0-1", Annotations: map[string]string{"mine": "1"}}
			hands := Applier{Namespace: "shop", Client: fake.NewClientBuilder().WithObjects(
				&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(7))}},
				&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}},
			).Build()}
			first, _ := workloadSeen(t, hands, kind)
			for replicas, want := range []scaled{
				{0, map[string]string{"mine": "1", name.AnnotationStopped: v1alpha1.ReasonVolumeExpanding}},
				{1, map[string]string{"mine": "1"}},
			} {
				version, _ := workloadSeen(t, hands, kind)
				if err := hands.do(t.Context(), plan.ScaleWorkload{Kind: kind, Name: meta.Name, Version: version, Replicas: int32(replicas)}); err != nil {
					t.Fatal(err)
				}
				if _, got := workloadSeen(t, hands, kind); !cmp.Equal(want, got) {
					t.Errorf("scaled to %d (-want +got):\n%s", replicas, cmp.Diff(want, got))
				}
			}
			err := hands.do(t.Context(), plan.ScaleWorkload{Kind: kind, Name: meta.Name, Version: first, Replicas: 0})
			if !errors.Is(err, ErrStale) {
				t.Errorf("a scale of what has changed since gives %v", err)
			}
		})
	}
}

// workloadSeen is the version of the workload of a kind, and what a scale changes.
func workloadSeen(t *testing.T, hands Applier, kind v1alpha1.WorkloadType) (version string, seen scaled) {
	t.Helper()
	set, deployment := &appsv1.StatefulSet{}, &appsv1.Deployment{}
	var workload client.Object = set
	if kind == v1alpha1.WorkloadDeployment {
		workload = deployment
	}
	if err := hands.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "valkey-prod-0-1"}, workload); err != nil {
		t.Fatal(err)
	}
	replicas := set.Spec.Replicas
	if kind == v1alpha1.WorkloadDeployment {
		replicas = deployment.Spec.Replicas
	}
	return workload.GetResourceVersion(), scaled{*replicas, workload.GetAnnotations()}
}
