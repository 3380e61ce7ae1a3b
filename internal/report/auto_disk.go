package report

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// tellUse marks the volumes that are full, or nearly so, among those that
// nothing worse is said of. In a cluster that is too large for a line a volume,
// they get lines while there is room.
func tellUse(in cluster.Input, storage *v1alpha1.StorageStatus) {
	if storage == nil {
		return
	}
	for _, member := range in.State.Members {
		reason, message := useReason(in, member)
		if reason == "" {
			continue
		}
		at := slices.IndexFunc(storage.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.Node == member.Name })
		if at < 0 && len(storage.Volumes) < mostVolumes {
			storage.Volumes = append(storage.Volumes, volumeOf(in, member))
			at = len(storage.Volumes) - 1
		}
		if at >= 0 && storage.Volumes[at].Reason == "" {
			storage.Volumes[at].Reason, storage.Volumes[at].Message = reason, message
		}
	}
}

// useReason is what to say about how full a member's volume is; nothing when it
// is not. What cannot be seen now stays as it was told.
func useReason(in cluster.Input, member state.Member) (reason, message string) {
	if !member.Wanted || member.Claim == nil {
		return "", ""
	}
	before := toldReason(in.State.Status, member.Name)
	if cluster.DiskFull(member) || !member.Agent.Known && before == v1alpha1.ReasonDiskFull {
		return v1alpha1.ReasonDiskFull, fmt.Sprintf("volume %s is full, and node %s writes nothing", member.Claim.Name, member.Name)
	}
	wasFull := before == v1alpha1.EventDiskPressure
	full, known := cluster.NearlyFull(in, member, wasFull)
	if full || !known && wasFull {
		return v1alpha1.EventDiskPressure, fmt.Sprintf("volume %s is %.0f%% full or more", member.Claim.Name, cluster.ThresholdPercent(in.Spec))
	}
	return "", ""
}

// toldReason is the reason that a status gives for a node's volume.
func toldReason(status v1alpha1.ValkeyClusterStatus, node string) string {
	if status.Storage != nil {
		for _, volume := range status.Storage.Volumes {
			if volume.Node == node {
				return volume.Reason
			}
		}
	}
	return ""
}

// withFullDisks puts a full disk before whatever else is said of the volumes,
// together with what is being done about it.
func withFullDisks(in cluster.Input, ready bool, told finding) (bool, finding) {
	var full []string
	shard := 0
	for _, member := range in.State.Members {
		if reason, _ := useReason(in, member); reason == v1alpha1.ReasonDiskFull {
			if len(full) == 0 {
				shard = member.Shard
			}
			full = append(full, fmt.Sprintf("%s of node %s", member.Claim.Name, member.Name))
		}
	}
	if len(full) == 0 {
		return ready, told
	}
	return false, finding{v1alpha1.ReasonDiskFull, fmt.Sprintf("no space is left on volume %s, whose server writes nothing; %s",
		strings.Join(firstFew(full), ", "), answerTo(in, shard, ready, told))}
}

// answerTo is what is being done about a full disk: growth that runs or fails,
// what automatic growth says, or else what a person can do.
func answerTo(in cluster.Input, shard int, ready bool, told finding) string {
	if !ready {
		return told.reason + ": " + told.message
	}
	growths := cluster.AutoGrowth(in)
	if shard < len(growths) && in.Spec.Storage.AutoExpansion.Mode == v1alpha1.AutoExpansionAuto {
		return growths[shard].Note
	}
	return "raise spec.storage.size, which needs no restart, or free space"
}

func firstFew(list []string) []string {
	const most = 6
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
}

// useEvents are what happened to the space on volumes between two statuses.
func useEvents(prev, next v1alpha1.ValkeyClusterStatus) []Event {
	if next.Storage == nil {
		return nil
	}
	var events []Event
	before, after := condition(prev, v1alpha1.ConditionStorageReady), condition(next, v1alpha1.ConditionStorageReady)
	if after.Reason == v1alpha1.ReasonDiskFull && before.Reason != after.Reason {
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: after.Reason, Message: after.Message})
	}
	if pressed := newlyPressed(prev, next); len(pressed) > 0 {
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: v1alpha1.EventDiskPressure, Message: strings.Join(firstFew(pressed), ", ")})
	}
	return append(events, autoEvents(prev, next)...)
}

func newlyPressed(prev, next v1alpha1.ValkeyClusterStatus) []string {
	var pressed []string
	for _, volume := range next.Storage.Volumes {
		before := toldReason(prev, volume.Node)
		if volume.Reason == v1alpha1.EventDiskPressure && before != volume.Reason && before != v1alpha1.ReasonDiskFull {
			pressed = append(pressed, volume.Message)
		}
	}
	return pressed
}

// autoEvents tell of sizes that were decided or recommended, and of growth that
// came to its bound.
func autoEvents(prev, next v1alpha1.ValkeyClusterStatus) []Event {
	var events []Event
	before, after := condition(prev, v1alpha1.ConditionAutoExpansion), condition(next, v1alpha1.ConditionAutoExpansion)
	if decided(prev, next) && after.Status == metav1.ConditionTrue {
		events = append(events, Event{Type: corev1.EventTypeNormal, Reason: v1alpha1.ReasonVolumeExpanding, Message: "by itself: " + after.Message})
	}
	if size := next.Storage.RecommendedSize; size != nil && (prev.Storage == nil || prev.Storage.RecommendedSize == nil || prev.Storage.RecommendedSize.Cmp(*size) != 0) {
		events = append(events, Event{Type: corev1.EventTypeNormal, Reason: v1alpha1.EventVolumeExpansionRecommended, Message: after.Message})
	}
	if before.Reason != after.Reason && (after.Reason == v1alpha1.ReasonAutoAtMaximum || after.Reason == v1alpha1.ReasonAutoCeiling) {
		events = append(events, Event{Type: corev1.EventTypeWarning, Reason: after.Reason, Message: after.Message})
	}
	return events
}

// decided says whether automatic growth gave some shard a new size.
func decided(prev, next v1alpha1.ValkeyClusterStatus) bool {
	known := map[int32]*metav1.Time{}
	if prev.Storage != nil {
		for _, line := range prev.Storage.Shards {
			known[line.Shard] = line.GrownAt
		}
	}
	return slices.ContainsFunc(next.Storage.Shards, func(line v1alpha1.ShardStorageStatus) bool {
		return line.GrownAt != nil && !line.GrownAt.Equal(known[line.Shard])
	})
}
