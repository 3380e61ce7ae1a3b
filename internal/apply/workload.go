package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

// scaleWorkload changes how many pods a workload has and marks it in the same
// write, so that a scale of ours and one of somebody else's can be told apart.
func (a Applier) scaleWorkload(ctx context.Context, act plan.ScaleWorkload) error {
	named := metav1.ObjectMeta{Name: act.Name}
	var workload client.Object = &appsv1.StatefulSet{ObjectMeta: named}
	if act.Kind == v1alpha1.WorkloadDeployment {
		workload = &appsv1.Deployment{ObjectMeta: named}
	}
	mark := map[string]*string{name.AnnotationStopped: nil}
	if act.Replicas == 0 {
		mark[name.AnnotationStopped] = new(v1alpha1.ReasonVolumeExpanding)
	}
	return a.patch(ctx, workload, mergePatch, metadata{ResourceVersion: act.Version, Annotations: mark}, scale{act.Replicas})
}

// deletePod deletes the one pod that was observed.
func (a Applier) deletePod(ctx context.Context, act plan.DeletePod) error {
	return a.delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: act.Pod}}, act.UID)
}

// deleteBudget deletes the one budget that was observed.
func (a Applier) deleteBudget(ctx context.Context, act plan.DeleteBudget) error {
	return a.delete(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: act.Name}}, act.UID)
}

// delete deletes an object of a UID. Another one of its name is left alone: that is
// a stale plan.
func (a Applier) delete(ctx context.Context, target client.Object, uid string) error {
	target.SetNamespace(a.Namespace)
	err := a.Client.Delete(ctx, target, client.Preconditions{UID: new(types.UID(uid))})
	if stale(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return refused(err)
}

// scale is the part of a workload's spec that says how many pods it has.
type scale struct {
	Replicas int32 `json:"replicas"`
}
