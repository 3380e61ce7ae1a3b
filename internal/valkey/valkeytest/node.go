package valkeytest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// busOffset is where a server listens for its cluster, from its client port on.
const busOffset = 10000

// writableDelay is how long a primary that was just started refuses to serve,
// so that it can learn first whether it was replaced (CLUSTER_WRITABLE_DELAY).
const writableDelay = 2 * time.Second

// Data says what a server finds on its volume when it starts.
type Data int

// Kept is everything as it was; Emptied is nodes.conf without any dataset;
// Blank is a volume on which no server ever ran.
const (
	Kept Data = iota
	Emptied
	Blank
)

// Start says how a server comes up.
type Start struct {
	Address string // host:port; empty: as before
	Data    Data
	Loading time.Duration // virtual time it takes to read the dataset
	Barred  bool          // no primary accepts it as a replica, as with a wrong password
	Closed  bool          // its users are off until it follows somebody: no client writes, no replica syncs
	// Settings are what its file says; nil: what it said at the last start. One
	// that the server does not take ends it at once.
	Settings map[string]string
}

// Node is one server: its process, which comes and goes, and its volume.
type Node struct {
	cluster *Cluster

	// The process.
	running     bool
	silent      bool
	lagging     bool
	barred      bool
	closed      bool
	address     netip.AddrPort
	runID       string
	startedAt   time.Duration
	loadedAt    time.Duration
	replID      string
	replID2     string
	branchedAt  int64 // where the history replID2 ended
	syncTime    time.Duration
	link        replicaLink
	manual      manualFailover
	electionAt  time.Duration
	shownHost   string
	forgetUntil map[valkey.NodeID]time.Duration
	config      map[string]string
	timeout     time.Duration

	// What the settings' file says.
	written map[string]string

	// What nodes.conf and the dataset keep.
	self          *peer
	peers         map[valkey.NodeID]*peer // all but itself; changed by add and remove alone
	lines         []*peer                 // all in order, nil after a change
	currentEpoch  uint64
	lastVoteEpoch uint64
	data          map[string]string
	offset        int64 // counts what was written since the start of the history
}

// peer is a line of a server's table.
type peer struct {
	id         valkey.NodeID
	address    netip.AddrPort
	primaryID  valkey.NodeID // empty: it is a primary
	epoch      uint64
	slots      valkey.Slots
	suspected  bool
	failed     bool
	failedAt   time.Duration
	handshake  bool
	greet      bool // send MEET instead of PING
	noAddress  bool
	noFailover bool
	createdAt  time.Duration
	heardAt    time.Duration
	deafSince  time.Duration // since when it does not know us; 0: it does
	connected  bool
	reports    map[valkey.NodeID]time.Duration
}

func (p *peer) isPrimary() bool { return p.primaryID == "" && !p.handshake }

// votes tells whether the peer counts for majorities.
func (p *peer) votes() bool { return p.isPrimary() && !p.slots.IsEmpty() }

// ID is the node id that the server has now.
func (n *Node) ID() valkey.NodeID {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.self.id
}

// Address is where the server listens, or listened last.
func (n *Node) Address() string {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.address.String()
}

// Running tells whether the process is there.
func (n *Node) Running() bool {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.running
}

// View is what the server would say now, whether it can be asked or not.
func (n *Node) View() valkey.View {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.view()
}

// Kill ends the process. The volume keeps what it holds.
func (n *Node) Kill() {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.running = false
}

// Stop ends the process as SIGTERM does: a primary first waits until the replicas
// that are linked to it, and can, have all that it has.
func (n *Node) Stop() {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	for _, replica := range n.cluster.nodes {
		if !replica.isPrimary() && replica.onBus() && replica.link.up && !replica.lagging && replica.source() == n {
			replica.copyFrom(n)
		}
	}
	n.running = false
}

// Start runs the process again. It panics when it runs already or when the
// address is taken.
func (n *Node) Start(start Start) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	if n.running {
		panic("valkeytest: the server runs already")
	}
	had := n.data
	switch start.Data {
	case Blank:
		n.blank()
	case Emptied:
		n.data = map[string]string{}
	case Kept:
	}
	n.cluster.ledger.parted(n, had, ByStart)
	n.boot(start)
}

// Silence makes the server take connections and answer nothing, to clients
// and servers, as one that is stopped by a signal or cut off.
func (n *Node) Silence(silent bool) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.silent = silent
}

// Lag makes a replica stay connected and stop applying what its primary sends.
func (n *Node) Lag(lagging bool) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.lagging = lagging
}

// SlowSync makes full syncs from this server take their time, until its process ends.
func (n *Node) SlowSync(duration time.Duration) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.syncTime = duration
}

func (n *Node) blank() {
	n.self = &peer{id: n.cluster.randomID()}
	n.peers, n.lines = map[valkey.NodeID]*peer{}, nil
	n.currentEpoch, n.lastVoteEpoch = 0, 0
	n.data = map[string]string{}
	n.shownHost = ""
}

func (n *Node) boot(start Start) {
	if start.Address != "" {
		n.address = netip.MustParseAddrPort(start.Address)
	}
	if other := n.cluster.at(n.address); other != nil {
		panic(fmt.Sprintf("valkeytest: %s is in use", n.address))
	}
	now := n.cluster.now
	n.running, n.silent, n.lagging, n.barred, n.closed = true, false, false, start.Barred, start.Closed
	n.runID = string(n.cluster.randomID())
	n.startedAt, n.loadedAt = now, now+start.Loading
	// An append-only file keeps no history: every start begins a new one.
	n.replID, n.replID2, n.branchedAt, n.offset = string(n.cluster.randomID()), "", 0, 0
	n.syncTime = 0
	n.link = replicaLink{}
	n.manual, n.electionAt = manualFailover{}, 0
	if start.Settings != nil {
		n.written = start.Settings
	}
	if !n.configure(n.written) {
		n.running = false
	}
	n.forgetUntil = map[valkey.NodeID]time.Duration{}
	for _, p := range n.others() {
		if p.handshake {
			n.remove(p.id)
			continue
		}
		p.heardAt, p.deafSince, p.connected = now, 0, false
		p.suspected, p.reports = false, map[valkey.NodeID]time.Duration{}
	}
}

func (n *Node) loading() bool { return n.cluster.now < n.loadedAt }

// answers tells whether clients get any answer.
func (n *Node) answers() bool { return n.running && !n.silent }

// onBus tells whether the server takes part in its cluster. One that loads
// does not.
func (n *Node) onBus() bool { return n.answers() && !n.loading() }

func (n *Node) isPrimary() bool { return n.self.isPrimary() }

// all are the lines of the table, its own first.
func (n *Node) all() []*peer {
	if n.lines == nil {
		// A fixed order makes a run repeatable.
		n.lines = append([]*peer{n.self}, slices.SortedFunc(maps.Values(n.peers), byID)...)
	}
	return n.lines
}

// others are the lines of the table but its own, sorted by id.
func (n *Node) others() []*peer { return n.all()[1:] }

func byID(a, b *peer) int { return strings.Compare(string(a.id), string(b.id)) }

func (n *Node) add(p *peer) {
	p.createdAt, p.heardAt = n.cluster.now, n.cluster.now
	p.reports = map[valkey.NodeID]time.Duration{}
	n.peers[p.id], n.lines = p, nil
}

func (n *Node) remove(id valkey.NodeID) {
	delete(n.peers, id)
	n.lines = nil
}

// find is the line of that id, its own included, handshakes not.
func (n *Node) find(id valkey.NodeID) *peer {
	if id == n.self.id {
		return n.self
	}
	if p := n.peers[id]; p != nil && !p.handshake {
		return p
	}
	return nil
}

// reach is the server that really listens where the table says the peer is.
func (n *Node) reach(p *peer) *Node {
	if p.noAddress {
		return nil
	}
	if target := n.cluster.at(p.address); target != nil && target.onBus() {
		return target
	}
	return nil
}

func (n *Node) keys() int { return len(n.data) }
