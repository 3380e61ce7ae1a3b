package cluster

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

func sizeOf(text string) *resource.Quantity { return new(resource.MustParse(text)) }

func at(when time.Time) *metav1.Time { return new(metav1.NewTime(when)) }

// automatic is a cluster of one shard of two members, 10Gi each, whose volumes
// may grow to 100Gi and are half full.
func automatic() Input {
	spec := persistent(1, 1)
	spec.Storage.AutoExpansion = &v1alpha1.AutoExpansion{
		Mode: v1alpha1.AutoExpansionAuto, MaxSize: sizeOf("100Gi"), ThresholdPercent: 80, EmergencyPercent: 95,
		Increment: "20%", Cooldown: metav1.Duration{Duration: 6 * time.Hour},
	}
	b := formedBench(spec, 1)
	in := b.input()
	in.State.Status.Storage = &v1alpha1.StorageStatus{}
	for i := range in.State.Members {
		fill(&in, i, 50)
	}
	return in
}

// fill has a member's agent tell twice that its volume is full to a percentage.
func fill(in *Input, member int, percent int64) {
	facts := &in.State.Members[member].Agent.Value
	total := in.State.Members[member].Claim.Capacity.Value()
	disk := protocol.Disk{
		TotalBytes: total, AvailableBytes: total / 100 * (100 - percent),
		TotalInodes: 1000, FreeInodes: 990, SampledAt: in.State.Now.Add(-time.Second),
	}
	before := disk
	before.SampledAt = disk.SampledAt.Add(-protocol.SampleInterval)
	facts.Disk, facts.DiskBefore = &disk, &before
	if facts.Files == nil {
		facts.Files = &protocol.Files{Log: true, UsedMemoryBytes: total}
	}
}

// looks lets a test change what both looks of a member's agent told.
func looks(in *Input, member int, change func(*protocol.Disk)) {
	change(in.State.Members[member].Agent.Value.Disk)
	change(in.State.Members[member].Agent.Value.DiskBefore)
}

func filesOf(in *Input, member int) *protocol.Files {
	return in.State.Members[member].Agent.Value.Files
}

func auto(in *Input) *v1alpha1.AutoExpansion { return in.Spec.Storage.AutoExpansion }

// remember has the status say something about shard 0.
func remember(in *Input, target string, ago time.Duration, emergency bool) {
	in.State.Status.Storage.Shards = []v1alpha1.ShardStorageStatus{{AutoTarget: sizeOf(target), GrownAt: at(noon.Add(-ago)), Emergency: emergency}}
}

func resized(in *Input, member int, size string) {
	in.State.Members[member].Claim.Capacity = resource.MustParse(size)
}

func grewAgo(in *Input, member int, ago time.Duration) {
	in.State.Members[member].Record.Status.Storage = &v1alpha1.NodeStorageStatus{LastExpansionTime: at(noon.Add(-ago))}
}

// inShort is a growth in a line: reason, target, emergency, logs to shorten.
func inShort(growth ShardGrowth) string {
	words := []string{growth.Reason}
	if growth.Target != nil {
		words = append(words, growth.Target.String())
	}
	if growth.Emergency {
		words = append(words, "emergency")
	}
	for _, member := range growth.shorten {
		words = append(words, "shorten "+member.Name)
	}
	return strings.Join(words, " ")
}

func recommending(in *Input) { auto(in).Mode = v1alpha1.AutoExpansionRecommend }

func ceiling(in *Input, size string, ago time.Duration) {
	in.State.Status.Storage.Ceiling = &v1alpha1.StorageCeiling{Size: resource.MustParse(size), Since: *at(noon.Add(-ago))}
}

// grown has every volume a size, half full.
func grown(in *Input, size string) {
	for i := range in.State.Members {
		resized(in, i, size)
		fill(in, i, 50)
	}
}

// longLogged fills a member's volume with a log of which a rewrite leaves little.
func longLogged(in *Input, member int) {
	const gi = 1 << 30
	fill(in, member, 85)
	*filesOf(in, member) = protocol.Files{Log: true, LogBytes: 7 * gi, LogBaseBytes: gi, NextBytes: gi, UsedMemoryBytes: 2 * gi}
}
