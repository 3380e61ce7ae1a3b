package build

import (
	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"valkey.io/valkey-operator/internal/name"
)

// Deployment runs the member without a stable host name. Its strategy is
// Recreate, so that never two pods of one member run at once: a rolling update
// would start a second server on the same volume.
func Deployment(member Member) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(name.Workload(member.Name), member.Namespace).
		WithLabels(member.Labels()).
		WithAnnotations(workloadAnnotations(member)).
		WithOwnerReferences(ownedByNode(member)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(1).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
			WithRevisionHistoryLimit(revisionHistory).
			WithSelector(workloadSelector(member)).
			WithTemplate(podTemplate(member)))
}
