package cluster

import (
	"fmt"
	"slices"
	"strings"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// RuleTemplatesCurrent is looked up in a plan by those who tell what it says.
const RuleTemplatesCurrent = "templatesCurrent"

// templatesCurrent: every member runs the template that the spec asks for. While the
// cluster has served nothing, there is nothing to lose, and all are given a new one at
// once; later one member of a shard at a time is replaced, and nobody else
// until it is in sync again.
func templatesCurrent(in Input) plan.Verdict {
	if !in.hasServed() && !in.keysInMemoryOnly() {
		return templatesGiven(in)
	}
	if len(in.wantedThat(in.rollsOn)) == 0 {
		return settled()
	}
	verdict := plan.Verdict{Reason: v1alpha1.ReasonRollingOut, Look: plan.LookServer}
	verdict.Actions = in.renewedAtOnce()
	if len(verdict.Actions) > 0 {
		verdict.Note = in.rollNote([]string{"members that serve nothing get the new template at once"})
		return verdict
	}
	if loss := lossOnRestart(in); loss != "" {
		return plan.Verdict{Hold: plan.Blocked, Reason: v1alpha1.ReasonDataLossOnRestart, Note: loss, Look: plan.LookWorld}
	}
	taken := in.takeTurns()
	notes := taken.rolls.notes
	if taken.unwell != "" {
		notes = append(in.whyNotReady(), "nobody is replaced while "+taken.unwell)
	}
	verdict.Actions, verdict.Note = taken.rolls.actions, in.rollNote(notes)
	if len(verdict.Actions) == 0 {
		verdict.Hold = plan.Wait
	}
	return verdict
}

// templatesGiven: every ValkeyNode has the template that the spec asks for.
func templatesGiven(in Input) plan.Verdict {
	verdict := settled()
	for _, member := range in.recorded() {
		if in.older(member) {
			verdict.Actions = append(verdict.Actions, in.renew(member))
		}
	}
	return verdict
}

// keysInMemoryOnly says whether members hold keys that a new pod would not have.
func (in Input) keysInMemoryOnly() bool {
	return !build.StorageEnabled(in.Spec) && in.holdsData()
}

// revision is that of the template that a member shall have.
func (in Input) revision(member state.Member) string {
	return build.NodeSpec(in.build(), member.Shard, member.Node).Template.Revision
}

// older says whether a member's ValkeyNode has an older template.
func (in Input) older(member state.Member) bool {
	return member.Record != nil && member.Record.Spec.Template.Revision != in.revision(member)
}

// behindTemplate says whether a member's ValkeyNode or its pod has an older template.
func (in Input) behindTemplate(member state.Member) bool {
	return in.older(member) || replacing(member)
}

// replacing says whether a member's pod is made from another template than its
// ValkeyNode has, as its node says. One that has never said so is asked first, after
// each change.
func replacing(member state.Member) bool {
	if member.Record == nil {
		return false
	}
	if has := member.Record.Status.Revision; has != "" {
		return has != member.Record.Spec.Template.Revision
	}
	return member.Record.Status.ObservedGeneration != member.Record.Generation
}

// rollsOn says whether a member has yet to get the newest template, or to be ready
// with it.
func (in Input) rollsOn(member state.Member) bool {
	return in.behindTemplate(member) || says(member, v1alpha1.ReasonRollingOut)
}

// rollsDue are the members of a shard that are to be replaced.
func (in Input) rollsDue(shard int) []state.Member {
	return in.wantedThat(func(member state.Member) bool {
		return member.Shard == shard && member.Record != nil && !member.Record.Deleting && in.behindTemplate(member)
	})
}

// mostRolled is in how many shards a member may be replaced at a time: in one until
// the first member shows that the new template works. What is down is a replica, so
// that no vote is missing; where there are none, it is a minority of the voters.
func (in Input) mostRolled() int {
	shown := slices.ContainsFunc(in.wanted(), func(member state.Member) bool {
		pod, one := state.LivePod(member.Pods)
		return one && pod.Ready && member.Record != nil && member.Record.Status.Revision != "" && !in.rollsOn(member)
	})
	switch {
	case !shown:
		return 1
	case in.Spec.Replicas == 0:
		return min(mostShardsDown, in.minority())
	default:
		return mostShardsDown
	}
}

// renew gives a member the newest template, if its ValkeyNode is still as observed.
func (in Input) renew(member state.Member) plan.Action {
	fields := build.Node(in.build(), build.NodeSpec(in.build(), member.Shard, member.Node))
	fields.SetResourceVersion(member.Record.Version)
	return plan.EnsureNode{Node: member.Name, Manager: name.FieldManager, Fields: fields}
}

// renewedAtOnce gives the newest template to the members that serve nothing: it may be
// what they are waiting for.
func (in Input) renewedAtOnce() []plan.Action {
	var actions []plan.Action
	silent := map[int]bool{}
	for _, member := range in.recorded() {
		switch {
		case !in.older(member):
		case in.servesNothing(member):
			actions = append(actions, in.renew(member))
		case in.isSilent(member) && !silent[member.Shard]:
			silent[member.Shard] = true
			actions = append(actions, in.renew(member))
		}
	}
	return actions
}

// servesNothing says whether it is known that a member neither serves nor is about
// to: it is stopped, it has no pod, its worker or the scheduler says that its pod does
// not run, or its agent that the server is held.
func (in Input) servesNothing(member state.Member) bool {
	pod, one := state.LivePod(member.Pods)
	_, _, answers := member.Table()
	switch {
	case stopped(member) || noPod(member):
		return true
	case !one || pod.Ready || answers:
		return false
	default:
		return pod.Problem != "" || heldByAgent(member)
	}
}

// isSilent says whether a member is silent and not ready beside the primary of its
// shard. It may be well by the time that its pod is replaced, so that of a shard one
// goes, and none while another is down by our hand.
func (in Input) isSilent(member state.Member) bool {
	pod, one := state.LivePod(member.Pods)
	_, _, answers := member.Table()
	_, served := primaryOf(ofShard(in.voices(), member.Shard))
	return one && !pod.Ready && !answers && served && !in.shardAway(member.Shard)
}

func noPod(member state.Member) bool {
	return !slices.ContainsFunc(member.Pods, func(pod state.Pod) bool { return !pod.Finished() })
}

// lossOnRestart says what a person must allow before members are replaced that have
// neither a volume nor a replica; empty when nothing is lost.
func lossOnRestart(in Input) string {
	if build.StorageEnabled(in.Spec) || in.Spec.Replicas > 0 {
		return ""
	}
	for _, member := range in.recorded() {
		if revision := in.revision(member); in.older(member) && in.State.LossAllowed != revision {
			return fmt.Sprintf("the edit replaces the pods of members that have neither a volume nor a replica, node %s first, and their keys go with them; nothing was done; to allow that for this edit, run kubectl annotate valkeycluster %s -n %s --overwrite %s=%s, or set the spec back",
				member.Name, in.State.Name, in.State.Namespace, name.AnnotationAllowDataLoss, revision)
		}
	}
	return ""
}

// rollNote tells how far a roll is.
func (in Input) rollNote(notes []string) string {
	updated, members := RolledTo(in)
	told := []string{fmt.Sprintf("rolling out the new template: %d of %d members have it", updated, members)}
	for _, member := range in.wantedThat(func(member state.Member) bool { return !stopped(member) && in.away(member) }) {
		told = append(told, fmt.Sprintf("node %s is being replaced", member.Name))
	}
	return strings.Join(bounded(append(told, notes...)), "; ")
}

// RolledTo is how many members have the newest template, of how many.
func RolledTo(in Input) (updated, members int) {
	return len(in.wantedThat(func(member state.Member) bool { return !in.rollsOn(member) })), len(in.wanted())
}

// RollStoppedBy is what stops a roll, in the words of workers and the scheduler;
// empty when no pod says so.
func RollStoppedBy(in Input) string { return strings.Join(bounded(in.whyNotReady()), "; ") }

// whyNotReady says of the pods that are not ready why they are not, in the words of
// their workers and the scheduler.
func (in Input) whyNotReady() []string {
	var notes []string
	for _, member := range in.wanted() {
		pod, one := state.LivePod(member.Pods)
		if one && !pod.Ready && pod.Problem != "" {
			notes = append(notes, fmt.Sprintf("pod %s does not run (%s): mend the spec, or set it back", pod.Name, pod.Problem))
		}
	}
	return notes
}
