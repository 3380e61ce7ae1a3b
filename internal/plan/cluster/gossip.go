package cluster

import (
	"fmt"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
)

// mostIntroductions bounds the introductions of one pass. Gossip alone would
// do after the hub's; introducing pairs directly saves small clusters the
// seconds it takes, and would cost large ones more than it saves.
const mostIntroductions = 32

// nodesMet: all members that answer know each other by their ids and present
// addresses. One of them, the hub, is introduced to all; pairs that have not
// heard of each other through it follow. It is not held up by members that do
// not answer.
func nodesMet(in Input) plan.Verdict {
	voices := in.voices()
	if len(voices) < 2 {
		return settled()
	}
	if verdict := introduce(hubOf(voices), voices); verdict.Hold != plan.Settled {
		return verdict
	}
	all := plan.Verdict{Reason: v1alpha1.ReasonMeeting}
	for _, v := range voices {
		if verdict := introduce(v, voices); verdict.Hold != plan.Settled {
			verdict.Actions = append(all.Actions, verdict.Actions...)
			all = verdict
		}
	}
	all.Actions = all.Actions[:min(len(all.Actions), mostIntroductions)]
	return all
}

// introduce has one member meet all others that it does not know yet.
func introduce(via voice, voices []voice) plan.Verdict {
	verdict := plan.Verdict{Reason: v1alpha1.ReasonMeeting}
	for _, v := range voices {
		if v.id == via.id || meets(via, v) {
			continue
		}
		verdict.Look = plan.LookGossip
		verdict.Hold = plan.Wait
		verdict.Note = fmt.Sprintf("introducing node %s to node %s", v.Name, via.Name)
		if !handshaking(via.table, v.ip) {
			verdict.Actions = append(verdict.Actions, plan.MeetNode{
				Via: via.server(), Node: v.Name, Host: v.ip, Port: name.PortClient, BusPort: name.PortClusterBus,
			})
		}
	}
	return verdict
}

// hubOf is the member that knows most of the others, slot owners first: the
// one whose word spreads best.
func hubOf(voices []voice) voice {
	ids := map[valkey.NodeID]bool{}
	for _, v := range voices {
		ids[v.id] = true
	}
	best, bestScore := voices[0], -1
	for _, v := range voices {
		score := 0
		for _, entry := range v.table.Nodes {
			if ids[entry.ID] {
				score += 2
			}
		}
		if v.primaryWithSlots() {
			score++
		}
		if score > bestScore {
			best, bestScore = v, score
		}
	}
	return best
}

// meets says whether one member knows another by its id and present address.
func meets(one, other voice) bool {
	entry, known := one.table.ByID(other.id)
	return known && !entry.Flags.Handshake && !entry.Flags.NoAddress && entry.Addr.Host == other.ip
}

// handshaking says whether an introduction to an address is under way.
func handshaking(table valkey.NodeTable, ip string) bool {
	for _, entry := range table.Nodes {
		if entry.Flags.Handshake && entry.Addr.Host == ip {
			return true
		}
	}
	return false
}

// ghost is an id that members know and that is no member's.
type ghost struct {
	id       valkey.NodeID
	knownBy  []voice
	slots    valkey.Slots
	followed bool // a member is still its replica
	failed   bool // the voters agree that it failed, or its address is somebody else's
	// suspects counts the members that do not reach it: all that can be had
	// where voters are too few to agree.
	suspects int
}

// ghosts are the ids that no member has. They are known for sure only when
// every member answers: an id of one that is silent is not a ghost.
func (in Input) ghosts() []ghost {
	voices, all := in.everyVoice()
	if !all {
		return nil
	}
	ids, _ := in.ids()
	byID := map[valkey.NodeID]*ghost{}
	var order []valkey.NodeID
	for _, v := range voices {
		for _, entry := range v.table.Nodes {
			if _, member := ids[entry.ID]; member || entry.Flags.Handshake {
				continue
			}
			g := byID[entry.ID]
			if g == nil {
				g = &ghost{id: entry.ID}
				byID[entry.ID] = g
				order = append(order, entry.ID)
			}
			g.hear(v, entry)
		}
	}
	for _, v := range voices {
		if g := byID[v.myself.PrimaryID]; g != nil {
			g.followed = true
		}
	}
	var ghosts []ghost
	for _, id := range order {
		ghosts = append(ghosts, *byID[id])
	}
	return ghosts
}

// hear takes in what a member's table says of the ghost.
func (g *ghost) hear(v voice, entry valkey.NodeEntry) {
	g.knownBy = append(g.knownBy, v)
	g.slots = g.slots.Union(entry.Slots)
	g.failed = g.failed || entry.Flags.Failed || entry.Flags.NoAddress
	if entry.Flags.Suspected {
		g.suspects++
	}
}

// gone says whether it is proven that a ghost's server no longer runs and that
// no member has its data: nobody follows it, it has failed or none that knows
// it reaches it, every member answers under another id, and each pod is the
// only one of its member.
func (in Input) gone(g ghost) bool {
	failed := g.failed || g.suspects == len(g.knownBy)
	return !g.followed && failed && in.everyPodAlone()
}

// ghostsForgotten: no member knows an id that is no member's.
func ghostsForgotten(in Input) plan.Verdict {
	verdict := plan.Verdict{Reason: v1alpha1.ReasonForgetting}
	for _, g := range in.ghosts() {
		if !in.gone(g) {
			verdict.Look = plan.LookWorld // servers tell nobody that they gave one up
			continue
		}
		for _, v := range g.knownBy {
			verdict.Actions = append(verdict.Actions, plan.ForgetNode{From: v.server(), ID: g.id})
		}
	}
	if len(verdict.Actions) > 0 {
		verdict.Look = plan.LookGossip
	}
	return verdict
}

// everyPodAlone says whether no member has a second pod that may still run.
func (in Input) everyPodAlone() bool {
	for _, member := range in.wanted() {
		if !member.Alone() {
			return false
		}
	}
	return true
}
