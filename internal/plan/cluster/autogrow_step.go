package cluster

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
)

const (
	gibibyte = 1 << 30
	mebibyte = 1 << 20
	// mostBytes keeps arithmetic on sizes within an int64: four exbibytes.
	mostBytes = 1 << 62
)

// targetOf is the size to which the volumes of a shard grow next: the largest
// that one has or shall have, and a step more. If a bound leaves no room for
// any step, it returns the growth that says so instead.
func targetOf(in Input, settings growthSettings, shard int, pressed pressure) (resource.Quantity, ShardGrowth) {
	base := EffectiveSize(in, shard)
	for _, member := range in.ofShard(shard) {
		if member.Claim != nil && member.Claim.Capacity.Cmp(base) > 0 {
			base = member.Claim.Capacity.DeepCopy()
		}
	}
	target := rounded(base.AsApproximateFloat64() + stepOf(settings, base.AsApproximateFloat64(), pressed))
	if settings.maxSize != nil && target.Cmp(*settings.maxSize) > 0 {
		target = settings.maxSize.DeepCopy()
	}
	if target.Cmp(base) <= 0 {
		return target, ShardGrowth{Reason: v1alpha1.ReasonAutoAtMaximum, Note: fmt.Sprintf(
			"%s %s, and spec.storage.autoExpansion.maxSize %s is reached; raise it, or free space", pressed.worst, pressed.how, settings.maxSize.String())}
	}
	ceiling, known := ceilingOf(in)
	if known && target.Cmp(ceiling) >= 0 {
		target = below(ceiling)
	}
	if target.Cmp(base) <= 0 {
		return target, ShardGrowth{Reason: v1alpha1.ReasonAutoCeiling, Note: fmt.Sprintf(
			"%s %s, and the driver refused to grow volumes to %s; free space, or make room in the storage system and raise spec.storage.size", pressed.worst, pressed.how, ceiling.String())}
	}
	return target, ShardGrowth{}
}

// stepOf is by how many bytes volumes grow: by the increment, or by what the
// fullest of them takes in during a cooldown, or by what brings every one of
// them below the threshold, whichever is most.
func stepOf(settings growthSettings, base float64, pressed pressure) float64 {
	step := settings.increment(base)
	for _, member := range pressed.members {
		if !member.use.Known {
			continue
		}
		hourly := hourlyGrowth(member.Agent.Value.Files, member.use.Value.used)
		step = max(step, hourly*settings.cooldown.Hours())
		// One percent below the threshold, since at it the next growth is due.
		enough := member.Claim.Capacity.AsApproximateFloat64() * member.use.Value.peak / (settings.threshold - 1)
		step = max(step, enough-base)
	}
	return step
}

// rounded is a size rounded up as storage systems like it: to a whole Gi, or
// below one to a whole Mi.
func rounded(bytes float64) resource.Quantity {
	unit := float64(gibibyte)
	if bytes < gibibyte {
		unit = mebibyte
	}
	return *resource.NewQuantity(int64(min(math.Ceil(bytes/unit)*unit, mostBytes)), resource.BinarySI)
}

// below is the next smaller size that storage systems like.
func below(size resource.Quantity) resource.Quantity {
	unit := float64(gibibyte)
	if size.AsApproximateFloat64() <= gibibyte {
		unit = mebibyte
	}
	whole := math.Ceil(size.AsApproximateFloat64()/unit) - 1
	return *resource.NewQuantity(int64(min(whole*unit, mostBytes)), resource.BinarySI)
}
