package cluster

import (
	"fmt"
	"strings"
	"time"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

const (
	// mostShardsDown bounds in how many shards a member is stopped at a time.
	mostShardsDown = 3
	// failoverTime is how long a server takes for a graceful failover at most,
	// five seconds, and one for us to see it. Elections collide, so no other
	// shard's begins within it.
	failoverTime = 6 * time.Second
	// failoverPause is the time between two tries in one shard: the primary takes
	// no writes during one, and must have time for them.
	failoverPause = 30 * time.Second
)

// stopsNeeded: a member is stopped only while its volume grows by that. It is
// started again when the driver has done its part, when the growth is over for
// any other cause, when the shard needs the member, and when nothing came of it.
func stopsNeeded(in Input) plan.Verdict {
	verdict := plan.Verdict{Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld}
	var notes []string
	for _, member := range in.wanted() {
		inVain, why := stopOver(in, member)
		if why == "" && member.Record != nil && member.Record.StoppedInVain != "" && !StopsMembers(in.Spec) {
			why = "what was tried in vain is forgotten"
		}
		if why == "" {
			continue
		}
		verdict.Actions = append(verdict.Actions, in.setStopped(member, false, inVain))
		notes = append(notes, fmt.Sprintf("node %s is not stopped any more: %s", member.Name, why))
	}
	if len(notes) == 0 {
		return settled()
	}
	verdict.Note = strings.Join(bounded(notes), "; ")
	return verdict
}

// offlineVolumesGrown: no volume waits for its member to be stopped. If the user
// wants that, one member of a shard at a time is stopped, replicas first, and a
// primary only after a replica has taken its place.
func offlineVolumesGrown(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) || !in.formed() {
		return settled()
	}
	waiting, away := in.waitingForStop(), in.awayToGrow()
	switch {
	case len(waiting) == 0 && len(away) == 0:
		return firstRefusals(in)
	case !StopsMembers(in.Spec):
		return manualStops(waiting)
	}
	if failed := in.stoppedInVain(); len(failed) > 0 {
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonExpansionStalled,
			Note: fmt.Sprintf("%s had been stopped for %s and the volume did not grow, so nobody else is stopped; see the events of its claim and the driver's resizer, then set spec.storage.expansion.offlinePolicy to Manual and back to RollingRestart to try again, or set another size",
				strings.Join(bounded(failed), ", "), stopPatience),
		}
	}
	return newStops(in, away)
}

// RuleOfflineVolumesGrown is looked up in a plan by those who tell what it says.
const RuleOfflineVolumesGrown = "offlineVolumesGrown"

// firstRefusals waits until a driver that says that it grows no volume in use can
// be believed.
func firstRefusals(in Input) plan.Verdict {
	for _, member := range in.wanted() {
		if _, refused := refusedInUse(member); refused {
			return plan.Verdict{
				Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld,
				Note: fmt.Sprintf("the driver of claim %s says that it grows no volume in use; it is believed when it has said so for %s", member.Claim.Name, refusedTime),
			}
		}
	}
	return settled()
}

// StopsMembers says whether the user lets members be stopped for their volumes to
// grow.
func StopsMembers(spec v1alpha1.ValkeyClusterSpec) bool {
	return build.StorageEnabled(spec) && spec.Storage.Expansion.OfflinePolicy == v1alpha1.OfflineRollingRestart
}

// manualStops says what a person has to do.
func manualStops(waiting []state.Member) plan.Verdict {
	if len(waiting) == 0 {
		return settled()
	}
	var names []string
	for _, member := range waiting {
		names = append(names, member.Name)
	}
	first := waiting[0]
	return plan.Verdict{
		Hold: plan.Blocked, Reason: v1alpha1.ReasonOfflineExpansionRequired,
		Note: fmt.Sprintf("the volumes of %d members (%s) grow only while no pod uses them; set spec.storage.expansion.offlinePolicy to RollingRestart to have the members stopped one after the other, or stop each yourself, replicas first: scale %s %s to 0 until claim %s has the condition FileSystemResizePending or the new capacity, then back to 1",
			len(names), strings.Join(bounded(names), ", "), first.Record.Spec.Template.WorkloadType, name.Workload(first.Name), first.Claim.Name),
	}
}

// newStops stops members where that is safe now, and says what it waits for
// where it is not.
func newStops(in Input, away []state.Member) plan.Verdict {
	stops := &stops{in: in, free: min(mostShardsDown, max(1, (int(in.Spec.Shards)-1)/2))}
	verdict := plan.Verdict{Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookServer}
	for _, member := range away {
		stops.notes = append(stops.notes, describeAway(member))
	}
	for shard := range int(in.Spec.Shards) {
		if why := unwell(in, shard); why != "" {
			verdict.Hold = plan.Wait
			verdict.Note = strings.Join(bounded(append(stops.notes, "nobody is stopped while "+why)), "; ")
			return verdict
		}
		if in.shardAway(shard) {
			stops.free--
		}
	}
	for shard := range int(in.Spec.Shards) {
		stops.add(shard)
	}
	verdict.Actions, verdict.Note = stops.actions, strings.Join(bounded(stops.notes), "; ")
	if len(verdict.Actions) == 0 {
		verdict.Hold = plan.Wait
	}
	return verdict
}

// stops is what is being put together of a pass's stops.
type stops struct {
	in      Input
	free    int // shards in which a member may still be stopped
	failing bool
	actions []plan.Action
	notes   []string
}

func (s *stops) say(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// add stops a member of a healthy shard whose volume waits for it, or has its
// primary replaced first.
func (s *stops) add(shard int) {
	waiting := s.in.waitingIn(shard)
	switch {
	case len(waiting) == 0 || s.in.shardAway(shard):
		return
	case s.free <= 0:
		s.say("shard %d waits for its turn", shard)
		return
	}
	if member, behind := s.in.behindIn(shard); behind {
		s.say("shard %d waits for claim %s, which is %s", shard, member.Claim.Name, phaseOf(member))
		return
	}
	voices := ofShard(s.in.voices(), shard)
	primary, _ := primaryOf(voices)
	for _, member := range waiting {
		if member.Name != primary.Name || s.in.Spec.Replicas == 0 {
			s.stop(member)
			return
		}
	}
	s.failOver(shard, primary, voices)
}

func (s *stops) stop(member state.Member) {
	s.free--
	s.actions = append(s.actions, s.in.setStopped(member, true, ""))
	s.say("node %s is stopped while its volume grows%s", member.Name, unservedMeanwhile(s.in, member))
}

func unservedMeanwhile(in Input, member state.Member) string {
	if in.Spec.Replicas > 0 {
		return ""
	}
	return fmt.Sprintf("; shard %d has no replica and is not served meanwhile", member.Shard)
}

// failOver asks the replica that has most to take the primary's place. Whether it
// did is read from the servers, never from the answer.
func (s *stops) failOver(shard int, primary voice, voices []voice) {
	s.free--
	now := s.in.State.Now
	if asked, known := s.in.State.FailOvers[shard]; known && now.Sub(asked) < failoverPause {
		s.say("shard %d: node %s is to give its place to a replica before it is stopped; one was asked %s ago and is asked again after %s",
			shard, primary.Name, now.Sub(asked).Round(time.Second), failoverPause)
		return
	}
	if s.failing || failoverUnderWay(s.in) {
		s.say("shard %d waits for another shard's failover", shard)
		return
	}
	var best voice
	for _, v := range voices {
		if v.id != primary.id && (best.id == "" || hasMore(v, best)) {
			best = v
		}
	}
	s.failing = true
	s.actions = append(s.actions, plan.FailOver{Replica: best.server(), Shard: shard})
	s.say("shard %d: node %s takes the place of node %s, which is stopped next", shard, best.Name, primary.Name)
}

// failoverUnderWay says whether a replica was asked so short a while ago that it
// may not be done yet.
func failoverUnderWay(in Input) bool {
	for _, asked := range in.State.FailOvers {
		if in.State.Now.Sub(asked) < failoverTime {
			return true
		}
	}
	return false
}

func (in Input) setStopped(member state.Member, stopped bool, inVain string) plan.Action {
	return plan.EnsureNode{Node: member.Name, Manager: name.FieldManagerStop, Fields: build.NodeStop(in.build(), build.Stop{
		Shard: member.Shard, Node: member.Node, Version: member.Record.Version, Stopped: stopped, At: in.State.Now, InVain: inVain,
	})}
}
