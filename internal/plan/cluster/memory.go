package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// memoryHoldsData: a server with another memory limit would not be killed for what the
// servers hold in memory now. It is found out before any pod is replaced; a limit
// that is in force already refuses nothing, nor does what is not known. No number
// that moves is told.
func memoryHoldsData(in Input) plan.Verdict {
	limit, limited := in.Spec.Resources.Limits[corev1.ResourceMemory]
	if !limited || !in.otherMemoryLimit(limit) {
		return settled()
	}
	for _, member := range in.wanted() {
		if used, known := usedMemory(member); known && used >= limit.Value() {
			return plan.Verdict{
				Hold: plan.Blocked, Reason: v1alpha1.ReasonMemoryBelowData, Look: plan.LookWorld,
				Note: fmt.Sprintf("spec.resources.limits.memory is %s, and the server of node %s uses more than that now, so that it would be killed with it; nothing was replaced; raise the limit above its used_memory, or set it back",
					limit.String(), member.Name),
			}
		}
	}
	return settled()
}

// otherMemoryLimit says whether a member has another memory limit.
func (in Input) otherMemoryLimit(limit resource.Quantity) bool {
	for _, member := range in.recorded() {
		has, limited := member.Record.Spec.Template.Resources.Limits[corev1.ResourceMemory]
		if !limited || has.Cmp(limit) != 0 {
			return true
		}
	}
	return false
}

// usedMemory is what a member's server says that it uses, in bytes, and whether that
// is known.
func usedMemory(member state.Member) (bytes int64, known bool) {
	if member.Server.Known {
		return member.Server.Value.Info.Memory.Used, true
	}
	if files := member.Agent.Value.Files; member.Agent.Known && files != nil {
		return files.UsedMemoryBytes, true
	}
	return 0, false
}

// MemoryAdvice says that a server may come to be killed for its data, since the memory
// limit is below what maxmemory lets it take.
func MemoryAdvice(in Input) (string, bool) {
	limit, limited := in.Spec.Resources.Limits[corev1.ResourceMemory]
	if !limited {
		return "", false
	}
	most, source := memoryOf(in)
	if most <= limit.AsApproximateFloat64() {
		return "", false
	}
	return fmt.Sprintf("%s lets a server's data take more than spec.resources.limits.memory, %s: a server that gets there is killed; raise the limit, or lower maxmemory",
		source, limit.String()), true
}
