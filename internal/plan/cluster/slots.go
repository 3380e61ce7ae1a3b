package cluster

import (
	"fmt"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// dataPresent: the slots of a cluster with storage have owners among its
// members, once it has formed. Where they have not, the volumes with all copies
// of a shard are gone; giving the slots to an empty member would make that
// final, so a person decides.
func dataPresent(in Input) plan.Verdict {
	voices, all := in.everyVoice()
	if !all || !in.holdsData() || !build.StorageEnabled(in.Spec) {
		return settled()
	}
	lost := valkey.AllSlots().Minus(ownedBy(voices))
	for _, g := range in.ghosts() {
		if in.gone(g) {
			lost = lost.Union(g.slots)
		}
	}
	if lost.IsEmpty() {
		return settled()
	}
	return plan.Verdict{Hold: plan.Blocked, Reason: v1alpha1.ReasonShardLost, Note: fmt.Sprintf(
		"no member has the data of slots %s any more, and nothing was reassigned; bring the volumes back that held them, or delete the cluster with its claims and create it anew", lost)}
}

// ownedBy are the slots that have an owner in any of the members' tables.
func ownedBy(voices []voice) valkey.Slots {
	owned := valkey.Slots{}
	for _, v := range voices {
		owned = owned.Union(v.table.Owned())
	}
	return owned
}

// slotsAssigned: every slot has an owner. A shard's slot is free only when no
// table, of any member, names an owner for it, and no silent member can own it.
func slotsAssigned(in Input) plan.Verdict {
	voices, all := in.everyVoice()
	owned := ownedBy(voices)
	if owned.Equal(valkey.AllSlots()) {
		return ownersAnswer(in, voices)
	}
	verdict := plan.Verdict{Reason: v1alpha1.ReasonSlotsUnassigned, Look: plan.LookGossip}
	waiting, primaries := "", primariesByWorker(voices)
	for shard := range int(in.Spec.Shards) {
		free := valkey.ShardSlots(int(in.Spec.Shards), shard).Minus(owned)
		if free.IsEmpty() {
			continue
		}
		if !all && !in.mayAssignEarly(shard) {
			waiting = "slots are assigned once every member answers: one that is silent may own them"
			continue
		}
		to, found := taker(ofShard(voices, shard), primaries)
		if !found || !all && in.crowded(to, primaries) {
			waiting = fmt.Sprintf("shard %d has no member that could take its slots yet", shard)
			continue
		}
		primaries[to.worker()]++
		verdict.Actions = append(verdict.Actions, plan.AssignSlots{To: to.server(), Shard: shard, Slots: free})
	}
	if len(verdict.Actions) > 0 {
		return verdict
	}
	return plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonSlotsUnassigned, Look: plan.LookServer, Note: waiting}
}

// mayAssignEarly says whether no silent member can own a slot of a shard: the
// cluster is so new that they were given to nobody yet. They are given out as soon
// as that is so, for a server that gets its first does not serve before it has run
// for two seconds.
func (in Input) mayAssignEarly(shard int) bool {
	return in.State.Unowned[shard] && !in.holdsData()
}

// taker is the member that gets a shard's free slots: its primary, else of those
// that are nobody's replica the first on the worker with the fewest primaries.
func taker(voices []voice, primaries map[string]int) (voice, bool) {
	var best voice
	found := false
	for _, v := range voices {
		if v.primaryWithSlots() {
			return v, true
		}
		if v.myself.Flags.Primary && (!found || primaries[v.worker()] < primaries[best.worker()]) {
			best, found = v, true
		}
	}
	return best, found
}

func primariesByWorker(voices []voice) map[string]int {
	primaries := map[string]int{}
	for _, v := range voices {
		if v.primaryWithSlots() {
			primaries[v.worker()]++
		}
	}
	return primaries
}

// crowded says whether a worker would have more than its share of the primaries,
// while members elsewhere may still answer. Those that start first are often all
// on one worker, whose loss would then take the majority with it.
func (in Input) crowded(to voice, primaries map[string]int) bool {
	if to.primaryWithSlots() {
		return false
	}
	workers := map[string]bool{}
	for _, member := range in.wanted() {
		if pod, one := state.LivePod(member.Pods); one && pod.Worker != "" {
			workers[pod.Worker] = true
		}
	}
	share := (int(in.Spec.Shards) + len(workers) - 1) / max(1, len(workers))
	return len(workers) > 0 && primaries[to.worker()] >= share
}

// ownersAnswer: every slot's owner answers and says itself that it owns it.
func ownersAnswer(in Input, voices []voice) plan.Verdict {
	served := valkey.Slots{}
	for _, v := range voices {
		if v.primaryWithSlots() {
			served = served.Union(v.myself.Slots)
		}
	}
	if missing := valkey.AllSlots().Minus(served); !missing.IsEmpty() {
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonSlotsUnassigned, Look: plan.LookServer,
			Note: fmt.Sprintf("the owner of slots %s does not answer", missing),
		}
	}
	for _, v := range voices {
		if !v.primaryWithSlots() && (in.formed() || Excused(in, v.Member)) {
			continue // whom a replica believes is a matter of its being in sync
		}
		if !v.table.Owned().Equal(valkey.AllSlots()) || !v.Server.Value.Cluster.StateOK {
			return plan.Verdict{
				Hold: plan.Wait, Reason: v1alpha1.ReasonSlotsUnassigned, Look: plan.LookGossip,
				Note: fmt.Sprintf("node %s has yet to hear of all slots' owners", v.Name),
			}
		}
	}
	return settled()
}

// replicasAttached: every member that owns no slots is a replica of the
// primary of its own shard, and in sync with it.
func replicasAttached(in Input) plan.Verdict {
	voices := in.voices()
	verdict := plan.Verdict{Reason: v1alpha1.ReasonReplicasAttaching}
	waiting, look := "", plan.LookGossip
	for shard := range int(in.Spec.Shards) {
		members := ofShard(voices, shard)
		primary, found := primaryOf(members)
		if !found {
			waiting, look = fmt.Sprintf("shard %d has no primary that answers", shard), plan.LookWorld
			continue
		}
		if superseded(primary, voices) {
			waiting = fmt.Sprintf("node %s has yet to hear that its slots have a later owner", primary.Name)
			continue
		}
		for _, v := range members {
			if mayAttach(v, primary) {
				verdict.Actions = append(verdict.Actions, plan.AttachReplica{Replica: v.server(), Primary: primary.id})
			} else if wait := awaited(v, primary); wait != "" && !Excused(in, v.Member) {
				waiting = wait
			}
		}
	}
	if len(verdict.Actions) > 0 {
		verdict.Look = plan.LookGossip
		return verdict
	}
	if waiting != "" {
		return plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonReplicasAttaching, Look: look, Note: waiting}
	}
	return verdict
}

// superseded says whether any member knows a later owner of a primary's slots.
// That one may be silent, or have crashed: its replicas have the newer data, and
// must not follow one that came back with older.
func superseded(primary voice, voices []voice) bool {
	for _, v := range voices {
		for _, entry := range v.table.Nodes {
			later := entry.ID != primary.id && entry.ConfigEpoch > primary.myself.ConfigEpoch
			if later && entry.Flags.Primary && !entry.Slots.Intersect(primary.myself.Slots).IsEmpty() {
				return true
			}
		}
	}
	return false
}

// follows says whether a member is a replica of a primary already.
func follows(v, primary voice) bool {
	return v.myself.Flags.Replica && v.myself.PrimaryID == primary.id
}

// mayAttach says whether a member is to be given its primary now: it owns
// nothing, follows somebody else or nobody, and has heard of the primary.
func mayAttach(v, primary voice) bool {
	return v.id != primary.id && !v.primaryWithSlots() && !follows(v, primary) && knows(v, primary)
}

// awaited says what a member that is not attached now is waited for; it is
// empty when it is in sync, or the primary itself.
func awaited(v, primary voice) string {
	switch {
	case v.id == primary.id:
		return ""
	case !v.myself.Slots.Intersect(primary.myself.Slots).IsEmpty():
		return fmt.Sprintf("node %s has yet to hear that node %s has taken its slots over", v.Name, primary.Name)
	case v.primaryWithSlots():
		return ""
	case !follows(v, primary):
		return fmt.Sprintf("node %s has yet to hear of its primary %s", v.Name, primary.Name)
	case !inSync(v):
		return fmt.Sprintf("node %s is syncing with node %s", v.Name, primary.Name)
	}
	return ""
}

// primaryOf is the shard's member that owns slots; of two, which gossip will
// settle, the one with the higher epoch.
func primaryOf(members []voice) (voice, bool) {
	var best voice
	found := false
	for _, v := range members {
		if v.primaryWithSlots() && (!found || v.myself.ConfigEpoch > best.myself.ConfigEpoch) {
			best, found = v, true
		}
	}
	return best, found
}

func knows(v, other voice) bool {
	entry, known := v.table.ByID(other.id)
	return known && !entry.Flags.Handshake
}

func inSync(v voice) bool {
	return v.Server.Value.Info.Replication.Primary.InSync()
}

// ShardInSync says whether every member of a shard answers, one of them owns
// its slots and the others follow it and are in sync.
func ShardInSync(in Input, shard int) bool {
	members := ofShard(in.voices(), shard)
	primary, found := primaryOf(members)
	if !found || len(members) != int(in.Spec.Replicas)+1 {
		return false
	}
	for _, v := range members {
		if v.id != primary.id && (v.myself.PrimaryID != primary.id || !inSync(v)) {
			return false
		}
	}
	return true
}
