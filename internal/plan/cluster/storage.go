package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// sizesGiven: every ValkeyNode has the retention that the spec wants, and a size.
// Sizes that wait for nothing are given at once: a first one, a smaller one, and
// that of a volume that is full, which may be why nobody is well.
func sizesGiven(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) {
		return settled()
	}
	cluster := in.build()
	verdict := plan.Verdict{Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld}
	for _, member := range in.recorded() {
		have, size := member.Record.Spec.Storage, in.target(member)
		if have.Size != nil && have.Size.Cmp(size) < 0 && in.waits(member) {
			size = *have.Size // it grows later, in its turn
		}
		if have.Size == nil || have.Size.Cmp(size) != 0 || have.Retention.WhenDeleted != in.Spec.Storage.Retention.WhenDeleted {
			verdict.Actions = append(verdict.Actions, ensureSize(cluster, member, size))
		}
	}
	if len(verdict.Actions) == 0 {
		return settled()
	}
	return verdict
}

// recorded are the wanted members whose ValkeyNodes exist and stay.
func (in Input) recorded() []state.Member {
	var members []state.Member
	for _, member := range in.wanted() {
		if member.Record != nil && !member.Record.Deleting {
			members = append(members, member)
		}
	}
	return members
}

// target is the size that a member's ValkeyNode shall ask for in the end.
func (in Input) target(member state.Member) resource.Quantity {
	return TargetSize(EffectiveSize(in, member.Shard), member)
}

// TargetSize is the size that a member's volume shall have: the spec's, but
// never less than what the volume has, since it cannot shrink. A larger
// request that has not been fulfilled may be taken back.
func TargetSize(size resource.Quantity, member state.Member) resource.Quantity {
	if member.Claim == nil || member.Record == nil || member.Record.Spec.Storage.Size == nil {
		return size
	}
	asked := *member.Record.Spec.Storage.Size
	if size.Cmp(asked) >= 0 {
		return size
	}
	// The user lowered the size below what was asked for last.
	if member.Claim.Capacity.Cmp(size) > 0 {
		if member.Claim.Capacity.Cmp(asked) >= 0 {
			return asked
		}
		return member.Claim.Capacity
	}
	return size
}

// sizeNotBelowCapacity: the spec does not ask for less than the volumes were
// grown to. What grew by itself, or before the same growth turned out to be
// impossible for others, is no wish to shrink.
func sizeNotBelowCapacity(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) {
		return settled()
	}
	size := *in.Spec.Storage.Size
	for _, member := range in.wanted() {
		if member.Record == nil || member.Record.Spec.Storage.Size == nil {
			continue
		}
		asked := *member.Record.Spec.Storage.Size
		if asked.Cmp(size) <= 0 || grewByItself(in, member.Shard, asked) || takenBack(in, asked) {
			continue
		}
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonVolumeShrinkRefused,
			Note: fmt.Sprintf("spec.storage.size %s is below the %s that volume %s has, and volumes cannot shrink; nothing was changed; set spec.storage.size to %s or more",
				size.String(), asked.String(), member.Record.Spec.Storage.ClaimName, asked.String()),
		}
	}
	return settled()
}

func grewByItself(in Input, shard int, asked resource.Quantity) bool {
	target := Remembered(in, shard).AutoTarget
	return target != nil && asked.Cmp(*target) <= 0
}

func takenBack(in Input, asked resource.Quantity) bool {
	storage := in.State.Status.Storage
	return storage != nil && storage.Ceiling != nil && asked.Cmp(storage.Ceiling.Size) >= 0
}

func ensureSize(cluster build.Cluster, member state.Member, size resource.Quantity) plan.Action {
	return plan.EnsureNode{
		Node: member.Name, Manager: name.FieldManagerStorage,
		Fields: build.NodeStorageHalf(cluster, member.Shard, member.Node, size),
	}
}
