package report

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	nodeplan "valkey.io/valkey-operator/internal/plan/node"
)

// NodeStatus is the status of a node after a pass. What could not be observed
// keeps its last known value; a time moves only when what it dates changes.
func NodeStatus(prev v1alpha1.ValkeyNodeStatus, in nodeplan.Input, p plan.Plan, o plan.Outcome) v1alpha1.ValkeyNodeStatus {
	next := *prev.DeepCopy()
	next.ObservedGeneration = in.State.Generation
	reportPod(&next, in)
	reportAgent(&next, in)
	reportStorage(&next, in, o)
	for _, condition := range []metav1.Condition{
		readyCondition(in, p),
		trackCondition(v1alpha1.ConditionWorkloadReady, nodeplan.TrackWorkload, p, o),
		storageCondition(next, in, p, o),
	} {
		if condition.Reason == "" {
			continue
		}
		condition.ObservedGeneration = in.State.Generation
		condition.LastTransitionTime = metav1.NewTime(in.State.Now).Rfc3339Copy()
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	return next
}

func reportPod(next *v1alpha1.ValkeyNodeStatus, in nodeplan.Input) {
	pod, live := in.State.LivePod()
	if next.PodUID != pod.UID {
		next.Agent = nil
	}
	if !live {
		next.PodName, next.PodIP, next.PodUID, next.Worker = "", "", "", ""
		return
	}
	next.PodName, next.PodIP, next.PodUID, next.Worker = pod.Name, pod.IP, pod.UID, pod.Worker
	if revision, known := nodeplan.PodRevision(in, pod); known {
		next.Revision = revision
	}
}

func reportAgent(next *v1alpha1.ValkeyNodeStatus, in nodeplan.Input) {
	if !in.State.Agent.Known {
		return
	}
	facts := in.State.Agent.Value
	if facts.Role != "" {
		next.Role = string(facts.Role)
	}
	if facts.NodeID != "" {
		next.NodeID = facts.NodeID
	}
	next.Agent = &v1alpha1.AgentStatus{
		Server: string(facts.Server), Decision: string(facts.Decision), Message: facts.Message,
		Files: facts.Mended(),
	}
}

// fileEvents tell of files that cannot be used, and of what was done about it.
func fileEvents(prev, next v1alpha1.ValkeyNodeStatus) []Event {
	var events []Event
	before, after := conditionOf(prev, v1alpha1.ConditionWorkloadReady), conditionOf(next, v1alpha1.ConditionWorkloadReady)
	if after.Reason == v1alpha1.ReasonFilesDamaged && before.Reason != after.Reason {
		events = append(events, Event{corev1.EventTypeWarning, after.Reason, fmt.Sprintf("pod %s: %s", next.PodName, after.Message)})
	}
	if files := filesOf(next); files != "" && files != filesOf(prev) {
		events = append(events, Event{corev1.EventTypeWarning, v1alpha1.EventFilesMended, fmt.Sprintf("pod %s: %s", next.PodName, files)})
	}
	return events
}

func filesOf(status v1alpha1.ValkeyNodeStatus) string {
	if status.Agent == nil {
		return ""
	}
	return status.Agent.Files
}

func reportStorage(next *v1alpha1.ValkeyNodeStatus, in nodeplan.Input, o plan.Outcome) {
	if !in.Spec.Storage.Enabled {
		next.Storage = nil
		return
	}
	if next.Storage == nil {
		next.Storage = &v1alpha1.NodeStorageStatus{}
	}
	storage, before := next.Storage, next.Storage.DeepCopy()
	storage.Claim = in.Spec.Storage.ClaimName
	standing := nodeplan.Stand(in)
	storage.Phase, storage.NextEligibleTime = standing.Phase, nil
	if !standing.NextEligible.IsZero() {
		storage.NextEligibleTime = new(metav1.NewTime(standing.NextEligible).Rfc3339Copy())
	}
	if _, refused := nodeplan.RefusalIn(o); refused && standing.Ask != nil {
		storage.Phase = v1alpha1.StorageRejected
	}
	if claim := in.State.Claim; claim == nil {
		storage.Requested, storage.Capacity = nil, nil
	} else {
		if grew(storage.Capacity, claim.Capacity) {
			storage.LastExpansionTime = new(metav1.NewTime(in.State.Now).Rfc3339Copy())
		}
		if next.NodeID == "" {
			next.NodeID = claim.NodeID
		}
		storage.Requested = sizeOrNil(claim.Requested)
		storage.Capacity = sizeOrNil(claim.Capacity)
	}
	storage.ProgressedAt = progressedAt(before, storage, in.State.Now)
	reportUse(storage, in)
}

// progressedAt is when a volume's growth last came further, by what was told of it
// before; nil while it does not grow.
func progressedAt(before, now *v1alpha1.NodeStorageStatus, at time.Time) *metav1.Time {
	if !growing(now) {
		return nil
	}
	retried := before.Phase == v1alpha1.StorageRetrying || now.Phase == v1alpha1.StorageRetrying
	still := (before.Phase == now.Phase || retried) && sameSize(before.Requested, now.Requested) && sameSize(before.Capacity, now.Capacity)
	if before.ProgressedAt != nil && still {
		return before.ProgressedAt
	}
	return new(metav1.NewTime(at).Rfc3339Copy())
}

// growing says whether a volume has less than its claim asks for, or is to ask for more.
func growing(storage *v1alpha1.NodeStorageStatus) bool {
	if storage.Requested == nil || storage.Capacity == nil {
		return false
	}
	return storage.Capacity.Cmp(*storage.Requested) < 0 || storage.Phase == v1alpha1.StorageRequesting
}

func sameSize(a, b *resource.Quantity) bool {
	return a == b || a != nil && b != nil && a.Cmp(*b) == 0
}

// grew says whether a volume of the same claim has more capacity than it had.
func grew(before *resource.Quantity, now resource.Quantity) bool {
	return before != nil && before.Cmp(now) < 0
}

func sizeOrNil(size resource.Quantity) *resource.Quantity {
	if size.IsZero() {
		return nil
	}
	return &size
}

func reportUse(storage *v1alpha1.NodeStorageStatus, in nodeplan.Input) {
	disk := in.State.Agent.Value.Disk
	if !in.State.Agent.Known || disk == nil {
		return
	}
	bytes := step(storage.UsedPercent, disk.TotalBytes-disk.AvailableBytes, disk.TotalBytes)
	inodes := step(storage.InodesUsedPercent, disk.TotalInodes-disk.FreeInodes, disk.TotalInodes)
	if same(bytes, storage.UsedPercent) && same(inodes, storage.InodesUsedPercent) {
		return
	}
	storage.UsedPercent, storage.InodesUsedPercent = bytes, inodes
	storage.SampledAt = new(metav1.NewTime(in.State.Now).Rfc3339Copy())
	storage.Used = ""
	if bytes != nil {
		storage.Used = fmt.Sprintf("%d%%", *bytes)
	}
}

const (
	stepPercent = 5
	// fallPercent: a value must fall this far below its step before a lower
	// step is shown, so that one at the edge does not write for ever.
	fallPercent = 2
)

// step is a share in percent, rounded down to a step; nil when there is no
// whole. It rises at once and falls a little late.
func step(before *int32, part, whole int64) *int32 {
	if whole <= 0 {
		return before
	}
	percent := int32(min(max(part, 0), whole) * 100 / whole)
	if before != nil && percent < *before && percent >= *before-fallPercent {
		return before
	}
	return new(percent / stepPercent * stepPercent)
}

func same(a, b *int32) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// readyCondition says whether clients may be sent to the member. It looks at
// the pod alone: growing volumes and changes to come are not its matter.
func readyCondition(in nodeplan.Input, p plan.Plan) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	pod, live := in.State.LivePod()
	if live && pod.Ready {
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonPodReady
		condition.Message = fmt.Sprintf("pod %s is ready", pod.Name)
		return condition
	}
	condition.Reason, condition.Message = v1alpha1.ReasonPodPending, "the member's pod is not ready"
	if last, asked := lastOf(p, nodeplan.TrackWorkload); asked && last.Reason != "" {
		condition.Reason, condition.Message = last.Reason, last.Note
	}
	return condition
}

// trackCondition is what a track's last verdict makes of a condition. Its
// reason is empty when the verdict says nothing about it.
func trackCondition(kind, track string, p plan.Plan, o plan.Outcome) metav1.Condition {
	condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse}
	last, asked := lastOf(p, track)
	if !asked {
		return condition
	}
	if result, acted := o.Of(last.Rule); acted && result.Err != nil {
		condition.Reason, condition.Message = v1alpha1.ReasonObjectRefused, result.Err.Error()
		if refusal, refused := errors.AsType[*plan.Refusal](result.Err); refused {
			condition.Reason, condition.Message = refusal.Reason, refusal.Message
			return condition
		}
		// A fault of the machinery is retried and logged; it says nothing of
		// this member, so the condition stays as it was.
		condition.Reason = ""
		return condition
	}
	condition.Reason, condition.Message = last.Reason, last.Note
	if last.Hold == plan.Settled && len(last.Actions) == 0 {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

func storageCondition(next v1alpha1.ValkeyNodeStatus, in nodeplan.Input, p plan.Plan, o plan.Outcome) metav1.Condition {
	if !in.Spec.Storage.Enabled {
		return metav1.Condition{
			Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonStorageDisabled, Message: "the member is ephemeral: its data goes with its pod",
		}
	}
	condition := trackCondition(v1alpha1.ConditionStorageReady, nodeplan.TrackClaim, p, o)
	if refusal, refused := nodeplan.RefusalIn(o); refused {
		condition.Message = nodeplan.RefusalNote(in, refusal)
	}
	if condition.Status == metav1.ConditionTrue && condition.Reason == v1alpha1.ReasonVolumesBound && next.Storage.LastExpansionTime != nil {
		condition.Reason = v1alpha1.ReasonVolumeExpanded
	}
	return condition
}

// lastOf is the verdict that ended a track.
func lastOf(p plan.Plan, track string) (plan.Step, bool) {
	var last plan.Step
	asked := false
	for _, step := range p {
		if step.Track == track {
			last, asked = step, true
		}
	}
	return last, asked
}

// NodeEvents tells what happened between two statuses of a node; equal
// statuses give none.
func NodeEvents(prev, next v1alpha1.ValkeyNodeStatus) []Event {
	var events []Event
	before := conditionOf(prev, v1alpha1.ConditionStorageReady)
	after := conditionOf(next, v1alpha1.ConditionStorageReady)
	changed := before.Reason != after.Reason
	halt, halted := hardGrowthEvent(after.Reason, after.Message)
	switch {
	case changed && after.Reason == v1alpha1.ReasonVolumeExpanding:
		events = append(events, Event{corev1.EventTypeNormal, v1alpha1.ReasonVolumeExpanding, after.Message})
	case changed && halted && prev.Storage != nil && prev.Storage.Capacity != nil:
		events = append(events, halt)
	case changed && warned[after.Reason]:
		events = append(events, Event{corev1.EventTypeWarning, after.Reason, after.Message})
	}
	if expanded, is := expansion(prev, next); is {
		events = append(events, expanded)
	}
	events = append(events, restartEvents(prev, next)...)
	events = append(events, fileEvents(prev, next)...)
	if adopted(prev, next) {
		events = append(events, Event{
			corev1.EventTypeNormal, v1alpha1.EventVolumeAdopted,
			fmt.Sprintf("claim %s was taken up again, with the data of member %s", next.Storage.Claim, next.NodeID),
		})
	}
	return events
}

// warned are the other reasons of StorageReady worth an event.
var warned = map[string]bool{
	v1alpha1.ReasonForeignVolume:        true,
	v1alpha1.ReasonVolumeUnavailable:    true,
	v1alpha1.ReasonStorageClassMissing:  true,
	v1alpha1.ReasonExpansionRetrying:    true,
	v1alpha1.ReasonExpansionRateLimited: true,
	v1alpha1.ReasonQuotaExceeded:        true,
	v1alpha1.ReasonLimitRangeExceeded:   true,
}

// adopted says whether a node that is new found a claim that had a member
// before, and was not refused it.
func adopted(prev, next v1alpha1.ValkeyNodeStatus) bool {
	return prev.ObservedGeneration == 0 && next.NodeID != "" && next.Storage != nil &&
		conditionOf(next, v1alpha1.ConditionStorageReady).Reason != v1alpha1.ReasonForeignVolume
}

func expansion(prev, next v1alpha1.ValkeyNodeStatus) (Event, bool) {
	if prev.Storage == nil || next.Storage == nil || next.Storage.Capacity == nil || prev.Storage.Capacity == nil {
		return Event{}, false
	}
	if !grew(prev.Storage.Capacity, *next.Storage.Capacity) {
		return Event{}, false
	}
	return Event{corev1.EventTypeNormal, v1alpha1.ReasonVolumeExpanded, fmt.Sprintf("claim %s grew from %s to %s",
		next.Storage.Claim, prev.Storage.Capacity.String(), next.Storage.Capacity.String())}, true
}

func conditionOf(status v1alpha1.ValkeyNodeStatus, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(status.Conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}
