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
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/plan/volume"
	"valkey.io/valkey-operator/internal/state"
)

const (
	// mostVolumes is up to how many members the status lists every volume; beyond,
	// it lists as many of those that are not satisfied.
	mostVolumes = 100
	// longestLine bounds the message of a volume's line, in bytes: with mostVolumes
	// of them the object stays below 100 KiB. Its node has the whole of it.
	longestLine = 400
)

// phaseOrder is the phases, what is furthest behind first.
var phaseOrder = []v1alpha1.StoragePhase{
	v1alpha1.StorageLost, v1alpha1.StorageTerminating, v1alpha1.StorageMissing, v1alpha1.StorageUnbound,
	v1alpha1.StorageRejected, v1alpha1.StorageInfeasibleController, v1alpha1.StorageInfeasibleNode, v1alpha1.StorageOfflineRequired,
	v1alpha1.StorageRetrying, v1alpha1.StorageRequesting, v1alpha1.StorageControllerResizing, v1alpha1.StorageFileSystemPending,
	v1alpha1.StorageRollingBack, v1alpha1.StorageSatisfied,
}

// clusterStorage sums up the volumes; nil for a cluster without storage.
func clusterStorage(in cluster.Input, p plan.Plan, o plan.Outcome) *v1alpha1.StorageStatus {
	if !build.StorageEnabled(in.Spec) {
		return nil
	}
	storage := &v1alpha1.StorageStatus{Ceiling: ceiling(in), Volumes: volumesOf(in)}
	if before := in.State.Status.Storage; before != nil {
		storage.ExpandingSince, storage.ExpandedAt = before.ExpandingSince, before.ExpandedAt
	}
	size := in.Spec.Storage.Size.DeepCopy()
	storage.RequestedSize = &size
	storage.Phase = v1alpha1.StorageSatisfied
	used := int32(-1)
	for _, volume := range storage.Volumes {
		if volume.Capacity != nil {
			widen(&storage.Capacity, *volume.Capacity)
		}
		if volume.UsedPercent != nil {
			used = max(used, *volume.UsedPercent)
		}
		if slices.Index(phaseOrder, volume.Phase) < slices.Index(phaseOrder, storage.Phase) {
			storage.Phase = volume.Phase
		}
	}
	if used >= 0 {
		storage.Used = fmt.Sprintf("%d%%", used)
	}
	timeGrowth(storage, growthIn(in, p, o), in.State)
	storage.Volumes = listed(storage.Volumes)
	return storage
}

// listed is what the status lists of many volumes: those that are not satisfied,
// what does not go away by waiting first, within a bound.
func listed(volumes []v1alpha1.VolumeStatus) []v1alpha1.VolumeStatus {
	if len(volumes) > mostVolumes {
		volumes = slices.DeleteFunc(volumes, func(v v1alpha1.VolumeStatus) bool { return v.Phase == v1alpha1.StorageSatisfied })
	}
	if len(volumes) > mostVolumes {
		slices.SortStableFunc(volumes, func(a, b v1alpha1.VolumeStatus) int { return severity(a.Reason) - severity(b.Reason) })
		volumes = volumes[:mostVolumes]
	}
	for i := range volumes {
		if message := volumes[i].Message; len(message) > longestLine {
			volumes[i].Message = strings.ToValidUTF8(message[:longestLine], "") + " …"
		}
	}
	return volumes
}

// growth is how far the growth of a cluster's volumes is.
type growth struct {
	begins bool // its first volume's node was told in this pass
	runs   bool // some volume is on its way
	waits  bool // some volume has less than it shall have
}

func growthIn(in cluster.Input, p plan.Plan, o plan.Outcome) growth {
	var found growth
	step, _ := p.Step(cluster.RuleSizesCurrent)
	result, acted := o.Of(cluster.RuleSizesCurrent)
	given, _ := o.Of(cluster.RuleSizesGiven)
	found.begins = acted && result.Done > 0 && len(step.Trials) > 0
	found.runs = acted && result.Done > 0
	for _, member := range in.State.Members {
		if member.Wanted && behind(in, member) {
			found.waits = true
			found.runs = found.runs || !untouched(in, member) || given.Done > 0 && cluster.GrowsAtOnce(in, member)
		}
	}
	return found
}

// timeGrowth keeps the times at which a growth began and was finished. A growth
// that was taken back before any volume grew leaves no trace, and one that is
// refused before it began has not begun.
func timeGrowth(storage *v1alpha1.StorageStatus, found growth, snapshot state.Cluster) {
	now := metav1.NewTime(snapshot.Now.Truncate(time.Second)) // as the API stores it
	switch {
	case found.begins || found.runs && storage.ExpandingSince == nil:
		storage.ExpandingSince = &now
	case !found.waits && storage.ExpandingSince != nil && storage.Phase == v1alpha1.StorageSatisfied:
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

// ceiling is the smallest size that a driver was seen to refuse for good, and
// when it did last. It stays when the wish is taken back, until every volume has
// the size after all.
func ceiling(in cluster.Input) *v1alpha1.StorageCeiling {
	var known *v1alpha1.StorageCeiling
	if before := in.State.Status.Storage; before != nil && before.Ceiling != nil {
		known = before.Ceiling.DeepCopy()
	}
	disproved := known != nil
	for _, member := range in.State.Members {
		if !member.Wanted || member.Claim == nil {
			continue
		}
		disproved = disproved && member.Claim.Capacity.Cmp(known.Size) >= 0
		known = lowest(known, refusedSize(*member.Claim))
	}
	if disproved {
		return nil
	}
	if known != nil && known.Since.IsZero() {
		known.Since = metav1.NewTime(in.State.Now.Truncate(time.Second))
	}
	return known
}

// lowest is the lower of two ceilings, and the later of two equal ones.
func lowest(known, found *v1alpha1.StorageCeiling) *v1alpha1.StorageCeiling {
	switch {
	case known == nil:
		return found
	case found == nil || found.Size.Cmp(known.Size) > 0:
		return known
	case found.Size.Cmp(known.Size) < 0 || known.Since.Before(&found.Since):
		return found
	default:
		return known
	}
}

// refusedSize is the size that the driver says it can never give a claim, if it
// says so, and since when; zero when that is not known.
func refusedSize(claim state.Claim) *v1alpha1.StorageCeiling {
	size, since, infeasible := volume.InfeasibleSize(claim)
	if !infeasible {
		return nil
	}
	return &v1alpha1.StorageCeiling{Size: size.DeepCopy(), Since: metav1.NewTime(since.Truncate(time.Second))}
}

// behind says whether a volume that is bound has less than it shall have.
func behind(in cluster.Input, member state.Member) bool {
	if member.Claim == nil || member.Claim.Capacity.IsZero() {
		return false
	}
	return member.Claim.Capacity.Cmp(target(in, member)) < 0
}

func target(in cluster.Input, member state.Member) resource.Quantity {
	return cluster.TargetSize(cluster.EffectiveSize(in, member.Shard), member)
}

// untouched says whether a volume's node was not told yet of a size that the
// volume shall have.
func untouched(in cluster.Input, member state.Member) bool {
	if member.Record == nil || member.Record.Spec.Storage.Size == nil {
		return true
	}
	return member.Record.Spec.Storage.Size.Cmp(target(in, member)) < 0
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

// volumesOf has a line for each wanted member.
func volumesOf(in cluster.Input) []v1alpha1.VolumeStatus {
	var volumes []v1alpha1.VolumeStatus
	for _, member := range in.State.Members {
		if member.Wanted {
			volumes = append(volumes, volumeOf(in, member))
		}
	}
	return volumes
}

// volumeOf is one member's line: sizes from its claim, the rest as its node says.
func volumeOf(in cluster.Input, member state.Member) v1alpha1.VolumeStatus {
	line := v1alpha1.VolumeStatus{Node: member.Name, Phase: v1alpha1.StorageMissing}
	if member.Record == nil {
		return line
	}
	line.Claim = member.Record.Spec.Storage.ClaimName
	if told := member.Record.Status.Storage; told != nil {
		line.UsedPercent, line.LastExpansionTime, line.NextEligibleTime = told.UsedPercent, told.LastExpansionTime, told.NextEligibleTime
		if slices.Contains(phaseOrder, told.Phase) {
			line.Phase = told.Phase
		}
	}
	if claim := member.Claim; claim != nil {
		requested, capacity := claim.Requested.DeepCopy(), claim.Capacity.DeepCopy()
		line.Requested = &requested
		if !capacity.IsZero() {
			line.Capacity = &capacity
		}
		if line.Phase == v1alpha1.StorageSatisfied && behind(in, member) {
			line.Phase = v1alpha1.StorageRequesting // the node has yet to hear of the new size
		}
	}
	if condition := meta.FindStatusCondition(member.Record.Status.Conditions, v1alpha1.ConditionStorageReady); condition != nil && condition.Status == metav1.ConditionFalse {
		line.Reason, line.Message = condition.Reason, condition.Message
	}
	return line
}
