package valkeytest

import (
	"maps"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// replicaLink is a replica's connection to its primary.
type replicaLink struct {
	primary  valkey.NodeID
	up       bool
	syncing  bool
	syncedAt time.Duration // last time it had all that the primary had; 0: never
}

// follow makes the server a replica. Its data stays until the first sync.
func (n *Node) follow(primary valkey.NodeID) {
	n.self.primaryID, n.self.slots = primary, nil
	n.link = replicaLink{primary: primary}
	n.manual, n.electionAt = manualFailover{}, 0
}

// replicate brings a replica up to its primary's data: at once when it has the
// same history, and by a full sync, which takes a step, when it has not. The
// copy is exact, also of an empty primary.
func (n *Node) replicate() {
	if n.isPrimary() {
		return
	}
	primary := n.source()
	if primary == nil {
		n.link.up, n.link.syncing = false, false
		return
	}
	switch {
	case n.replID == primary.replID || (n.replID == primary.replID2 && n.offset <= primary.offset):
		n.link.up, n.link.syncing = true, false
	case !n.link.syncing:
		n.link.syncing, n.link.up = true, false
		return
	default:
		n.link.up, n.link.syncing = true, false
		n.copyFrom(primary)
	}
	if !n.lagging {
		n.copyFrom(primary)
	}
}

// source is the primary that the server's table leads to.
func (n *Node) source() *Node {
	line := n.find(n.self.primaryID)
	if line == nil {
		return nil
	}
	target := n.reach(line)
	if target == nil || target.self.id != line.id || !target.isPrimary() {
		return nil
	}
	return target
}

func (n *Node) copyFrom(primary *Node) {
	n.data = maps.Clone(primary.data)
	n.offset, n.replID, n.replID2 = primary.offset, primary.replID, primary.replID2
	n.link.syncedAt = n.cluster.now
}
