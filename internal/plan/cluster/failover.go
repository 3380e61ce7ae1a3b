package cluster

import (
	"fmt"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// primariesPresent: every shard has a primary that can serve. Where the
// servers can vote, they do; where they cannot, because half or more of the
// voters are gone, the replica that has most takes over, if it is proven that
// the old primary does not serve.
func primariesPresent(in Input) plan.Verdict {
	if !in.holdsData() {
		return settled()
	}
	for shard := range int(in.Spec.Shards) {
		if verdict := shardPresent(in, shard); verdict.Hold != plan.Settled || len(verdict.Actions) > 0 {
			return verdict
		}
	}
	return settled()
}

func shardPresent(in Input, shard int) plan.Verdict {
	voices := ofShard(in.voices(), shard)
	orphans := orphansOf(voices)
	if len(orphans) == 0 {
		return settled()
	}
	lost := orphans[0].myself.PrimaryID
	wait := plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonFailingOver, Look: plan.LookServer}
	if votersCanElect(in, lost) {
		wait.Note = fmt.Sprintf("shard %d: the servers elect a new primary", shard)
		return wait
	}
	if !provenStopped(in, lost) {
		wait.Note = fmt.Sprintf("shard %d: the primary does not answer, the servers cannot vote, and it is not proven that the primary is gone; it takes over again when its pod is back", shard)
		return wait
	}
	if len(orphans) < int(in.Spec.Replicas) && !othersKnown(in, shard, lost) {
		wait.Note = fmt.Sprintf("shard %d: waiting for all replicas to answer, to choose the one that has most", shard)
		return wait
	}
	best := orphans[0]
	for _, v := range orphans[1:] {
		if v.Server.Value.Info.Replication.Offset > best.Server.Value.Info.Replication.Offset {
			best = v
		}
	}
	if !hasData(best) && !provenEmpty(in, lost) {
		wait.Note = fmt.Sprintf("shard %d: node %s never got the data that the stopped primary may have; it takes over no shard before that", shard, best.Name)
		return wait
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonFailingOver, Look: plan.LookGossip,
		Note:    fmt.Sprintf("shard %d: the servers cannot vote; node %s takes over", shard, best.Name),
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

// votersCanElect says whether a majority of the slot owners, the lost one
// counted in, answers: then the servers decide themselves.
func votersCanElect(in Input, lost valkey.NodeID) bool {
	answering := 0
	for _, v := range in.voices() {
		if v.primaryWithSlots() && v.id != lost {
			answering++
		}
	}
	return answering > int(in.Spec.Shards)/2
}

// provenStopped says whether the server with an id cannot serve: its agent
// says that it is held or stopped, or its member has another id by now and no
// second pod.
func provenStopped(in Input, lost valkey.NodeID) bool {
	ids, all := in.ids()
	member, current := ids[lost]
	if !current {
		return all && in.everyPodAlone()
	}
	return member.Agent.Known && member.Alone() && stoppedByAgent(member)
}

// hasData says whether a replica has been in sync once: one that never was has
// neither keys nor a place in its primary's history.
func hasData(v voice) bool {
	info := v.Server.Value.Info
	return info.Keys > 0 || info.Replication.Offset > 0
}

// provenEmpty says whether a server that cannot serve has no data to come back
// with: its member lives on under another id, or its agent finds no key.
func provenEmpty(in Input, lost valkey.NodeID) bool {
	ids, _ := in.ids()
	member, current := ids[lost]
	return !current || member.Agent.Known && member.Agent.Value.Empty == protocol.Yes
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
		if !known || id != lost && !stoppedByAgent(member) {
			return false
		}
	}
	return true
}

// stoppedByAgent says whether the agent keeps the server from running.
func stoppedByAgent(member state.Member) bool {
	return member.Agent.Known && (member.Agent.Value.Server == protocol.ServerHeld || member.Agent.Value.Server == protocol.ServerStopped)
}
