package valkeytest

import "valkey.io/valkey-operator/internal/valkey"

// The server's own multiples of the node timeout: how long a report of another
// server counts, and how long a failed slot owner must be back and unreplaced
// before it is believed again.
const (
	reportValidity = 2
	failUndo       = 2
)

// detectFailures suspects everyone not heard for the node timeout, and calls
// the others' attention when a majority shares the suspicion.
func (n *Node) detectFailures() {
	timeout := n.timeout
	for _, p := range n.others() {
		if p.handshake || p.noAddress {
			continue
		}
		if n.cluster.now-p.heardAt > timeout && !p.failed {
			p.suspected = true
		}
		if p.suspected && n.reported(p) >= n.majority() {
			n.broadcastFail(p.id)
		}
	}
}

func (n *Node) reported(p *peer) int {
	count := 0
	if n.self.votes() {
		count++
	}
	for id, at := range p.reports {
		if n.cluster.now-at > reportValidity*n.timeout {
			delete(p.reports, id)
			continue
		}
		count++
	}
	return count
}

// majority of those who own slots, living or not.
func (n *Node) majority() int { return n.size()/2 + 1 }

func (n *Node) size() int {
	count := 0
	for _, p := range n.all() {
		if p.votes() {
			count++
		}
	}
	return count
}

func (n *Node) broadcastFail(id valkey.NodeID) {
	n.markFailed(id)
	for _, p := range n.others() {
		if target := n.reach(p); target != nil && target.find(n.self.id) != nil {
			target.markFailed(id)
		}
	}
}

func (n *Node) markFailed(id valkey.NodeID) {
	if p := n.find(id); p != nil && p != n.self && !p.failed {
		p.failed, p.suspected, p.failedAt = true, false, n.cluster.now
	}
}

// undoFail believes a peer again that has answered: at once when it owns
// nothing, later when it does, so that a replica has time to take over.
func (n *Node) undoFail(p *peer) {
	if p.failed && (!p.votes() || n.cluster.now-p.failedAt > failUndo*n.timeout) {
		p.failed = false
	}
}

// serves is cluster_state: every slot has an owner that is not failed, and a
// majority of the owners can be reached.
func (n *Node) serves() bool {
	if n.isPrimary() && n.cluster.now-n.startedAt < writableDelay && n.startedAt > 0 {
		return false
	}
	if n.owned().Count() != valkey.SlotCount {
		return false
	}
	reachable := 0
	for _, p := range n.all() {
		if !p.votes() {
			continue
		}
		if p.failed {
			return false
		}
		if !p.suspected {
			reachable++
		}
	}
	return reachable >= n.majority()
}
