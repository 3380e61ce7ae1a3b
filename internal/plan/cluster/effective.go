package cluster

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/state"
)

// EffectiveSize is the size that the volumes of a shard shall have: the spec's,
// or what automatic growth arrived at if that is more. The spec must have
// storage enabled.
func EffectiveSize(in Input, shard int) resource.Quantity {
	return state.EffectiveSize(*in.Spec.Storage, in.State.Status.Storage, shard)
}

// Remembered is what the status remembers of a shard's volumes; of one that it
// has no line for, nothing but its index.
func Remembered(in Input, shard int) v1alpha1.ShardStorageStatus {
	return state.RememberedOf(in.State.Status.Storage, shard)
}
