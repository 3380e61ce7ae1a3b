package state

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// EffectiveSize is the size that the volumes of a shard shall have: the spec's,
// or what automatic growth arrived at if that is more. What grew by itself stays
// when automatic growth is turned off, since volumes cannot shrink, but never
// counts for more than maxSize. The spec must have a size; the status may be nil.
func EffectiveSize(spec v1alpha1.Storage, status *v1alpha1.StorageStatus, shard int) resource.Quantity {
	size := spec.Size.DeepCopy()
	remembered := RememberedOf(status, shard)
	if remembered.AutoTarget == nil {
		return size
	}
	target := remembered.AutoTarget.DeepCopy()
	if auto := spec.AutoExpansion; auto != nil && auto.MaxSize != nil && target.Cmp(*auto.MaxSize) > 0 {
		target = auto.MaxSize.DeepCopy()
	}
	if target.Cmp(size) > 0 {
		return target
	}
	return size
}

// RememberedOf is what a status, which may be nil, remembers of a shard's
// volumes; of one that it has no line for, nothing but its index.
func RememberedOf(status *v1alpha1.StorageStatus, shard int) v1alpha1.ShardStorageStatus {
	if status != nil {
		for _, line := range status.Shards {
			if int(line.Shard) == shard {
				return line
			}
		}
	}
	return v1alpha1.ShardStorageStatus{Shard: int32(shard)}
}
