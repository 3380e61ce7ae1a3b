package cluster

import (
	"math"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
)

// Whatever agents say and whatever the status remembers: a size that is decided
// is larger than what the volumes have, never above the largest size, rests on
// something that was seen, is the same when the operator is killed before it
// writes it down, and is decided once when it is not.
func TestAnyAutoGrowthIsBoundedAndFounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyAutomatic(t)
		growth := AutoGrowth(in)[0]
		if again := AutoGrowth(in)[0]; !reflect.DeepEqual(growth, again) {
			t.Errorf("it says %+v, and then %+v", growth, again)
		}
		if growth.Target == nil {
			return
		}
		checkBounds(t, in, growth)
		if !founded(in) {
			t.Errorf("it grows to %s by nothing that was seen", growth.Target)
		}
		in.State.Status.Storage.Shards = []v1alpha1.ShardStorageStatus{{AutoTarget: growth.Target, GrownAt: at(in.State.Now), Emergency: growth.Emergency}}
		if next := AutoGrowth(in)[0]; next.Target != nil || next.Reason != v1alpha1.ReasonAutoExpanding && next.Reason != v1alpha1.ReasonAutoCeiling {
			t.Errorf("written down, it goes on with %s", inShort(next))
		}
	})
}

func checkBounds(t *rapid.T, in Input, growth ShardGrowth) {
	if growth.Target.Cmp(*auto(&in).MaxSize) > 0 {
		t.Errorf("it grows to %s, above %s", growth.Target, auto(&in).MaxSize)
	}
	if before := EffectiveSize(in, 0); growth.Target.Cmp(before) <= 0 {
		t.Errorf("it grows to %s from %s", growth.Target, before.String())
	}
	for _, member := range in.State.Members {
		if member.Wanted && member.Claim != nil && growth.Target.Cmp(member.Claim.Capacity) <= 0 {
			t.Errorf("it grows to %s, and %s has %s", growth.Target, member.Name, member.Claim.Capacity.String())
		}
	}
	if ceiling, known := ceilingOf(in); known && growth.Target.Cmp(ceiling) >= 0 {
		t.Errorf("it grows to %s, and the driver refused %s", growth.Target, ceiling.String())
	}
}

// founded says whether some member's agent told of a full volume, in one way or another.
func founded(in Input) bool {
	for _, member := range in.State.Members {
		facts := member.Agent.Value
		if !member.Wanted || !member.Agent.Known {
			continue
		}
		if facts.Files != nil && (facts.Files.WriteFailed || facts.Files.RewriteFailed) || facts.Message != "" {
			return true
		}
		if facts.Disk != nil && facts.DiskBefore != nil && facts.Disk.TotalBytes > 0 && facts.Disk.SampledAt.After(noon.Add(-time.Minute)) {
			return true
		}
	}
	return false
}

func anyAutomatic(t *rapid.T) Input {
	in := automatic()
	sizes := []string{"1", "64Mi", "1Gi", "10Gi", "12Gi", "100Gi", "999Pi"}
	size := rapid.Map(rapid.SampledFrom(sizes), resource.MustParse)
	*auto(&in) = v1alpha1.AutoExpansion{
		Mode: v1alpha1.AutoExpansionAuto, MaxSize: new(size.Draw(t, "max")),
		ThresholdPercent: rapid.Int32Range(0, 100).Draw(t, "threshold"), EmergencyPercent: rapid.Int32Range(0, 100).Draw(t, "emergency"),
		Increment: rapid.SampledFrom([]string{"", "1%", "20%", "9999%", "1", "5Gi", "999Ti", "-1", "x"}).Draw(t, "increment"),
		Cooldown:  metav1.Duration{Duration: rapid.SampledFrom([]time.Duration{0, -time.Hour, time.Minute, 6 * time.Hour, math.MaxInt64}).Draw(t, "cooldown")},
	}
	in.Spec.Storage.Size = new(size.Draw(t, "size"))
	if rapid.Bool().Draw(t, "grew") {
		remember(&in, rapid.SampledFrom(sizes).Draw(t, "target"), rapid.SampledFrom([]time.Duration{time.Second, 24 * time.Hour}).Draw(t, "ago"), rapid.Bool().Draw(t, "early"))
	}
	if rapid.Bool().Draw(t, "refused") {
		ceiling(&in, rapid.SampledFrom(sizes).Draw(t, "ceiling"), rapid.SampledFrom([]time.Duration{time.Second, 48 * time.Hour}).Draw(t, "since"))
	}
	for i := range in.State.Members {
		member := &in.State.Members[i]
		member.Wanted = rapid.IntRange(0, 9).Draw(t, "wanted") > 0
		member.Claim.Capacity = size.Draw(t, "capacity")
		member.Agent = anyUse(t, member.Claim.Capacity.Value())
	}
	return in
}

// anyUse is what an agent may say of its volume: mostly what can be true, and
// now and then anything at all.
func anyUse(t *rapid.T, capacity int64) state.Fact[protocol.Facts] {
	bytes := rapid.OneOf(rapid.Int64Range(0, max(1, capacity)), rapid.SampledFrom([]int64{math.MinInt64, -1, 0, capacity, math.MaxInt64}))
	disk := func(ago time.Duration) *protocol.Disk {
		if rapid.IntRange(0, 9).Draw(t, "seen") == 0 {
			return nil
		}
		told := protocol.Disk{TotalBytes: capacity, AvailableBytes: bytes.Draw(t, "available"), SampledAt: noon.Add(-ago)}
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			told.TotalBytes, told.TotalInodes, told.FreeInodes = bytes.Draw(t, "total"), bytes.Draw(t, "inodes"), bytes.Draw(t, "free")
			told.SampledAt = noon.Add(rapid.SampledFrom([]time.Duration{-time.Hour, time.Hour, 0}).Draw(t, "off"))
		}
		return &told
	}
	facts := protocol.Facts{
		Disk: disk(time.Second), DiskBefore: disk(11 * time.Second),
		Server: rapid.SampledFrom([]protocol.ServerState{"", protocol.ServerRunning, protocol.ServerStopped}).Draw(t, "server"),
	}
	if rapid.IntRange(0, 9).Draw(t, "complains") == 0 {
		facts.Message = "No space left on device"
	}
	if rapid.Bool().Draw(t, "files") {
		facts.Files = &protocol.Files{
			Log: rapid.Bool().Draw(t, "log"), LogBytes: bytes.Draw(t, "log bytes"), LogBaseBytes: bytes.Draw(t, "base bytes"), Writing: rapid.Bool().Draw(t, "writing"),
			NextBytes: bytes.Draw(t, "next"), UsedMemoryBytes: bytes.Draw(t, "memory"), GrowthBytes: bytes.Draw(t, "growth"),
			WriteFailed: rapid.IntRange(0, 9).Draw(t, "write failed") == 0, RewriteFailed: rapid.IntRange(0, 9).Draw(t, "rewrite failed") == 0,
		}
	}
	return state.Fact[protocol.Facts]{Known: rapid.IntRange(0, 9).Draw(t, "answers") > 0, Value: facts}
}
