package build

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// revisionHistory is how many old templates a workload keeps: one, to compare
// with; the operator never rolls back by them.
const revisionHistory = 1

// Workload is the member's StatefulSet or Deployment, whichever its template
// wants.
func Workload(member Member) runtime.ApplyConfiguration {
	if member.Spec.Template.WorkloadType == v1alpha1.WorkloadDeployment {
		return Deployment(member)
	}
	return StatefulSet(member)
}

// StatefulSet runs the member under a stable host name. It has no claim
// template: those are immutable, while claims grow.
func StatefulSet(member Member) *appsv1ac.StatefulSetApplyConfiguration {
	return appsv1ac.StatefulSet(name.Workload(member.Name), member.Namespace).
		WithLabels(member.Labels()).
		WithAnnotations(workloadAnnotations(member)).
		WithOwnerReferences(ownedByNode(member)).
		WithSpec(appsv1ac.StatefulSetSpec().
			WithReplicas(1).
			WithServiceName(name.HeadlessService(member.Spec.ClusterName)).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.RollingUpdateStatefulSetStrategyType)).
			WithRevisionHistoryLimit(revisionHistory).
			WithSelector(workloadSelector(member)).
			WithTemplate(podTemplate(member)))
}
