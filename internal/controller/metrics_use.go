package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// The use of volumes as their agents say it now, which no status holds: it
// would be written at every look.
var (
	volumeUsedBytes      = gauge("valkey_volume_used_bytes", "Bytes of a member's file system that are not available to its server.", volumeLabels)
	volumeAvailableBytes = gauge("valkey_volume_available_bytes", "Bytes of a member's file system that are available to its server.", volumeLabels)
	volumeInodesUsed     = gauge("valkey_volume_inodes_used_ratio", "Use of the inodes of a member's file system between 0 and 1.", volumeLabels)
	volumeSecondsToFull  = gauge("valkey_volume_full_in_seconds", "Seconds until a member's volume is full if it goes on to fill up as within the last hour; absent while it does not.", volumeLabels)

	perUse = []*prometheus.GaugeVec{volumeUsedBytes, volumeAvailableBytes, volumeInodesUsed, volumeSecondsToFull}
)

// recordUse shows the use of a cluster's volumes. Those of members that are gone
// or silent go: a number that nobody tells any more is none.
func recordUse(seen state.Cluster) {
	for _, vector := range perUse {
		vector.DeletePartialMatch(prometheus.Labels{"namespace": seen.Namespace, "cluster": seen.Name})
	}
	for _, member := range seen.Members {
		disk := member.Agent.Value.Disk
		if !member.Agent.Known || member.Claim == nil || disk == nil || disk.TotalBytes <= 0 {
			continue
		}
		labels := []string{seen.Namespace, seen.Name, member.Name}
		volumeUsedBytes.WithLabelValues(labels...).Set(float64(disk.TotalBytes - disk.AvailableBytes))
		volumeAvailableBytes.WithLabelValues(labels...).Set(float64(disk.AvailableBytes))
		if disk.TotalInodes > 0 {
			volumeInodesUsed.WithLabelValues(labels...).Set(float64(disk.TotalInodes-disk.FreeInodes) / float64(disk.TotalInodes))
		}
		if left, known := cluster.TimeToFull(member.Agent.Value); known {
			volumeSecondsToFull.WithLabelValues(labels...).Set(left.Round(time.Second).Seconds())
		}
	}
}
