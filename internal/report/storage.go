package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// mostVolumes is up to how many members the status lists every volume; beyond,
// it lists those that are not satisfied.
const mostVolumes = 100

// hard are the reasons that do not go away by waiting.
func hard(reason string) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonStorageClassNotExpandable, v1alpha1.ReasonStorageClassMissing, v1alpha1.ReasonQuotaExceeded,
		v1alpha1.ReasonLimitRangeExceeded, v1alpha1.ReasonExpansionRefused, v1alpha1.ReasonExpansionInfeasible,
		v1alpha1.ReasonExpansionStalled, v1alpha1.ReasonOfflineExpansionRequired, v1alpha1.ReasonVolumeUnavailable,
		v1alpha1.ReasonForeignVolume, v1alpha1.ReasonObjectRefused,
	}, reason)
}

// clusterStorage sums up the volumes; nil for a cluster without storage.
func clusterStorage(in cluster.Input) *v1alpha1.StorageStatus {
	if !build.StorageEnabled(in.Spec) {
		return nil
	}
	storage := &v1alpha1.StorageStatus{}
	if in.State.Status.Storage != nil {
		storage.ExpandingSince = in.State.Status.Storage.ExpandingSince
		storage.ExpandedAt = in.State.Status.Storage.ExpandedAt
	}
	size := in.Spec.Storage.Size.DeepCopy()
	storage.RequestedSize = &size
	storage.Phase = v1alpha1.StorageSatisfied
	wanted := 0
	used := int32(-1)
	for _, member := range in.State.Members {
		if !member.Wanted {
			continue
		}
		wanted++
		volume := volumeOf(in, member)
		if volume.Capacity != nil {
			widen(&storage.Capacity, *volume.Capacity)
		}
		if volume.UsedPercent != nil && *volume.UsedPercent > used {
			used = *volume.UsedPercent
		}
		if volume.Phase != v1alpha1.StorageSatisfied {
			storage.Phase = volume.Phase
		}
		storage.Volumes = append(storage.Volumes, volume)
	}
	if used >= 0 {
		storage.Used = fmt.Sprintf("%d%%", used)
	}
	timeGrowth(storage, growing(in), in.State)
	if wanted > mostVolumes {
		storage.Volumes = slices.DeleteFunc(storage.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.Phase == v1alpha1.StorageSatisfied })
	}
	return storage
}

// timeGrowth keeps the times at which a growth was first seen and finished. A
// growth that was taken back before any volume grew leaves no trace.
func timeGrowth(storage *v1alpha1.StorageStatus, grows bool, snapshot state.Cluster) {
	now := metav1.NewTime(snapshot.Now.Truncate(time.Second)) // as the API stores it
	switch {
	case grows && storage.ExpandingSince == nil:
		storage.ExpandingSince = &now
	case !grows && storage.ExpandingSince != nil && storage.Phase == v1alpha1.StorageSatisfied:
		if grewSince(storage.Volumes, *storage.ExpandingSince) {
			storage.ExpandedAt = &now
		}
		storage.ExpandingSince = nil
	}
}

func grewSince(volumes []v1alpha1.VolumeStatus, since metav1.Time) bool {
	return slices.ContainsFunc(volumes, func(v v1alpha1.VolumeStatus) bool {
		return v.LastExpansionTime != nil && !v.LastExpansionTime.Time.Before(since.Time)
	})
}

// growing says whether a volume that is bound has less than it shall have.
func growing(in cluster.Input) bool {
	for _, member := range in.State.Members {
		if member.Wanted && behind(in, member) {
			return true
		}
	}
	return false
}

func behind(in cluster.Input, member state.Member) bool {
	if member.Claim == nil || member.Claim.Capacity.IsZero() {
		return false
	}
	return member.Claim.Capacity.Cmp(cluster.TargetSize(*in.Spec.Storage.Size, member)) < 0
}

func widen(r **v1alpha1.CapacityRange, capacity resource.Quantity) {
	if *r == nil {
		*r = &v1alpha1.CapacityRange{Min: capacity.DeepCopy(), Max: capacity.DeepCopy()}
		return
	}
	if capacity.Cmp((*r).Min) < 0 {
		(*r).Min = capacity.DeepCopy()
	}
	if capacity.Cmp((*r).Max) > 0 {
		(*r).Max = capacity.DeepCopy()
	}
}

// volumeOf is one member's line: sizes from its claim, the rest as its node says.
func volumeOf(in cluster.Input, member state.Member) v1alpha1.VolumeStatus {
	volume := v1alpha1.VolumeStatus{Node: member.Name, Phase: v1alpha1.StorageMissing}
	if member.Record == nil {
		return volume
	}
	volume.Claim = member.Record.Spec.Storage.ClaimName
	if told := member.Record.Status.Storage; told != nil {
		volume.Phase, volume.UsedPercent, volume.LastExpansionTime = told.Phase, told.UsedPercent, told.LastExpansionTime
	}
	if claim := member.Claim; claim != nil {
		requested, capacity := claim.Requested.DeepCopy(), claim.Capacity.DeepCopy()
		volume.Requested = &requested
		if !capacity.IsZero() {
			volume.Capacity = &capacity
		}
		if volume.Phase == v1alpha1.StorageSatisfied && behind(in, member) {
			volume.Phase = v1alpha1.StorageRequesting // the node has yet to hear of the new size
		}
	}
	if condition := meta.FindStatusCondition(member.Record.Status.Conditions, v1alpha1.ConditionStorageReady); condition != nil && condition.Status == metav1.ConditionFalse {
		volume.Reason, volume.Message = condition.Reason, condition.Message
	}
	return volume
}

// storageFinding says whether every volume has the size asked for.
func storageFinding(in cluster.Input, p plan.Plan, storage *v1alpha1.StorageStatus) (bool, finding) {
	if storage == nil {
		return true, finding{v1alpha1.ReasonStorageDisabled, "the cluster is ephemeral: its data lives and dies with its pods"}
	}
	if stalled, is := stalledStops(p); is {
		return false, stalled
	}
	if told, found := worstVolume(in, p, storage); found {
		return false, told
	}
	if growing(in) {
		return false, finding{v1alpha1.ReasonVolumeExpanding, expandingMessage(in)}
	}
	if pending := pendingVolumes(in); len(pending) > 0 {
		return false, finding{v1alpha1.ReasonVolumesPending, "waiting for the volumes of claims " + strings.Join(pending, ", ")}
	}
	if storage.ExpandingSince != nil {
		// The claims were seen before their nodes' word of them. It ends when
		// all agree, so that it ends once.
		return false, finding{v1alpha1.ReasonVolumeExpanding, expandingMessage(in)}
	}
	if step, asked := p.Step("sizeNotBelowCapacity"); asked && step.Hold == plan.Blocked {
		return true, finding{step.Reason, step.Note}
	}
	if storage.ExpandedAt != nil {
		return true, finding{v1alpha1.ReasonVolumeExpanded, fmt.Sprintf("all %d volumes have grown to %s", wantedCount(in), storage.RequestedSize.String())}
	}
	return true, finding{v1alpha1.ReasonVolumesBound, fmt.Sprintf("all %d volumes have %s", wantedCount(in), storage.RequestedSize.String())}
}

// worstVolume is the first hard reason among the volumes, with how many have it.
func worstVolume(in cluster.Input, p plan.Plan, storage *v1alpha1.StorageStatus) (finding, bool) {
	var first *v1alpha1.VolumeStatus
	count := 0
	for i, volume := range storage.Volumes {
		if hard(volume.Reason) && !carriedOut(in, p, volume.Reason) {
			if first == nil {
				first = &storage.Volumes[i]
			}
			if volume.Reason == first.Reason {
				count++
			}
		}
	}
	if first == nil {
		return finding{}, false
	}
	return finding{first.Reason, fmt.Sprintf("%d of %d volumes: %s", count, wantedCount(in), first.Message)}, true
}

func expandingMessage(in cluster.Input) string {
	grown := 0
	var rest []string
	for _, member := range in.State.Members {
		switch {
		case !member.Wanted:
		case behind(in, member):
			rest = append(rest, fmt.Sprintf("%s %s", member.Claim.Name, member.Claim.Capacity.String()))
		default:
			grown++
		}
	}
	message := fmt.Sprintf("growing to %s: %d of %d volumes are done", in.Spec.Storage.Size.String(), grown, wantedCount(in))
	if len(rest) == 0 {
		return message
	}
	return message + "; " + strings.Join(rest, ", ")
}

func pendingVolumes(in cluster.Input) []string {
	var pending []string
	for _, member := range in.State.Members {
		if !member.Wanted {
			continue
		}
		if member.Claim == nil || member.Claim.Capacity.IsZero() {
			pending = append(pending, name.Claim(member.Name))
		}
	}
	return pending
}

func wantedCount(in cluster.Input) int {
	count := 0
	for _, member := range in.State.Members {
		if member.Wanted {
			count++
		}
	}
	return count
}
