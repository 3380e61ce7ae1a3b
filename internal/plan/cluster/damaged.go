package cluster

import (
	"fmt"
	"strings"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// filesUsable: no member is held because its server cannot use the files on its
// volume. Where another member of its shard is the primary and serves, the files are
// set aside and the member is rebuilt from that one, one of a shard at a time; where
// there is none, somebody has to decide, for they may be the only copy.
func filesUsable(in Input) plan.Verdict {
	mending := plan.Verdict{Reason: v1alpha1.ReasonFilesDamaged, Look: plan.LookServer}
	var mended, stuck []string
	busy := map[int]bool{}
	for _, member := range in.wanted() {
		source, rebuilt := rebuiltFrom(in, member)
		switch {
		case allowedEmpty(member):
			mended = append(mended, fmt.Sprintf("node %s starts without its data, as its annotation allows", member.Name))
		case !damaged(member):
			continue
		case !rebuilt:
			stuck = append(stuck, fmt.Sprintf("node %s: %s", member.Name, member.Agent.Value.Message))
			continue
		case busy[member.Shard]:
			continue
		default:
			mended = append(mended, fmt.Sprintf("node %s is rebuilt from node %s: %s", member.Name, source.Name, member.Agent.Value.Message))
		}
		busy[member.Shard] = true
		mending.Actions = append(mending.Actions, startEmpty(member))
	}
	switch {
	case len(mended) > 0:
		mending.Note = strings.Join(mended, "; ")
		return mending
	case len(stuck) > 0:
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonFilesDamaged, Look: plan.LookServer,
			Note: fmt.Sprintf("%s; no other member of the shard serves as its primary, so these files may be the only copy: "+
				"bring another one up, or see the runbook for how to mend them or to start without", strings.Join(bounded(stuck), "; ")),
		}
	}
	return settled()
}

// damaged says whether a member is held because of files that its server cannot use.
func damaged(member state.Member) bool {
	facts := member.Agent.Value
	return member.Agent.Known && facts.Server == protocol.ServerHeld && facts.Hold != "" &&
		(facts.Decision == protocol.DecisionTableDamaged || facts.Decision == protocol.DecisionDataDamaged)
}

// allowedEmpty says whether a person lets the member start without its data, out
// of the very hold that it is in.
func allowedEmpty(member state.Member) bool {
	facts := member.Agent.Value
	_, one := state.LivePod(member.Pods)
	return member.Agent.Known && one && facts.Hold != "" && member.Record != nil && member.Record.StartEmpty == facts.Hold
}

// rebuiltFrom is the primary of a member's shard that has all of its data, and
// whether there is one: another member that serves slots, at a higher epoch than
// the member's own where that owns any.
func rebuiltFrom(in Input, member state.Member) (source voice, found bool) {
	if !in.formed() || !member.Alone() {
		return voice{}, false
	}
	facts := member.Agent.Value
	for _, v := range ofShard(in.voices(), member.Shard) {
		serves := v.primaryWithSlots() && v.Agent.Value.Ready && v.Server.Value.Cluster.StateOK
		older := facts.OwnsSlots == protocol.Yes && facts.ConfigEpoch >= v.myself.ConfigEpoch
		if v.Name != member.Name && serves && !older {
			return v, true
		}
	}
	return voice{}, false
}

func startEmpty(member state.Member) plan.Action {
	pod, _ := state.LivePod(member.Pods)
	facts := member.Agent.Value
	return plan.StartEmpty{
		Node: member.Name, Host: pod.IP,
		To:      protocol.Addressee{ClusterID: facts.ClusterID, Shard: member.Shard, Node: member.Node},
		Command: protocol.StartEmpty{Hold: facts.Hold, Decision: facts.Decision},
	}
}

// cannotLoad says whether the primary that a replica follows has data that it
// cannot load: only a replica that had a link to it may go on with its own.
func cannotLoad(in Input, v voice) bool {
	for _, member := range in.wanted() {
		was := member.Record != nil && member.Record.Status.NodeID == string(v.myself.PrimaryID)
		if was && damaged(member) && member.Alone() {
			return true
		}
	}
	return false
}
