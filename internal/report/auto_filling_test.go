package report

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan/cluster"
)

// A disk that fills at any rate that leaves time to act never becomes full, no
// size goes beyond the largest, and no two growths come within a cooldown but
// for one in an emergency.
func TestADiskThatFillsGrowsInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sim := fillingDisk{
			in:      automaticCluster(),
			used:    float64(rapid.Int64Range(1, 79).Draw(t, "percent")) * (10 << 30) / 100,
			hourly:  float64(rapid.Int64Range(0, 5<<30).Draw(t, "hourly")),
			latency: time.Duration(rapid.IntRange(1, 300).Draw(t, "latency")) * time.Second,
		}
		auto := sim.in.Spec.Storage.AutoExpansion
		auto.MaxSize, auto.Increment = new(size("100Ti")), rapid.SampledFrom([]string{"1%", "20%", "1Gi", "100%"}).Draw(t, "increment")
		auto.Cooldown.Duration = time.Duration(rapid.IntRange(1, 12).Draw(t, "cooldown")) * time.Hour
		for range 30 * 12 {
			sim.pass(t)
		}
		for i := range sim.grown {
			if i >= 2 && sim.grown[i].Sub(sim.grown[i-2]) < auto.Cooldown.Duration {
				t.Errorf("three growths within a cooldown of %s: %v", auto.Cooldown.Duration, sim.grown[i-2:i+1])
			}
		}
	})
}

// fillingDisk is a shard whose two volumes fill up alike.
type fillingDisk struct {
	in           cluster.Input
	used, hourly float64
	latency      time.Duration // from a decision until the volumes have grown
	grown        []time.Time
}

const simulatedStep = 5 * time.Minute

func (s *fillingDisk) pass(t *rapid.T) {
	s.in.State.Now = s.in.State.Now.Add(simulatedStep)
	s.used += s.hourly * simulatedStep.Hours()
	effective := cluster.EffectiveSize(s.in, 0)
	for i := range s.in.State.Members {
		member := &s.in.State.Members[i]
		if effective.Cmp(member.Claim.Capacity) > 0 && s.in.State.Now.Sub(s.grown[len(s.grown)-1]) >= s.latency {
			enlarge(&s.in, i, effective.String())
			member.Record.Status.Storage.LastExpansionTime = new(metav1.NewTime(s.in.State.Now))
		}
		total := member.Claim.Capacity.Value()
		if s.used >= float64(total) {
			t.Fatalf("%.0f of %d bytes are used after %d growths: %s", s.used, total, len(s.grown), condition(s.in.State.Status, v1alpha1.ConditionAutoExpansion).Message)
		}
		tell(&s.in, i, total, int64(s.used), &protocol.Files{GrowthBytes: int64(min(s.hourly, s.used))})
	}
	before := targetIn(s.in.State.Status)
	s.in.State.Status = Cluster(s.in, verdicts(nil), nil)
	if after := targetIn(s.in.State.Status); after.Cmp(before) != 0 {
		if after.Cmp(before) < 0 {
			t.Fatalf("the target went from %s to %s", before.String(), after.String())
		}
		s.grown = append(s.grown, s.in.State.Now)
	}
}

func targetIn(status v1alpha1.ValkeyClusterStatus) resource.Quantity {
	if status.Storage == nil || len(status.Storage.Shards) == 0 {
		return resource.Quantity{}
	}
	return *status.Storage.Shards[0].AutoTarget
}
