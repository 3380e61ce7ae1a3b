package controller

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"valkey.io/valkey-operator/api/v1alpha1"
)

var (
	clusterLabels = []string{"namespace", "cluster"}
	volumeLabels  = []string{"namespace", "cluster", "node"}

	clusterCondition = gauge("valkey_cluster_condition", "1 while a condition of a ValkeyCluster is True, 0 otherwise.", append(clusterLabels, "type"))
	clusterReason    = gauge("valkey_cluster_reason", "1 for the reason that a condition of a ValkeyCluster gives now; status is True or False.", append(clusterLabels, "type", "status", "reason"))
	volumeRequested  = gauge("valkey_volume_requested_bytes", "Size that the claim of a member asks for.", volumeLabels)
	volumeCapacity   = gauge("valkey_volume_capacity_bytes", "Size that the volume of a member has.", volumeLabels)
	volumeUsed       = gauge("valkey_volume_used_ratio", "Use of a member's file system between 0 and 1, in steps of 0.05.", volumeLabels)
	volumePhase      = gauge("valkey_volume_phase", "1 for the phase that the volume of a member is in.", append(volumeLabels, "phase"))
	// perVolume are the gauges that come from statuses, and perCluster all that a
	// cluster takes along when it goes.
	perVolume  = []*prometheus.GaugeVec{volumeRequested, volumeCapacity, volumeUsed, volumePhase}
	perCluster = append([]*prometheus.GaugeVec{clusterCondition, clusterReason}, perVolume...)
)

func gauge(metric, help string, labels []string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metric, Help: help}, labels)
}

func init() {
	for _, vector := range slices.Concat(perCluster, perUse) {
		metrics.Registry.MustRegister(vector)
	}
	metrics.Registry.MustRegister(expansions, expansionSeconds, storageRestarts)
}

// recordCluster shows a status as metrics; the series of volumes that it no
// longer lists go.
func recordCluster(cluster *v1alpha1.ValkeyCluster, next v1alpha1.ValkeyClusterStatus) {
	labels := prometheus.Labels{"namespace": cluster.Namespace, "cluster": cluster.Name}
	clusterReason.DeletePartialMatch(labels)
	for _, condition := range next.Conditions {
		clusterReason.WithLabelValues(cluster.Namespace, cluster.Name, condition.Type, string(condition.Status), condition.Reason).Set(1)
		value := 0.0
		if meta.IsStatusConditionTrue(next.Conditions, condition.Type) {
			value = 1
		}
		clusterCondition.WithLabelValues(cluster.Namespace, cluster.Name, condition.Type).Set(value)
	}
	for _, vector := range perVolume {
		vector.DeletePartialMatch(labels)
	}
	if next.Storage == nil {
		return
	}
	for _, volume := range next.Storage.Volumes {
		recordVolume(cluster, volume)
	}
}

func recordVolume(cluster *v1alpha1.ValkeyCluster, volume v1alpha1.VolumeStatus) {
	if volume.Requested != nil {
		volumeRequested.WithLabelValues(cluster.Namespace, cluster.Name, volume.Node).Set(volume.Requested.AsApproximateFloat64())
	}
	if volume.Capacity != nil {
		volumeCapacity.WithLabelValues(cluster.Namespace, cluster.Name, volume.Node).Set(volume.Capacity.AsApproximateFloat64())
	}
	if volume.UsedPercent != nil {
		volumeUsed.WithLabelValues(cluster.Namespace, cluster.Name, volume.Node).Set(float64(*volume.UsedPercent) / 100)
	}
	volumePhase.WithLabelValues(cluster.Namespace, cluster.Name, volume.Node, string(volume.Phase)).Set(1)
}

// forgetCluster removes the series of a cluster that is gone.
func forgetCluster(key client.ObjectKey) {
	labels := prometheus.Labels{"namespace": key.Namespace, "cluster": key.Name}
	for _, vector := range slices.Concat(perCluster, perUse) {
		vector.DeletePartialMatch(labels)
	}
	expansions.DeletePartialMatch(labels)
	expansionSeconds.DeletePartialMatch(labels)
	storageRestarts.DeletePartialMatch(labels)
}
