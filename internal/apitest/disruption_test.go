//go:build apiserver

package apitest

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
)

// budget reads the cluster's budget.
func (w *world) budget() (*policyv1.PodDisruptionBudget, error) {
	budget := &policyv1.PodDisruptionBudget{}
	return budget, admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name.Service("prod")}, budget)
}

// budgetKeeps complains unless the budget lets one pod of three go.
func (w *world) budgetKeeps() error {
	budget, err := w.budget()
	if err != nil {
		return err
	}
	if budget.Spec.MaxUnavailable != nil || budget.Spec.MinAvailable == nil || budget.Spec.MinAvailable.IntVal != 2 {
		return fmt.Errorf("the budget is %+v", budget.Spec)
	}
	return nil
}

func TestBudgetGoesAndComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	cluster := w.settledCluster(persistent())
	if err := w.budgetKeeps(); err != nil {
		t.Fatal(err)
	}
	w.patch(cluster, `{"spec":{"podDisruptionBudget":{"mode":"Disabled"}}}`)
	await(t, "the budget is gone", func() error {
		budget, err := w.budget()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, of UID %s: %w", budget.UID, err)
	})
	w.awaitSettled(cluster)
	w.patch(cluster, `{"spec":{"podDisruptionBudget":{"mode":"Cluster"}}}`)
	await(t, "the budget is back", w.budgetKeeps)
}

// A user who wants no budget of ours may have one under its name.
func TestBudgetOfTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name.Service("prod")},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: name.Selector("prod")},
		},
	}
	if err := admin.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	w.operate(server)
	spec := single()
	spec.PodDisruptionBudget.Mode = v1alpha1.DisruptionDisabled
	w.settledCluster(spec)
	budget, err := w.budget()
	if err != nil || budget.UID != own.UID || budget.Spec.MaxUnavailable == nil {
		t.Errorf("it is %+v (%v)", budget, err)
	}
}

// An operator of an earlier release counted what may be missing.
func TestEarlierBudgetIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	cluster := w.settledCluster(persistent())
	earlier := build.PodDisruptionBudget(build.Cluster{Namespace: w.namespace, Name: "prod", UID: string(cluster.UID), Spec: cluster.Spec})
	earlier.Spec = policyv1ac.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1)).WithSelector(earlier.Spec.Selector)
	if err := admin.Apply(t.Context(), earlier, client.FieldOwner(name.FieldManager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	await(t, "it counts what must stay", w.budgetKeeps)
}

// The API server takes the strictest placement together with all that users may
// wish for besides, in both kinds of workloads.
func TestStrictPlacementIsAccepted(t *testing.T) {
	t.Parallel()
	for _, kind := range []v1alpha1.WorkloadType{v1alpha1.WorkloadStatefulSet, v1alpha1.WorkloadDeployment} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operate(server)
			required := v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: v1alpha1.SpreadRequired}}
			spec := single()
			spec.WorkloadType = kind
			spec.TerminationGracePeriodSeconds = new(int64(120))
			spec.Scheduling = &v1alpha1.Scheduling{
				Node: required, Zone: required, NodeSelector: map[string]string{"disk": "fast"},
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
					{MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{}},
					{MaxSkew: 3, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}},
				},
			}
			w.settledCluster(spec)
			pod := w.podOf(kind)
			if pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds != 120 || len(pod.TopologySpreadConstraints) != 3 {
				t.Errorf("grace %v, constraints %+v", pod.TerminationGracePeriodSeconds, pod.TopologySpreadConstraints)
			}
		})
	}
}

// podOf is the pod's spec in the workload of the first member.
func (w *world) podOf(kind v1alpha1.WorkloadType) corev1.PodSpec {
	w.t.Helper()
	workload := name.Workload("prod-0-0")
	if kind == v1alpha1.WorkloadDeployment {
		return get(w, workload, &appsv1.Deployment{}).Spec.Template.Spec
	}
	return get(w, workload, &appsv1.StatefulSet{}).Spec.Template.Spec
}
