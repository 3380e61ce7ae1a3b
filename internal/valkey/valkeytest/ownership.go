package valkeytest

import "valkey.io/valkey-operator/internal/valkey"

// claimed is what a server says in the head of every message: of itself
// when it is a primary, of its primary when it is a replica.
func (n *Node) claimed() (epoch uint64, slots valkey.Slots) {
	line := n.self
	if !n.isPrimary() {
		if line = n.find(n.self.primaryID); line == nil {
			return 0, nil
		}
	}
	return line.epoch, line.slots
}

// hearHeader takes what the sender says about itself.
func (n *Node) hearHeader(from *Node, known *peer) {
	epoch, slots := from.claimed()
	n.currentEpoch = max(n.currentEpoch, from.currentEpoch, epoch)
	known.noFailover = from.self.noFailover
	if from.isPrimary() {
		known.primaryID = ""
		known.epoch = max(known.epoch, epoch)
		if !slots.Equal(known.slots) {
			n.claim(known, slots, epoch)
		}
	} else {
		known.slots = nil
		known.primaryID = from.self.primaryID
		n.followMyPrimary(known)
	}
	n.correct(from, epoch, slots)
	n.partEpochs(from)
}

// followMyPrimary keeps replicas of replicas from coming to be.
func (n *Node) followMyPrimary(known *peer) {
	if n.self.primaryID == known.id && n.find(known.primaryID) != nil && known.primaryID != n.self.id {
		n.follow(known.primaryID)
	}
}

// claim gives a peer the slots it says it owns, as far as nobody is known to
// own them by a higher epoch. A server that loses its last slot, or whose
// primary does, follows the new owner.
func (n *Node) claim(owner *peer, slots valkey.Slots, epoch uint64) {
	if owner == n.self {
		return
	}
	mine := n.self
	if !n.isPrimary() {
		mine = n.find(n.self.primaryID)
	}
	hadSlots := mine != nil && !mine.slots.IsEmpty()
	free := slots
	for _, p := range n.all() {
		if p == owner {
			continue
		}
		if p.epoch < epoch {
			p.slots = p.slots.Minus(slots)
		}
		free = free.Minus(p.slots)
	}
	owner.slots = owner.slots.Union(free)
	if hadSlots && mine != owner && mine.slots.IsEmpty() {
		n.follow(owner.id)
	}
}

// correct tells a sender that claims slots by an old epoch who owns them now.
func (n *Node) correct(from *Node, epoch uint64, slots valkey.Slots) {
	for _, p := range n.all() {
		if p.epoch <= epoch || p.slots.Intersect(slots).IsEmpty() {
			continue
		}
		if line := from.find(p.id); line != nil && line != from.self && line.epoch < p.epoch {
			line.primaryID, line.epoch = "", p.epoch
			from.claim(line, p.slots, p.epoch)
		}
	}
}

// partEpochs makes one of two primaries with the same epoch, the one with the
// lower id, take a new one.
func (n *Node) partEpochs(from *Node) {
	if !n.isPrimary() || !from.isPrimary() || n.self.epoch != from.self.epoch || n.self.id > from.self.id {
		return
	}
	n.currentEpoch++
	n.self.epoch = n.currentEpoch
}

// bumpEpoch takes a higher epoch than anyone is known to have, asking nobody,
// unless its own is the highest already.
func (n *Node) bumpEpoch() {
	highest := n.currentEpoch
	for _, p := range n.all() {
		highest = max(highest, p.epoch)
	}
	if n.self.epoch != 0 && n.self.epoch == highest {
		return
	}
	n.currentEpoch = highest + 1
	n.self.epoch = n.currentEpoch
}

// owned are the slots that have an owner by this server's table.
func (n *Node) owned() valkey.Slots {
	var ranges []valkey.SlotRange
	for _, p := range n.all() {
		ranges = append(ranges, p.slots...)
	}
	return valkey.NewSlots(ranges...)
}
