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

// sizesCurrent: every ValkeyNode asks for the size and retention that the spec
// wants. It looks at nothing else: a full disk is when members are unhealthy.
func sizesCurrent(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) {
		return settled()
	}
	cluster := in.build()
	verdict := plan.Verdict{Reason: v1alpha1.ReasonVolumeExpanding}
	for _, member := range in.wanted() {
		if member.Record == nil || member.Record.Deleting {
			continue
		}
		want := TargetSize(*in.Spec.Storage.Size, member)
		have := member.Record.Spec.Storage
		if have.Size == nil || have.Size.Cmp(want) != 0 || have.Retention.WhenDeleted != in.Spec.Storage.Retention.WhenDeleted {
			verdict.Actions = append(verdict.Actions, ensureSize(cluster, member, want))
		}
	}
	return verdict
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
// grown to.
func sizeNotBelowCapacity(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) {
		return settled()
	}
	size := *in.Spec.Storage.Size
	for _, member := range in.wanted() {
		if member.Record == nil || member.Record.Spec.Storage.Size == nil {
			continue
		}
		if asked := *member.Record.Spec.Storage.Size; asked.Cmp(size) > 0 {
			return plan.Verdict{
				Hold: plan.Blocked, Reason: v1alpha1.ReasonVolumeShrinkRefused,
				Note: fmt.Sprintf("spec.storage.size %s is below the %s that volume %s has, and volumes cannot shrink; nothing was changed; set spec.storage.size to %s or more",
					size.String(), asked.String(), member.Record.Spec.Storage.ClaimName, asked.String()),
			}
		}
	}
	return settled()
}

func ensureSize(cluster build.Cluster, member state.Member, size resource.Quantity) plan.Action {
	return plan.EnsureNode{
		Node: member.Name, Manager: name.FieldManagerStorage,
		Fields: build.NodeStorageHalf(cluster, member.Shard, member.Node, size),
	}
}
