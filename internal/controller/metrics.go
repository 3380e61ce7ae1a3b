package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"valkey.io/valkey-operator/api/v1alpha1"
)

var (
	clusterLabels = []string{"namespace", "cluster"}
	volumeLabels  = []string{"namespace", "cluster", "node"}

	clusterCondition = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "valkey_cluster_condition",
		Help: "1 while a condition of a ValkeyCluster is True, 0 otherwise.",
	}, append(clusterLabels, "type"))
	volumeRequested = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "valkey_volume_requested_bytes",
		Help: "Size that the claim of a member asks for.",
	}, volumeLabels)
	volumeCapacity = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "valkey_volume_capacity_bytes",
		Help: "Size that the volume of a member has.",
	}, volumeLabels)
	volumeUsed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "valkey_volume_used_ratio",
		Help: "Use of a member's file system between 0 and 1, in steps of 0.05.",
	}, volumeLabels)
	volumePhase = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "valkey_volume_phase",
		Help: "1 for the phase that the volume of a member is in.",
	}, append(volumeLabels, "phase"))
	expansions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "valkey_cluster_expansions_total",
		Help: "Growths of a cluster's volumes that were finished.",
	}, clusterLabels)
)

func init() {
	metrics.Registry.MustRegister(clusterCondition, volumeRequested, volumeCapacity, volumeUsed, volumePhase, expansions)
}

// recordCluster shows a status as metrics; the series of volumes that it no
// longer lists go.
func recordCluster(cluster *v1alpha1.ValkeyCluster, next v1alpha1.ValkeyClusterStatus) {
	labels := prometheus.Labels{"namespace": cluster.Namespace, "cluster": cluster.Name}
	for _, condition := range next.Conditions {
		value := 0.0
		if meta.IsStatusConditionTrue(next.Conditions, condition.Type) {
			value = 1
		}
		clusterCondition.WithLabelValues(cluster.Namespace, cluster.Name, condition.Type).Set(value)
	}
	for _, vector := range []*prometheus.GaugeVec{volumeRequested, volumeCapacity, volumeUsed, volumePhase} {
		vector.DeletePartialMatch(labels)
	}
	if next.Storage == nil {
		return
	}
	for _, volume := range next.Storage.Volumes {
		recordVolume(cluster, volume)
	}
}

// countExpansion counts a growth that a new status says is finished.
func countExpansion(cluster *v1alpha1.ValkeyCluster, next v1alpha1.ValkeyClusterStatus) {
	previous := cluster.Status.Storage
	if previous != nil && previous.ExpandingSince != nil && next.Storage != nil && next.Storage.ExpandingSince == nil {
		expansions.WithLabelValues(cluster.Namespace, cluster.Name).Inc()
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
	for _, vector := range []*prometheus.GaugeVec{clusterCondition, volumeRequested, volumeCapacity, volumeUsed, volumePhase} {
		vector.DeletePartialMatch(labels)
	}
	expansions.DeletePartialMatch(labels)
}
