// Package cluster decides what to do about a ValkeyCluster: named rules, each
// a wished-for truth, over a spec and a snapshot. It is pure: the same input
// gives the same plan, and nothing here reads, writes or asks for the time. It
// never acts on an unknown.
package cluster

import (
	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// Input is all that the rules may look at.
type Input struct {
	Spec       v1alpha1.ValkeyClusterSpec
	State      state.Cluster
	AgentImage string

	revisions *revisions
}

// revisions are what many rules ask for; nil where each finds it out.
type revisions struct{ config string }

// tracks are the policy: within a track the order is the order of work; the
// tracks go side by side, so that a volume grows while a member is down.
var tracks = []plan.Track[Input]{
	{Name: "objects", Rules: []plan.Rule[Input]{
		{Name: "namesFree", Judge: namesFree},
		{Name: RuleIdentityRecorded, Judge: identityRecorded},
		{Name: "passwordsExist", Judge: passwordsExist},
		{Name: "objectsCurrent", Judge: objectsCurrent},
		{Name: "nodesExist", Judge: nodesExist},
		{Name: RuleImageReadsData, Judge: imageReadsData},
		{Name: "memoryHoldsData", Judge: memoryHoldsData},
		{Name: RuleTemplatesCurrent, Judge: templatesCurrent},
	}},
	{Name: "storage", Rules: []plan.Rule[Input]{
		{Name: RuleSizesGiven, Judge: sizesGiven},
		{Name: RuleGrowthPossible, Judge: growthPossible},
		{Name: RuleSizesCurrent, Judge: sizesCurrent},
		{Name: "sizeNotBelowCapacity", Judge: sizeNotBelowCapacity},
	}},
	{Name: "growth", Rules: []plan.Rule[Input]{
		{Name: "logsShort", Judge: logsShort},
	}},
	{Name: "offline", Rules: []plan.Rule[Input]{
		{Name: "stopsNeeded", Judge: stopsNeeded},
		{Name: RuleOfflineVolumesGrown, Judge: offlineVolumesGrown},
	}},
	{Name: "settings", Rules: []plan.Rule[Input]{
		{Name: RuleSettingsAccepted, Judge: settingsAccepted},
		{Name: RuleSettingsGiven, Judge: settingsGiven},
	}},
	{Name: "access", Rules: []plan.Rule[Input]{
		{Name: "userPasswordsFound", Judge: userPasswordsFound},
	}},
	{Name: "members", Rules: []plan.Rule[Input]{
		{Name: "membersAnswer", Judge: membersAnswer},
	}},
	{Name: "files", Rules: []plan.Rule[Input]{
		{Name: "filesUsable", Judge: filesUsable},
	}},
	{Name: "gossip", Rules: []plan.Rule[Input]{
		{Name: "nodesMet", Judge: nodesMet},
	}},
	{Name: "failover", Rules: []plan.Rule[Input]{
		{Name: "primariesPresent", Judge: primariesPresent},
	}},
	{Name: "slots", Rules: []plan.Rule[Input]{
		{Name: "dataPresent", Judge: dataPresent},
		{Name: "slotsAssigned", Judge: slotsAssigned},
	}},
	{Name: "replication", Rules: []plan.Rule[Input]{
		{Name: "replicasAttached", Judge: replicasAttached},
	}},
	{Name: "ghosts", Rules: []plan.Rule[Input]{
		{Name: "ghostsForgotten", Judge: ghostsForgotten},
	}},
}

// Make decides about a cluster. Nothing is done for one that is being deleted.
func Make(in Input) plan.Plan {
	if in.State.Deleting {
		return nil
	}
	in.revisions = &revisions{config: in.configRevision()}
	return plan.Make(tracks, in)
}

func (in Input) build() build.Cluster {
	return build.Cluster{
		Namespace: in.State.Namespace, Name: in.State.Name, UID: in.State.UID,
		ID: in.State.Status.ClusterID, Spec: in.Spec, AgentImage: in.AgentImage, ConfigRevision: in.configRevision(),
	}
}

// formed says whether the cluster has served all slots once.
func (in Input) formed() bool { return in.State.Status.Formed }

// hasServed says whether the cluster has served all slots once, by its status or,
// since a restore may lose that, by what its members have: keys, and an owner for
// each slot.
func (in Input) hasServed() bool {
	return in.formed() || in.holdsData() && ownedBy(in.voices()).Equal(valkey.AllSlots())
}

// holdsData says whether the members may have data that nobody else has: the
// cluster has formed, took up claims that are older than itself, or took writes
// while it still waits for some member.
func (in Input) holdsData() bool {
	if in.formed() {
		return true
	}
	for _, member := range in.wanted() {
		if member.Claim != nil && member.Claim.CreatedAt.Before(in.State.CreatedAt) {
			return true
		}
		if member.Server.Known && member.Server.Value.Info.Keys > 0 {
			return true
		}
	}
	return false
}

// wanted are the members that the spec asks for.
func (in Input) wanted() []state.Member {
	var members []state.Member
	for _, member := range in.State.Members {
		if member.Wanted {
			members = append(members, member)
		}
	}
	return members
}

func settled() plan.Verdict { return plan.Verdict{Hold: plan.Settled} }
