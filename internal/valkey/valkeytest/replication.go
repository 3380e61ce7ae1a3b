package valkeytest

import (
	"maps"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// replicationTimeout is how long a replica holds on to a primary that does not
// end the connection and says nothing (repl-timeout).
const replicationTimeout = 60 * time.Second

// replicaLink is a replica's connection to its primary.
type replicaLink struct {
	primary  valkey.NodeID
	process  string // the run id of the process at the other end
	up       bool
	syncing  bool
	syncEnds time.Duration
	heardAt  time.Duration // last time it was up and the primary spoke; 0: never
	downAt   time.Duration // when it was lost; 0: it was never up
}

// follow makes the server a replica. Its data stays until the first sync.
func (n *Node) follow(primary valkey.NodeID) {
	n.self.primaryID, n.self.slots, n.closed = primary, nil, false
	n.link = replicaLink{primary: primary}
	n.manual, n.electionAt = manualFailover{}, 0
}

// replicate brings a replica up to its primary's data: at once when it has the
// same history, and by a full sync, which takes some time, when it has not. The
// copy is exact, also of an empty primary.
func (n *Node) replicate() {
	if n.isPrimary() {
		return
	}
	primary := n.source()
	if primary == nil || n.barred {
		if n.barred || !n.holdsOn() {
			n.drop()
		}
		return
	}
	if n.link.process != primary.runID {
		n.drop()
		n.link.process = primary.runID
	}
	if !n.link.up && !n.sync(primary) {
		return
	}
	n.link.heardAt = n.cluster.now
	if !n.lagging {
		n.copyFrom(primary)
	}
}

// sync brings a new link up, and tells whether it is.
func (n *Node) sync(primary *Node) bool {
	switch {
	case n.continues(primary):
	case !n.link.syncing:
		n.link.syncing = true
		primary.offset = max(primary.offset, 1) // a history that somebody follows begins with 1
		n.link.syncEnds = n.cluster.now + max(StepTime, primary.syncTime)
		return false
	case n.cluster.now < n.link.syncEnds:
		return false
	default:
		n.copyFrom(primary)
	}
	n.link.up, n.link.syncing = true, false
	return true
}

// continues says whether the primary has what follows the replica's data.
func (n *Node) continues(primary *Node) bool {
	return n.replID == primary.replID || (n.replID == primary.replID2 && n.offset <= primary.branchedAt)
}

// source is the primary that the server's table leads to.
func (n *Node) source() *Node {
	line := n.find(n.self.primaryID)
	if line == nil {
		return nil
	}
	target := n.reach(line)
	if target == nil || target.self.id != line.id || !target.isPrimary() || target.closed {
		return nil
	}
	return target
}

// holdsOn says whether the other end is there still, and only says nothing.
func (n *Node) holdsOn() bool {
	if !n.link.up && !n.link.syncing || n.cluster.now-n.link.heardAt > replicationTimeout {
		return false
	}
	for _, other := range n.cluster.nodes {
		if other.runID == n.link.process {
			return other.running && other.silent
		}
	}
	return false
}

func (n *Node) drop() {
	if n.link.up {
		n.link.downAt = n.cluster.now
	}
	n.link.up, n.link.syncing, n.link.process = false, false, ""
}

// copyFrom gives a replica all that its primary has, and no more.
func (n *Node) copyFrom(primary *Node) {
	if n.replID == primary.replID && n.offset == primary.offset {
		return
	}
	had := n.data
	n.data = maps.Clone(primary.data)
	n.offset, n.replID, n.replID2, n.branchedAt = primary.offset, primary.replID, primary.replID2, primary.branchedAt
	n.cluster.ledger.parted(n, had, BySync)
}
