package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// electionPatience: a replica whose link has been down for as long is taken by
// its server for too old to be elected: ten node timeouts, of which the longest
// we set is 15 s, and some seconds.
const electionPatience = 180

// primariesPresent: every shard has a primary that can serve. Where the
// servers can elect one, they do; where they cannot, because half or more of
// the voters are gone or no replica may stand, the replica that has most takes
// over, if it is proven that the old primary does not serve.
func primariesPresent(in Input) plan.Verdict {
	told := settled()
	for shard := range int(in.Spec.Shards) {
		verdict := shardPresent(in, shard)
		if len(verdict.Actions) > 0 {
			return verdict // one at a time, and none behind a shard that has to wait
		}
		if told.Hold == plan.Settled {
			told = verdict
		}
	}
	return told
}

func shardPresent(in Input, shard int) plan.Verdict {
	voices := ofShard(in.voices(), shard)
	orphans := orphansOf(voices)
	if len(orphans) == 0 {
		return settled()
	}
	lost := orphans[0].myself.PrimaryID
	wait := plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonFailingOver, Look: plan.LookServer}
	if votersCanElect(in, orphans[0], lost) && slices.ContainsFunc(orphans, mayStand) {
		wait.Note = fmt.Sprintf("shard %d: the servers elect a new primary", shard)
		return wait
	}
	if slices.ContainsFunc(orphans, func(v voice) bool { return mayBeServed(in, v) }) {
		wait.Note = fmt.Sprintf("shard %d: the primary does not answer, the servers cannot elect another, and it is not proven that the primary is gone; it takes over again when its pod is back", shard)
		return wait
	}
	if len(orphans) < int(in.Spec.Replicas) && !othersKnown(in, shard, lost) {
		wait.Note = fmt.Sprintf("shard %d: waiting for all replicas to answer, to choose the one that has most", shard)
		return wait
	}
	best := orphans[0]
	for _, v := range orphans[1:] {
		if hasMore(v, best) {
			best = v
		}
	}
	if !hasData(best) && !provenEmpty(in, lost) {
		wait.Note = fmt.Sprintf("shard %d: node %s never got the data that the stopped primary may have; it takes over no shard before that", shard, best.Name)
		return wait
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonFailingOver, Look: plan.LookGossip,
		Note:    fmt.Sprintf("shard %d: the servers cannot elect a primary; node %s takes over", shard, best.Name),
		Actions: []plan.Action{plan.TakeOver{Replica: best.server(), Shard: shard}},
	}
}

func ofShard(voices []voice, shard int) []voice {
	var out []voice
	for _, v := range voices {
		if v.Shard == shard {
			out = append(out, v)
		}
	}
	return out
}

// orphansOf are the replicas of a shard in which no primary answers.
func orphansOf(voices []voice) []voice {
	var orphans []voice
	for _, v := range voices {
		if v.primaryWithSlots() {
			return nil
		}
		if v.myself.Flags.Replica && !followsAny(v, voices) {
			orphans = append(orphans, v)
		}
	}
	return orphans
}

func followsAny(v voice, voices []voice) bool {
	for _, other := range voices {
		if v.myself.PrimaryID == other.id {
			return true
		}
	}
	return false
}

// linked says whether a replica still has a link to its primary, which then
// may serve, whatever became of its pod.
func linked(v voice) bool {
	link := v.Server.Value.Info.Replication.Primary
	return link != nil && (link.Up || link.SyncInProgress)
}

// mayStand says whether a replica's server would stand for election: one that
// has not been linked to its primary since its start, or not for long, takes its
// own data for too old, and waits for that primary for ever.
func mayStand(v voice) bool {
	link := v.Server.Value.Info.Replication.Primary
	return link == nil || link.DownSeconds >= 0 && link.DownSeconds < electionPatience
}

// votersCanElect says whether a majority of the slot owners, the lost one
// counted in, can vote for a replica: those that answer us, and those that the
// replica itself reaches. One that is silent to us alone still votes.
func votersCanElect(in Input, replica voice, lost valkey.NodeID) bool {
	voters := map[valkey.NodeID]bool{}
	for _, v := range in.voices() {
		if v.primaryWithSlots() && v.id != lost {
			voters[v.id] = true
		}
	}
	for _, entry := range replica.table.Nodes {
		down := entry.Flags.Failed || entry.Flags.Suspected || entry.Flags.NoAddress
		if entry.Flags.Primary && !entry.Slots.IsEmpty() && entry.ID != lost && !down {
			voters[entry.ID] = true
		}
	}
	return len(voters) > int(in.Spec.Shards)/2
}

// mayBeServed says whether the primary that a replica follows may still serve,
// or come back with data that the replica has not.
func mayBeServed(in Input, v voice) bool {
	lost := v.myself.PrimaryID
	switch {
	case linked(v):
		return true
	case crashLoops(in, lost):
		return !wasLinked(v)
	case waitsForSpace(in, lost) && !mayStand(v):
		return true
	case cannotLoad(in, v):
		return !wasLinked(v)
	}
	return !provenStopped(in, lost)
}

// provenStopped says whether the server with an id cannot serve: its agent
// says that it holds it, or its member has another id by now and no second pod.
// One that has merely stopped is started again with its data the next moment.
func provenStopped(in Input, lost valkey.NodeID) bool {
	ids, all := in.ids()
	member, current := ids[lost]
	if !current {
		return all && in.everyPodAlone()
	}
	return member.Alone() && heldByAgent(member)
}

// crashLoops says whether the server with an id ends at each start, by its
// worker's word, and does not run now. It has data that it cannot load: only a
// replica that had a link to it may go on with its own.
func crashLoops(in Input, lost valkey.NodeID) bool {
	for _, member := range in.wanted() {
		pod, one := state.LivePod(member.Pods)
		was := member.Record != nil && valkey.NodeID(member.Record.Status.NodeID) == lost
		if was && one && member.Alone() && pod.CrashLooping && !member.Agent.Known {
			return true
		}
	}
	return false
}

// waitsForSpace says whether the server with an id is down for want of space on
// its volume. It is back with all its data once there is some: only a replica that
// voters would elect as well may go on with its own.
func waitsForSpace(in Input, lost valkey.NodeID) bool {
	ids, _ := in.ids()
	member, current := ids[lost]
	return current && lacksSpace(member)
}

// lacksSpace says whether a member's server ended for want of space.
func lacksSpace(member state.Member) bool {
	return member.Agent.Known && member.Agent.Value.Decision == protocol.DecisionVolumeFull
}

// wasLinked says whether a replica was linked to its primary since its start.
func wasLinked(v voice) bool {
	link := v.Server.Value.Info.Replication.Primary
	return link != nil && link.DownSeconds >= 0
}

// hasMore says whether a replica has more of its primary's history than
// another. Two that restarted have lost their place in it, and only their keys
// can be compared.
func hasMore(v, other voice) bool {
	one, two := v.Server.Value.Info, other.Server.Value.Info
	return cmp.Or(cmp.Compare(one.Replication.Offset, two.Replication.Offset), cmp.Compare(one.Keys, two.Keys)) > 0
}

// hasData says whether a replica has keys. Its place in its primary's history
// proves nothing: a blank server that became a replica counts from 1.
func hasData(v voice) bool { return v.Server.Value.Info.Keys > 0 }

// provenEmpty says whether a server that cannot serve has no data to come back
// with: its member lives on under another id, or its agent finds no key.
func provenEmpty(in Input, lost valkey.NodeID) bool {
	ids, _ := in.ids()
	member, current := ids[lost]
	if !current {
		return !crashLoops(in, lost)
	}
	return member.Agent.Known && member.Agent.Value.Empty == protocol.Yes
}

// othersKnown says whether the shard's members that do not answer are known
// to have no data or to be the lost primary.
func othersKnown(in Input, shard int, lost valkey.NodeID) bool {
	answering := map[string]bool{}
	for _, v := range in.voices() {
		answering[v.Name] = true
	}
	for _, member := range in.wanted() {
		if member.Shard != shard || answering[member.Name] {
			continue
		}
		id, known := member.ID()
		if !known || id != lost && (!heldByAgent(member) || lacksSpace(member)) {
			return false
		}
	}
	return true
}

// heldByAgent says whether the agent keeps the server from running. An agent
// that waits for the volume's lock holds its own server, but not the one that has
// the lock.
func heldByAgent(member state.Member) bool {
	agent := member.Agent
	return agent.Known && agent.Value.Server == protocol.ServerHeld && agent.Value.Decision != protocol.DecisionVolumeLocked
}
