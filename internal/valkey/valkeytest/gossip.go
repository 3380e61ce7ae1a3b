package valkeytest

import (
	"net/netip"
	"time"
)

// minHandshake is the least time a handshake may take, however short the node timeout.
const minHandshake = time.Second

func (n *Node) handshakeTimeout() time.Duration {
	return max(n.timeout, minHandshake)
}

// gossip pings everyone in the table and drops greetings that led nowhere.
func (n *Node) gossip() {
	for _, p := range n.others() {
		if p.handshake && n.cluster.now-p.createdAt > n.handshakeTimeout() {
			n.remove(p.id)
			continue
		}
		n.ping(p)
	}
}

func (n *Node) ping(p *peer) {
	target := n.reach(p)
	if target == nil {
		p.connected = p.connected && n.linksTo(p)
		return
	}
	n.noticeDeaf(p, target)
	target.hear(n, p.greet)
	n.pong(p, target)
}

// linksTo says whether a server listens where the peer is, if it says nothing.
func (n *Node) linksTo(p *peer) bool { return !p.noAddress && n.cluster.at(p.address) != nil }

// noticeDeaf greets a peer again that answers without knowing us. So a node
// that was forgotten and did not forget comes back (since 8.1).
func (n *Node) noticeDeaf(p *peer, target *Node) {
	switch {
	case p.handshake || target.find(n.self.id) != nil:
		p.deafSince = 0
	case p.deafSince == 0:
		p.deafSince = n.cluster.now
	case n.cluster.now-p.deafSince > n.handshakeTimeout():
		p.greet = true
	}
}

// hear takes a ping, or a greeting.
func (n *Node) hear(from *Node, greeting bool) {
	if greeting || n.shownHost == "" {
		n.shownHost = n.address.Addr().String()
	}
	known := n.find(from.self.id)
	if known == nil {
		if greeting {
			n.startHandshake(from.address, false)
		}
		return
	}
	if from == n {
		return
	}
	known.address, known.noAddress = from.address, false
	n.hearHeader(from, known)
	n.hearGossip(from)
}

// startHandshake begins to make an acquaintance: under a provisional id until
// the other side tells its own.
func (n *Node) startHandshake(address netip.AddrPort, greet bool) {
	for _, p := range n.others() {
		if p.handshake && p.address == address {
			return
		}
	}
	n.add(&peer{id: n.cluster.randomID(), address: address, handshake: true, greet: greet})
}

// pong takes the answer to a ping that went to the peer's address, which
// may be the address of somebody else by now.
func (n *Node) pong(p *peer, from *Node) {
	if p.handshake {
		if p = n.endHandshake(p, from); p == nil {
			return
		}
	}
	if p.id != from.self.id {
		p.noAddress, p.connected = true, false
		p.address = netip.AddrPort{}
		return
	}
	p.heardAt, p.connected, p.suspected, p.greet = n.cluster.now, true, false, false
	n.undoFail(p)
	n.hearHeader(from, p)
	n.hearGossip(from)
}

// endHandshake gives the new acquaintance its name, or finds out that it is
// an old one with a new address. It returns nil when it met itself.
func (n *Node) endHandshake(p *peer, from *Node) *peer {
	n.remove(p.id)
	if from == n {
		return nil
	}
	if known := n.find(from.self.id); known != nil {
		known.address, known.noAddress = from.address, false
		return known
	}
	p.id, p.handshake, p.greet = from.self.id, false, false
	n.add(p)
	return p
}

// hearGossip takes what the sender says about third nodes.
func (n *Node) hearGossip(from *Node) {
	for _, said := range from.others() {
		if said.handshake || said.id == n.self.id {
			continue
		}
		if known := n.find(said.id); known != nil {
			n.compare(from, known, said)
			continue
		}
		if !said.noAddress && n.cluster.now >= n.forgetUntil[said.id] {
			n.add(&peer{id: said.id, address: said.address, primaryID: said.primaryID})
		}
	}
}

// compare takes the sender's opinion of a node that both know.
func (n *Node) compare(from *Node, known, said *peer) {
	down := said.suspected || said.failed
	if from.self.votes() {
		if down {
			known.reports[from.self.id] = n.cluster.now
		} else {
			delete(known.reports, from.self.id)
		}
	}
	if (known.suspected || known.failed) && !down && !said.noAddress {
		known.address, known.noAddress = said.address, false
	}
}
