package valkeytest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// Clone is a second cluster in the very state of this one; from then on they
// have nothing to do with each other. Connections and hooks are not taken
// along. Nodes come in the same order, so that one is found by its place.
func (c *Cluster) Clone() *Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	clone := &Cluster{
		options: c.options, settings: c.settings, now: c.now, electedAt: c.electedAt, ledger: c.ledger.clone(),
		random: rand.New(rand.NewPCG(c.options.Seed, uint64(c.now)+2)), //nolint:gosec // runs must be repeatable, nothing is secret
	}
	for _, n := range c.nodes {
		clone.nodes = append(clone.nodes, n.clone(clone))
	}
	return clone
}

func (n *Node) clone(into *Cluster) *Node {
	clone := *n
	clone.cluster, clone.lines = into, nil
	clone.self = n.self.clone()
	clone.peers = map[valkey.NodeID]*peer{}
	for id, p := range n.peers {
		clone.peers[id] = p.clone()
	}
	clone.data, clone.config, clone.forgetUntil = maps.Clone(n.data), maps.Clone(n.config), maps.Clone(n.forgetUntil)
	return &clone
}

func (p *peer) clone() *peer {
	clone := *p
	clone.slots = slices.Clone(p.slots)
	clone.reports = map[valkey.NodeID]time.Duration{}
	maps.Copy(clone.reports, p.reports)
	return &clone
}
