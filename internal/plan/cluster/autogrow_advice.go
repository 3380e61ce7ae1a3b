package cluster

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
)

// peakOfAppendOnly is how many times its memory a server with an append-only
// file takes on the disk at worst: the last rewrite, a log that has grown by as
// much, and half as much again for the next rewrite, which is more compact than memory.
const peakOfAppendOnly = 2.5

// SizingAdvice says that the volumes cannot hold what their servers may come to
// need, by the memory that they may take; growth by itself counts up to its maximum.
func SizingAdvice(in Input) (string, bool) {
	if !build.StorageEnabled(in.Spec) || in.Spec.Storage.Size == nil {
		return "", false
	}
	memory, source := memoryOf(in)
	largest := largestSize(in)
	need := resource.NewQuantity(int64(min(memory*peakOfAppendOnly, mostBytes)), resource.BinarySI)
	if largest.Cmp(*need) >= 0 {
		return "", false
	}
	return fmt.Sprintf("the volumes have %s, and %s lets a server fill %s while its log is rewritten; raise spec.storage.size, or lower maxmemory",
		largest.String(), source, roundedUp(*need)), true
}

// largestSize is the size that every volume has, or may grow to by itself.
func largestSize(in Input) resource.Quantity {
	size := in.Spec.Storage.Size.DeepCopy()
	settings := settingsOf(in.Spec)
	if settings.mode == v1alpha1.AutoExpansionAuto && settings.maxSize != nil && settings.maxSize.Cmp(size) > 0 {
		return settings.maxSize.DeepCopy()
	}
	least := EffectiveSize(in, 0)
	for shard := range int(in.Spec.Shards) {
		if effective := EffectiveSize(in, shard); effective.Cmp(least) < 0 {
			least = effective
		}
	}
	return least
}

func roundedUp(size resource.Quantity) string {
	up := rounded(size.AsApproximateFloat64())
	return up.String()
}

// memoryOf is the most memory that a server's data may take, in bytes, and by
// whose word: 0 when nothing bounds it.
func memoryOf(in Input) (float64, string) {
	if bytes, set := maxmemory(string(in.Spec.Config["maxmemory"])); set {
		return bytes, "spec.config.maxmemory"
	}
	most := int64(0)
	for _, member := range in.wanted() {
		if files := member.Agent.Value.Files; member.Agent.Known && files != nil {
			most = max(most, files.MaxMemoryBytes)
		}
	}
	if most > 0 {
		return float64(most), "the servers' maxmemory"
	}
	limit := in.Spec.Resources.Limits[corev1.ResourceMemory]
	return limit.AsApproximateFloat64(), "the memory limit"
}

// maxmemory reads a size as valkey.conf has it; none, zero and nonsense set no bound.
func maxmemory(text string) (bytes float64, set bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(text, "bkmg")
	units := map[string]float64{"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30}
	unit, known := units[text[len(digits):]]
	number, err := strconv.ParseUint(digits, 10, 63)
	return float64(number) * unit, known && err == nil && number > 0
}
