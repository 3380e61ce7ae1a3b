package bench

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// fullDisk fills a primary's disk under load, in a cluster that grows by itself.
func (p *play) fullDisk() {
	c := p.Cluster(stage.Spec{
		Name: "filled", Shards: 1, Replicas: 1, Size: from,
		MoreStorage: "    retention: {whenDeleted: Delete}\n    autoExpansion: {mode: Auto, maxSize: 512Mi, increment: 64Mi, cooldown: 0s}\n",
	})
	p.Apply(p.Manifest(c.Spec))
	p.until(time.Now(), "the cluster to be Ready", func() bool { return c.Get().Ready() })
	before := c.AwaitServing()
	w := c.StartWriter("--size", "256")
	begin := time.Now()
	c.FillVolume(before[before.Primary(0)].Pod, 100)
	p.until(begin, "the full disk to be told", func() bool { return len(p.Events("DiskFull")) > 0 })
	p.until(begin, "VolumeExpanded", func() bool { return expanded(c) })
	p.times.fullReports = append(p.times.fullReports, w.Stop())
	p.times.fullRestarts += c.Snapshot().Restarts() - before.Restarts()
	c.Delete("foreground")
	// The next run waits for its own.
	p.NoError(p.Typed.CoreV1().Events(p.Namespace).DeleteCollection(p.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}), "deleting events")
	p.until(time.Now(), "its claims to be gone", func() bool { return len(c.Claims()) == 0 })
}

func (p *play) fullRows() []figure {
	var refused []float64
	for _, r := range p.times.fullReports {
		refused = append(refused, stage.LongestStall(r))
	}
	return []figure{
		{"primary's disk full, growth by itself: refused", fmt.Sprintf("%.1f s", median(refused)), "", "", "90 s", ""},
		writes("  restarts", int64(p.times.fullRestarts), ""),
		writes("  acknowledged writes lost", undone(p.times.fullReports), ""),
	}
}
