package build

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// schedule passes the user's wishes on, and adds those that keep the members of
// a shard apart.
func schedule(pod *corev1ac.PodSpecApplyConfiguration, member Member) {
	wishes := v1alpha1.Scheduling{}
	if asked := member.Spec.Template.Scheduling; asked != nil {
		wishes = *asked
	}
	pod.WithNodeSelector(wishes.NodeSelector)
	for _, toleration := range wishes.Tolerations {
		pod.WithTolerations(configurationOf[corev1ac.TolerationApplyConfiguration](toleration))
	}
	if affinity := affinityOf(member, wishes); affinity != nil {
		pod.WithAffinity(affinity)
	}
	for _, constraint := range wishes.TopologySpreadConstraints {
		pod.WithTopologySpreadConstraints(configurationOf[corev1ac.TopologySpreadConstraintApplyConfiguration](constraint))
	}
	for _, spread := range spreads(wishes) {
		if !constrained(wishes.TopologySpreadConstraints, spread) {
			pod.WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
				WithMaxSkew(1).
				WithTopologyKey(spread.TopologyKey).
				WithWhenUnsatisfiable(spread.WhenUnsatisfiable).
				WithLabelSelector(shardSelector(member)))
		}
	}
	if wishes.PriorityClassName != "" {
		pod.WithPriorityClassName(wishes.PriorityClassName)
	}
}

// spreads are the keys and strictness of the constraints that keep a shard
// apart. Zones are no mere preference among them: the scheduler passes over all of a
// pod's preferred constraints on workers that lack the label of one, so that
// without zones nothing would be spread over workers.
func spreads(wishes v1alpha1.Scheduling) []corev1.TopologySpreadConstraint {
	var spreads []corev1.TopologySpreadConstraint
	switch wishes.Node.Spread.Shard {
	case v1alpha1.SpreadDisabled:
	case v1alpha1.SpreadRequired:
		spreads = append(spreads, corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule})
	default:
		spreads = append(spreads, corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway})
	}
	if wishes.Zone.Spread.Shard == v1alpha1.SpreadRequired {
		spreads = append(spreads, corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule})
	}
	return spreads
}

// constrained says whether a constraint for the same key and strictness is among
// those of the user: the API server takes one of each.
func constrained(asked []corev1.TopologySpreadConstraint, spread corev1.TopologySpreadConstraint) bool {
	return slices.ContainsFunc(asked, func(constraint corev1.TopologySpreadConstraint) bool {
		return constraint.TopologyKey == spread.TopologyKey && constraint.WhenUnsatisfiable == spread.WhenUnsatisfiable
	})
}

// zoneWeight is the largest: losing a zone is worse than what other preferences avoid.
const zoneWeight = 100

// affinityOf is the user's affinity with the preference of a shard's members for
// different zones; nil when there is neither.
func affinityOf(member Member, wishes v1alpha1.Scheduling) *corev1ac.AffinityApplyConfiguration {
	var affinity *corev1ac.AffinityApplyConfiguration
	if wishes.Affinity != nil {
		affinity = configurationOf[corev1ac.AffinityApplyConfiguration](wishes.Affinity)
	}
	if mode := wishes.Zone.Spread.Shard; mode == v1alpha1.SpreadDisabled || mode == v1alpha1.SpreadRequired {
		return affinity
	}
	if affinity == nil {
		affinity = corev1ac.Affinity()
	}
	if affinity.PodAntiAffinity == nil {
		affinity.WithPodAntiAffinity(corev1ac.PodAntiAffinity())
	}
	affinity.PodAntiAffinity.WithPreferredDuringSchedulingIgnoredDuringExecution(corev1ac.WeightedPodAffinityTerm().
		WithWeight(zoneWeight).
		WithPodAffinityTerm(corev1ac.PodAffinityTerm().WithTopologyKey(corev1.LabelTopologyZone).WithLabelSelector(shardSelector(member))))
	return affinity
}

// shardSelector selects the pods of a member's shard.
func shardSelector(member Member) *metav1ac.LabelSelectorApplyConfiguration {
	shard := name.Selector(member.Spec.ClusterName)
	shard[name.LabelShardIndex] = strconv.Itoa(int(member.Spec.Shard))
	return metav1ac.LabelSelector().WithMatchLabels(shard)
}
