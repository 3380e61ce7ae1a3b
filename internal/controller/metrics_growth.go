package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// What made volumes grow.
const (
	triggerSpec      = "spec"      // somebody raised spec.storage.size
	triggerAuto      = "auto"      // automatic growth
	triggerEmergency = "emergency" // automatic growth in spite of its cooldown
	triggerExternal  = "external"  // somebody grew the claim itself
)

// How a growth ended.
const (
	resultGrown     = "grown"
	resultTakenBack = "taken_back"
)

// slowExpansion is the largest bucket: drivers that take longer than six hours
// wait for something.
const slowExpansion = 6 * 3600

var (
	expansions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "valkey_cluster_expansions_total",
		Help: "Growths of a cluster's volumes that ended, by result (grown, taken_back) and by trigger (spec, auto, emergency, external).",
	}, append(clusterLabels, "result", "trigger"))
	expansionSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "valkey_cluster_expansion_seconds",
		Help:    "Seconds from when a growth was first seen until every volume had its size.",
		Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, slowExpansion},
	}, clusterLabels)
	storageRestarts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "valkey_cluster_storage_restarts_total",
		Help: "Members of a cluster that were stopped for their volumes to grow.",
	}, clusterLabels)
)

// countExpansion counts a growth that a new status says has ended.
func countExpansion(cluster *v1alpha1.ValkeyCluster, next v1alpha1.ValkeyClusterStatus) {
	previous := cluster.Status.Storage
	if previous == nil || next.Storage == nil {
		return
	}
	count := func(result, trigger string, times int) {
		if times > 0 {
			expansions.WithLabelValues(cluster.Namespace, cluster.Name, result, trigger).Add(float64(times))
		}
	}
	switch {
	case previous.ExpandingSince != nil && next.Storage.ExpandingSince == nil:
		if next.Storage.ExpandedAt.Equal(previous.ExpandedAt) {
			count(resultTakenBack, triggerOf(*previous), 1)
			return
		}
		count(resultGrown, triggerOf(*previous), 1)
		expansionSeconds.WithLabelValues(cluster.Namespace, cluster.Name).Observe(next.Storage.ExpandedAt.Sub(previous.ExpandingSince.Time).Seconds())
	case previous.ExpandingSince == nil && next.Storage.ExpandingSince == nil:
		count(resultGrown, triggerExternal, grownByThemselves(*previous, *next.Storage))
	}
}

// triggerOf is what made the growth begin that a status has under way: automatic
// growth if it decided since the last one ended.
func triggerOf(storage v1alpha1.StorageStatus) string {
	trigger := triggerSpec
	for _, shard := range storage.Shards {
		if shard.GrownAt == nil || storage.ExpandedAt != nil && shard.GrownAt.Before(storage.ExpandedAt) {
			continue
		}
		if shard.Emergency {
			return triggerEmergency
		}
		trigger = triggerAuto
	}
	return trigger
}

// grownByThemselves counts the volumes that grew while none was to.
func grownByThemselves(previous, next v1alpha1.StorageStatus) int {
	before := map[string]*metav1.Time{}
	for _, volume := range previous.Volumes {
		before[volume.Node] = volume.LastExpansionTime
	}
	grown := 0
	for _, volume := range next.Volumes {
		last, known := before[volume.Node]
		if known && volume.LastExpansionTime != nil && !volume.LastExpansionTime.Equal(last) {
			grown++
		}
	}
	return grown
}

// countStop counts a member that a new status says is stopped for its volume to grow.
func countStop(node *v1alpha1.ValkeyNode, next v1alpha1.ValkeyNodeStatus) {
	if !stoppedToGrow(node.Status) && stoppedToGrow(next) {
		storageRestarts.WithLabelValues(node.Namespace, node.Labels[name.LabelCluster]).Inc()
	}
}

func stoppedToGrow(status v1alpha1.ValkeyNodeStatus) bool {
	workload := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionWorkloadReady)
	return workload != nil && workload.Reason == v1alpha1.ReasonVolumeExpanding
}
