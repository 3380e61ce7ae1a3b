package report

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// endsGrowth are the reasons by which a growth that had begun fails, and
// stopsGrowth those by which it is refused.
var (
	endsGrowth  = []string{v1alpha1.ReasonExpansionInfeasible, v1alpha1.ReasonExpansionStalled}
	stopsGrowth = []string{
		v1alpha1.ReasonStorageClassNotExpandable, v1alpha1.ReasonStorageClassMissing, v1alpha1.ReasonQuotaExceeded,
		v1alpha1.ReasonLimitRangeExceeded, v1alpha1.ReasonExpansionRefused, v1alpha1.ReasonOfflineExpansionRequired,
	}
)

// hardGrowthEvent is the event of a growth that does not go on by waiting, and
// whether the reason is one of those.
func hardGrowthEvent(reason, message string) (Event, bool) {
	told := Event{Type: corev1.EventTypeWarning, Message: reason + ": " + message}
	switch {
	case slices.Contains(endsGrowth, reason):
		told.Reason = v1alpha1.EventVolumeExpansionFailed
	case slices.Contains(stopsGrowth, reason):
		told.Reason = v1alpha1.EventVolumeExpansionBlocked
	default:
		return Event{}, false
	}
	return told, true
}

// storageEvents are what happened to the volumes' sizes: one event for a growth
// that began, ended, was taken back, or came to a halt.
func storageEvents(prev, next v1alpha1.ValkeyClusterStatus) []Event {
	if next.Storage == nil {
		return nil
	}
	var events []Event
	if began(prev, next) && !byItself(next.Storage) {
		events = append(events, Event{Type: corev1.EventTypeNormal, Reason: v1alpha1.ReasonVolumeExpanding, Message: said(next, v1alpha1.ReasonVolumeExpanding, "volumes grow to ")})
	}
	if recovered(prev, next) {
		events = append(events, Event{Type: corev1.EventTypeNormal, Reason: v1alpha1.EventVolumeExpansionRecovered, Message: fmt.Sprintf(
			"the growth to %s, which could not be had, was taken back; volumes keep what they have, and %s is asked for", next.Storage.Ceiling.Size.String(), next.Storage.RequestedSize.String())})
	}
	if ended(prev, next) {
		events = append(events, Event{Type: corev1.EventTypeNormal, Reason: v1alpha1.ReasonVolumeExpanded, Message: said(next, v1alpha1.ReasonVolumeExpanded, "volumes have grown to ") + tookSince(prev, next)})
	}
	return append(events, haltEvents(prev, next)...)
}

// haltEvents tell what does not go away by waiting.
func haltEvents(prev, next v1alpha1.ValkeyClusterStatus) []Event {
	before, after := condition(prev, v1alpha1.ConditionStorageReady), condition(next, v1alpha1.ConditionStorageReady)
	if before.Reason == after.Reason || !hard(after.Reason) && after.Reason != v1alpha1.ReasonVolumeShrinkRefused {
		return nil
	}
	if told, about := hardGrowthEvent(after.Reason, after.Message); about && prev.Formed {
		return []Event{told}
	}
	return []Event{{Type: corev1.EventTypeWarning, Reason: after.Reason, Message: after.Message}}
}

// said is what the condition says if it has a reason, else the size asked for
// after some words: something worse may have the word.
func said(status v1alpha1.ValkeyClusterStatus, reason, otherwise string) string {
	if told := condition(status, v1alpha1.ConditionStorageReady); told.Reason == reason || status.Storage.RequestedSize == nil {
		return told.Message
	}
	return otherwise + status.Storage.RequestedSize.String()
}

func began(prev, next v1alpha1.ValkeyClusterStatus) bool {
	since := next.Storage.ExpandingSince
	return since != nil && (prev.Storage == nil || !since.Equal(prev.Storage.ExpandingSince))
}

func ended(prev, next v1alpha1.ValkeyClusterStatus) bool {
	at := next.Storage.ExpandedAt
	return at != nil && (prev.Storage == nil || !at.Equal(prev.Storage.ExpandedAt))
}

// decisionTime is how long after its decision automatic growth has begun.
const decisionTime = time.Minute

// byItself says whether the growth that just began is one that automatic growth
// decided, which was told then.
func byItself(storage *v1alpha1.StorageStatus) bool {
	return slices.ContainsFunc(storage.Shards, func(line v1alpha1.ShardStorageStatus) bool {
		return line.GrownAt != nil && storage.ExpandingSince.Sub(line.GrownAt.Time) < decisionTime
	})
}

// recovered says whether a growth that could not be had has been taken back.
func recovered(prev, next v1alpha1.ValkeyClusterStatus) bool {
	before, after := condition(prev, v1alpha1.ConditionStorageReady), condition(next, v1alpha1.ConditionStorageReady)
	storage := next.Storage
	return before.Reason == v1alpha1.ReasonExpansionInfeasible && after.Reason != before.Reason && !hard(after.Reason) &&
		storage.Ceiling != nil && storage.RequestedSize != nil && storage.RequestedSize.Cmp(storage.Ceiling.Size) < 0
}

func tookSince(prev, next v1alpha1.ValkeyClusterStatus) string {
	if prev.Storage == nil || prev.Storage.ExpandingSince == nil || next.Storage.ExpandedAt == nil {
		return ""
	}
	took := next.Storage.ExpandedAt.Sub(prev.Storage.ExpandingSince.Time).Round(time.Second)
	return fmt.Sprintf("; the growth took %s", took)
}
