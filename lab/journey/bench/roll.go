package bench

import (
	"fmt"
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/ledger"
)

// The cluster that is rolled: what each shard holds, and volumes with room for
// its log while that is rewritten.
const (
	rolledShards = 3
	rolledMiB    = 256
	rolledSize   = "1Gi"
)

// rollAndDrain times another image of the same bits in a cluster with data,
// and drains each of its workers in turn, both under the ledger.
func (p *play) rollAndDrain() {
	c := p.Cluster(stage.Spec{
		Name: "rolled", Shards: rolledShards, Replicas: 1, Size: rolledSize,
		MoreStorage: "    retention: {whenDeleted: Delete}\n",
	})
	p.Apply(p.Manifest(c.Spec))
	p.until(time.Now(), "the cluster to be Ready", func() bool { return c.Get().Ready() })
	c.AwaitServing()
	c.Fill(rolledShards * rolledMiB)
	p.roll(c)
	if p.Lab != "" {
		p.drain(c)
	}
	c.Delete("foreground")
	p.until(time.Now(), "its claims to be gone", func() bool { return len(c.Claims()) == 0 })
}

func (p *play) roll(c *stage.Cluster) {
	old, w := uids(c), c.StartWriter()
	begin := time.Now()
	c.Patch(fmt.Sprintf(`{"spec":{"image":%q}}`, p.Images.ValkeySame))
	took := p.until(begin, "every pod replaced and the cluster Ready", func() bool {
		now := uids(c)
		for uid := range now {
			if old[uid] {
				return false
			}
		}
		return len(now) == c.Members() && c.Get().Ready()
	})
	c.AwaitServing()
	p.times.roll = append(p.times.roll, took)
	p.times.rollReports = append(p.times.rollReports, w.Stop())
}

func (p *play) drain(c *stage.Cluster) {
	w := c.StartWriter()
	for _, worker := range c.Workers() {
		p.Drain(worker)
		p.Uncordon(worker)
		c.AwaitReady()
	}
	p.times.drainReports = append(p.times.drainReports, w.Stop())
}

func (p *play) rollRows() []figure {
	t := p.times
	rows := []figure{
		{fmt.Sprintf("another image, 3x1 with %d MiB a shard, to Ready", rolledMiB), fmt.Sprintf("%.1f s", median(t.roll)), "", "", "25 s", "64.9 s"},
		writes("  client errors", clientErrors(t.rollReports), "0"),
		writes("  acknowledged writes lost", undone(t.rollReports), "0"),
		stall(t.rollReports, "0.09 s"),
	}
	if len(t.drainReports) == 0 {
		return rows
	}
	return append(rows,
		writes("each worker drained: acknowledged writes lost", undone(t.drainReports), ""),
		writes("  client errors", clientErrors(t.drainReports), ""),
		stall(t.drainReports, ""),
	)
}

// stall is the longest time that any shard took no write, in any run.
func stall(all []ledger.Report, peer string) figure {
	longest := 0.0
	for _, r := range all {
		longest = max(longest, stage.LongestStall(r))
	}
	return figure{"  longest time that a shard took no write", fmt.Sprintf("%.2f s", longest), "", "", "", peer}
}
