package bench

import (
	"fmt"
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// The volumes of the large measurement, one for each member.
const (
	largeShards = 30
	largeCount  = 2 * largeShards
	// formedWithin is for sixty servers that meet on one machine.
	formedWithin = 20 * time.Minute
)

// large is what growing many volumes took.
type large struct {
	ours, bare float64
	requests   stage.Requests
}

// measureLarge grows sixty bare claims by hand, and sixty of a cluster.
func (p *play) measureLarge() {
	p.Say("%d bare StatefulSets", largeCount)
	p.createBare(largeCount)
	p.large.bare = p.bareGrowth()
	p.deleteBare()
	c := p.Cluster(stage.Spec{
		Name: "large", Shards: largeShards, Replicas: 1, Size: from,
		MoreStorage: "    retention: {whenDeleted: Delete}\n    expansion: {maxParallel: 60}\n",
	})
	p.Apply(p.Manifest(c.Spec))
	p.Await("the large cluster to be Ready", formedWithin, func() (bool, string) { return c.Get().Ready(), c.Get().Brief() })
	p.awaitQuiet()
	p.large.requests = p.CountRequestsWhile(operatorAccount, func() {
		begin := time.Now()
		c.Resize(to)
		p.large.ours = p.until(begin, "VolumeExpanded", func() bool { return expanded(c) })
	})
	c.Delete("foreground")
	p.until(time.Now(), "its claims to be gone", func() bool { return len(c.Claims()) == 0 })
}

func (l large) rows() []figure {
	return []figure{
		header,
		ratio(fmt.Sprintf("%d volumes grown to VolumeExpanded", largeCount), l.ours, l.bare, "0.5", ""),
		{"  requests of the operator a volume", fmt.Sprintf("%.1f", float64(l.requests.Total())/largeCount), "", "", "", ""},
		{"  of them writes", fmt.Sprintf("%.1f", float64(l.requests.Writes())/largeCount), "", "", "", ""},
	}
}
