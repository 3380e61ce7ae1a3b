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

// workloadAnnotations record on a workload the template that it was made from,
// for which cluster's data, and that the operator keeps its pod away while it does.
func workloadAnnotations(member Member) map[string]string {
	annotations := map[string]string{
		name.AnnotationTemplateRevision: member.Spec.Template.Revision,
		name.AnnotationClusterID:        member.Spec.ClusterID,
	}
	if member.Spec.Stopped {
		annotations[name.AnnotationStopped] = v1alpha1.ReasonVolumeExpanding
	}
	return annotations
}

// replicas of a member's workload: its one pod, or none while it is stopped.
func replicas(member Member) int32 {
	if member.Spec.Stopped {
		return 0
	}
	return 1
}

// StatefulSet runs the member under a stable host name. It has no claim
// template: those are immutable, while claims grow.
func StatefulSet(member Member) *appsv1ac.StatefulSetApplyConfiguration {
	return appsv1ac.StatefulSet(name.Workload(member.Name), member.Namespace).
		WithLabels(member.Labels()).
		WithAnnotations(workloadAnnotations(member)).
		WithOwnerReferences(ownedByNode(member)).
		WithSpec(appsv1ac.StatefulSetSpec().
			WithReplicas(replicas(member)).
			WithServiceName(name.HeadlessService(member.Spec.ClusterName)).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.RollingUpdateStatefulSetStrategyType)).
			WithRevisionHistoryLimit(revisionHistory).
			WithSelector(workloadSelector(member)).
			WithTemplate(podTemplate(member)))
}
