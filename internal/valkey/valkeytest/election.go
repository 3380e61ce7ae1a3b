package valkeytest

import (
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// The server's own times: how long a wished-for failover may take, how long a
// replica waits before it asks for votes and how much longer for every sibling
// with newer data, and how many node timeouts old data may be to stand at all
// (cluster-replica-validity-factor).
const (
	manualTimeout  = 5 * time.Second
	electionDelay  = time.Second
	rankDelay      = time.Second
	validityFactor = 10
)

// manualFailover is a failover that was asked for and not yet done.
type manualFailover struct {
	mode  valkey.FailoverMode
	until time.Duration // 0: none was asked for
}

// force holds an election that was wished for without the primary's consent. It is
// held once, among the voters that the server reaches already: one that was just
// started reaches none.
func (n *Node) force() {
	if primary := n.find(n.self.primaryID); n.manual.mode == valkey.Force && primary != nil {
		n.stand(primary, true)
		n.manual = manualFailover{}
	}
}

// failOver holds the election that is due, wished for or by failure.
func (n *Node) failOver() {
	if n.manual.until != 0 {
		n.handOver()
		return
	}
	primary := n.find(n.self.primaryID)
	if n.isPrimary() || primary == nil || !primary.failed || !primary.votes() || n.self.noFailover || n.tooOld() {
		n.electionAt = 0
		return
	}
	now := n.cluster.now
	if n.electionAt == 0 {
		n.electionAt = now + electionDelay + time.Duration(n.rank())*rankDelay
	}
	if now < n.electionAt {
		return
	}
	n.electionAt = now + 2*n.timeout
	n.stand(primary, false)
}

// tooOld tells whether the data is too old for a candidate, or never was the
// primary's.
func (n *Node) tooOld() bool {
	return n.link.heardAt == 0 ||
		n.cluster.now-n.link.heardAt > (validityFactor+1)*n.timeout
}

// rank is the number of siblings with newer data.
func (n *Node) rank() int {
	rank := 0
	for _, p := range n.others() {
		if p.primaryID != n.self.primaryID {
			continue
		}
		if sibling := n.reach(p); sibling != nil && sibling.offset > n.offset {
			rank++
		}
	}
	return rank
}

// handOver stands, once, as soon as the server's offset is that of its primary, which
// waits for that. Nobody asks whether the offsets are of one history.
func (n *Node) handOver() {
	primary := n.find(n.self.primaryID)
	if n.isPrimary() || primary == nil || n.cluster.now > n.manual.until {
		n.manual = manualFailover{}
		return
	}
	source := n.source()
	if source == nil {
		return
	}
	if n.link.up && n.link.process == source.runID && !n.lagging {
		n.copyFrom(source)
	}
	if n.offset != source.offset {
		return
	}
	n.manual = manualFailover{}
	n.stand(primary, true)
}

// stand asks all slot owners for their votes to take the primary's place, and
// takes it with a majority. Two that stand at the same time may ask for the same
// epoch, and one gets no votes.
func (n *Node) stand(primary *peer, wished bool) {
	n.currentEpoch++
	if n.cluster.electedAt == n.cluster.now && n.cluster.random.IntN(2) == 0 {
		return
	}
	votes := 0
	for _, p := range n.others() {
		if !p.votes() || !p.connected {
			continue
		}
		if voter := n.reach(p); voter != nil && voter.self.id == p.id && voter.grants(n, primary, wished) {
			votes++
		}
	}
	if votes >= n.majority() {
		n.cluster.electedAt = n.cluster.now
		n.promote(n.currentEpoch)
	}
}

// grants gives one vote per epoch, for the place of a primary that this
// server too believes to have failed, unless the failover was wished for.
func (n *Node) grants(candidate *Node, primary *peer, wished bool) bool {
	known := n.find(candidate.self.id)
	epoch := candidate.currentEpoch
	if known == nil || !n.self.votes() || epoch < n.currentEpoch || epoch == n.lastVoteEpoch {
		return false
	}
	n.currentEpoch = epoch
	replaced := n.find(primary.id)
	if known.primaryID != primary.id || replaced == nil || (!replaced.failed && !wished) {
		return false
	}
	if !replaced.slots.Equal(primary.slots) || replaced.epoch > primary.epoch {
		return false
	}
	n.lastVoteEpoch = epoch
	return known.connected // else the vote is given and does not arrive
}

// promote makes the replica the primary of its shard and tells everyone.
func (n *Node) promote(epoch uint64) {
	replaced := n.find(n.self.primaryID)
	n.self.primaryID, n.self.epoch = "", epoch
	n.self.slots, replaced.slots = replaced.slots, nil
	n.replID2, n.branchedAt, n.replID = n.replID, n.offset, string(n.cluster.randomID())
	n.cluster.ledger.promoted(n)
	n.link, n.electionAt = replicaLink{}, 0
	for _, p := range n.others() {
		if target := n.reach(p); target != nil {
			target.hear(n, false)
		}
	}
}
