package cluster

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// EffectiveSize is the size that the volumes of a shard shall have: the spec's,
// or what automatic growth arrived at if that is more. What grew by itself stays
// when automatic growth is turned off, since volumes cannot shrink, but never
// counts for more than maxSize. The spec must have storage enabled.
func EffectiveSize(in Input, shard int) resource.Quantity {
	size := in.Spec.Storage.Size.DeepCopy()
	target, grown := autoTarget(in, shard)
	if !grown {
		return size
	}
	if auto := in.Spec.Storage.AutoExpansion; auto != nil && auto.MaxSize != nil && target.Cmp(*auto.MaxSize) > 0 {
		target = auto.MaxSize.DeepCopy()
	}
	if target.Cmp(size) > 0 {
		return target
	}
	return size
}

// autoTarget is the size that automatic growth arrived at for a shard, if it ever grew.
func autoTarget(in Input, shard int) (resource.Quantity, bool) {
	remembered := Remembered(in, shard)
	if remembered.AutoTarget == nil {
		return resource.Quantity{}, false
	}
	return remembered.AutoTarget.DeepCopy(), true
}

// Remembered is what the status remembers of a shard's volumes; of one that it
// has no line for, nothing but its index.
func Remembered(in Input, shard int) v1alpha1.ShardStorageStatus {
	if in.State.Status.Storage != nil {
		for _, line := range in.State.Status.Storage.Shards {
			if int(line.Shard) == shard {
				return line
			}
		}
	}
	return v1alpha1.ShardStorageStatus{Shard: int32(shard)}
}
