// Package valkeytest is a Valkey cluster in memory: servers that can be dialled,
// killed, moved and emptied, and that gossip, vote and replicate in virtual time.
//
// It promises to keep the rules of the real cluster as far as an operator can
// observe them; the contract test of package valkey runs both through one suite.
//
// It is for tests alone. Nothing in it waits for the clock or the network.
package valkeytest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// StepTime is how much virtual time one Step takes. In it every server pings
// every other one it knows, which real servers need about a second for.
const StepTime = 500 * time.Millisecond

// defaultNodeTimeout is short for a real cluster and makes tests take few steps.
const defaultNodeTimeout = 5 * time.Second

// Options are the properties of a whole cluster.
type Options struct {
	// Seed decides ids and the order of events within a step. The same seed and
	// the same calls give the same cluster.
	Seed uint64
	// NodeTimeout is cluster-node-timeout; five seconds when 0.
	NodeTimeout time.Duration
	// Version is what servers say they are; "9.1.2" when empty.
	Version string
	// Settings are settings that servers have besides the common ones, or treat otherwise.
	Settings map[string]Setting
}

// Hook is told of a command just before or just after its effect, as in
// "CLUSTER FORGET 1c04…". The error it returns is the one the caller gets: before
// the effect it prevents it, after the effect the answer is lost.
type Hook func(address, command string) error

// Cluster is a set of servers that can reach one another, members of one Valkey
// cluster or of several. It is safe for use by several goroutines.
type Cluster struct {
	// Before and After are called, when set, for each command but not for looks.
	// They may use the cluster. Set them while nothing else runs.
	Before, After Hook

	mu       sync.Mutex
	options  Options
	settings map[string]Setting
	random   *rand.Rand
	now      time.Duration
	nodes    []*Node
	ledger   ledger
	// electedAt is when a replica was elected last.
	electedAt time.Duration
}

// New returns a cluster without servers.
func New(options Options) *Cluster {
	if options.NodeTimeout == 0 {
		options.NodeTimeout = defaultNodeTimeout
	}
	if options.Version == "" {
		options.Version = "9.1.2"
	}
	return &Cluster{
		options:  options,
		settings: settings(options),
		random:   rand.New(rand.NewPCG(options.Seed, 1)), //nolint:gosec // runs must be repeatable, nothing is secret
		ledger:   newLedger(),
	}
}

// Add starts a blank server on host:port. It panics when the address is no IP
// address with a port or is in use.
func (c *Cluster) Add(address string) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &Node{cluster: c}
	c.nodes = append(c.nodes, n)
	n.blank()
	n.boot(Start{Address: address})
	return n
}

// Nodes are all servers ever added, running or not, in the order of adding.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Node(nil), c.nodes...)
}

// Now is the virtual time since New.
func (c *Cluster) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Step lets StepTime pass: everyone gossips once, notices who is silent,
// replicates, and holds the elections that are due.
func (c *Cluster) Step() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step()
}

func (c *Cluster) step() {
	c.now += StepTime
	for _, phase := range []func(*Node){
		(*Node).force, (*Node).gossip, (*Node).detectFailures, (*Node).replicate, (*Node).failOver,
	} {
		for _, i := range c.random.Perm(len(c.nodes)) {
			if c.nodes[i].onBus() {
				phase(c.nodes[i])
			}
		}
	}
}

// Advance makes as many steps as the duration needs, one at least.
func (c *Cluster) Advance(duration time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end := c.now + max(duration, 1); c.now < end; {
		c.step()
	}
}

// quietTime is how long nothing must change for a cluster to be settled: longer
// than any wait inside it, the longest being that for a failed primary to be
// believed again.
func (c *Cluster) quietTime() time.Duration { return failUndo*c.options.NodeTimeout + 2*time.Second }

// Settle steps until nobody loads and the servers' tables have stopped to change. It panics when
// they don't, after an hour of virtual time: that is a fault of this package.
func (c *Cluster) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, since := "", c.now
	for limit := c.now + time.Hour; c.now < limit; {
		c.step()
		if now := c.fingerprint(); now != last || c.loading() {
			last, since = now, c.now
		}
		if c.now-since > c.quietTime() {
			return
		}
	}
	panic("valkeytest: the cluster never settles")
}

func (c *Cluster) loading() bool {
	return slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.answers() && n.loading() })
}

func (c *Cluster) fingerprint() string {
	var text strings.Builder
	for _, n := range c.nodes {
		if n.answers() {
			fmt.Fprintln(&text, n.table(), n.link.up, n.offset, n.keys())
		}
	}
	return text.String()
}

// at is the server that a connection to the address reaches.
func (c *Cluster) at(address netip.AddrPort) *Node {
	for _, n := range c.nodes {
		if n.running && n.address == address {
			return n
		}
	}
	return nil
}

func (c *Cluster) randomID() valkey.NodeID {
	return valkey.NodeID(fmt.Sprintf("%016x%016x%08x", c.random.Uint64(), c.random.Uint64(), c.random.Uint32()))
}
