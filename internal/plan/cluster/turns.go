package cluster

import (
	"fmt"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

const (
	// mostShardsDown bounds in how many shards a member is down by our hand at a time.
	mostShardsDown = 3
	// failoverTime is how long a server takes for a graceful failover at most,
	// five seconds, and one for us to see it. Elections collide, so no other
	// shard's begins within it, unless this one is seen to be over.
	failoverTime = 6 * time.Second
	// failoverPause is the time between two tries in one shard: the primary takes
	// no writes during one, and must have time for them.
	failoverPause = 30 * time.Second
)

// deed is what is done, and waited for, for one cause.
type deed struct {
	actions []plan.Action
	notes   []string
}

func (d *deed) say(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

func (d *deed) do(action plan.Action) { d.actions = append(d.actions, action) }

// rounds are who goes next by our hand: stopped for a volume to grow, or replaced by a
// pod of the newest template. Both causes share them, so that they never take two
// members of a shard, nor two failovers where one will do.
type rounds struct {
	in           Input
	stops, rolls deed
	unwell       string // why nobody goes
	down         int    // shards in which a member is down by our hand
	mostRolled   int    // of those, how many there may be for a replacement to begin
	failing      bool   // a failover was begun
}

// takeTurns takes one member of each shard that is well, replicas first and a primary
// after a replica took its place, as long as not too many are down. Nobody goes
// while anything is wrong that is not our doing.
func (in Input) takeTurns() *rounds {
	taken := &rounds{in: in, mostRolled: in.mostRolled()}
	for shard := range int(in.Spec.Shards) {
		if why := unwell(in, shard); why != "" {
			taken.unwell = why
			return taken
		}
		if in.shardAway(shard) {
			taken.down++
		}
	}
	for shard := range int(in.Spec.Shards) {
		taken.add(shard)
	}
	return taken
}

// add takes the next member of a shard.
func (t *rounds) add(shard int) {
	if t.in.shardAway(shard) {
		return
	}
	stops, rolls := t.stopsDue(shard), t.in.rollsDue(shard)
	voices := ofShard(t.in.voices(), shard)
	primary, _ := primaryOf(voices)
	// A primary that has been given the newest template goes first: its pod may be
	// replaced at any moment, and its shard must not lack another one then.
	mayGo := func(member state.Member) bool {
		return t.in.Spec.Replicas == 0 || member.Name != primary.Name && !replacing(primary.Member)
	}
	switch {
	case len(stops)+len(rolls) == 0:
	case first(stops, mayGo) != nil:
		t.stop(*first(stops, mayGo))
	case first(rolls, mayGo) != nil:
		t.roll(*first(rolls, mayGo))
	case len(stops) > 0 && t.down >= t.mostStopped():
		t.stops.say("shard %d waits for its turn", shard)
	case len(stops) > 0:
		t.failOver(&t.stops, shard, primary, voices)
	case t.down >= t.mostRolled:
		t.rolls.say("shard %d waits for its turn", shard)
	default:
		t.failOver(&t.rolls, shard, primary, voices)
	}
}

func first(members []state.Member, fits func(state.Member) bool) *state.Member {
	for i := range members {
		if fits(members[i]) {
			return &members[i]
		}
	}
	return nil
}

// stopsDue are the members of a shard that are to be stopped for their volumes.
func (t *rounds) stopsDue(shard int) []state.Member {
	if !StopsMembers(t.in.Spec) || len(t.in.stoppedInVain()) > 0 {
		return nil
	}
	due := t.in.waitingIn(shard)
	if member, behind := t.in.behindIn(shard); behind && len(due) > 0 {
		t.stops.say("shard %d waits for claim %s, which is %s", shard, member.Claim.Name, phaseOf(member))
		return nil
	}
	return due
}

// minority is of how many shards members that serve may be down: fewer than half of
// the voters, but one where there are but one or two.
func (in Input) minority() int { return max(1, (int(in.Spec.Shards)-1)/2) }

func (t *rounds) mostStopped() int { return min(mostShardsDown, t.in.minority()) }

func (t *rounds) stop(member state.Member) {
	if t.down >= t.mostStopped() {
		t.stops.say("shard %d waits for its turn", member.Shard)
		return
	}
	t.down++
	t.stops.do(t.in.setStopped(member, true, ""))
	t.stops.say("node %s is stopped while its volume grows%s", member.Name, unservedMeanwhile(t.in, member))
}

func (t *rounds) roll(member state.Member) {
	if t.down >= t.mostRolled {
		t.rolls.say("shard %d waits for its turn", member.Shard)
		return
	}
	t.down++
	t.rolls.do(t.in.renew(member))
	t.rolls.say("node %s is being replaced%s", member.Name, unservedMeanwhile(t.in, member))
}

func unservedMeanwhile(in Input, member state.Member) string {
	if in.Spec.Replicas > 0 {
		return ""
	}
	return fmt.Sprintf("; shard %d has no replica and is not served meanwhile", member.Shard)
}

// failOver asks the replica that has most to take the primary's place. Whether it
// did is read from the servers, never from the answer.
func (t *rounds) failOver(cause *deed, shard int, primary voice, voices []voice) {
	now := t.in.State.Now
	if asked, known := t.in.State.FailOvers[shard]; known && now.Sub(asked) < failoverPause {
		t.down++
		cause.say("shard %d: node %s is to give its place to a replica before it goes; one was asked %s ago and is asked again after %s",
			shard, primary.Name, now.Sub(asked).Round(time.Second), failoverPause)
		return
	}
	if t.failing || t.in.failoverUnderWay() {
		cause.say("shard %d waits for another shard's failover", shard)
		return
	}
	best, found := heir(primary, voices)
	if !found {
		cause.say("shard %d: node %s has no replica that could take its place", shard, primary.Name)
		return
	}
	t.down++
	t.failing = true
	cause.do(plan.FailOver{Replica: best.server(), Shard: shard})
	cause.say("shard %d: node %s takes the place of node %s, which goes next", shard, best.Name, primary.Name)
}

// heir is the replica that has most, of those that are not about to end.
func heir(primary voice, voices []voice) (best voice, found bool) {
	for _, v := range voices {
		mayStay := v.Agent.Value.Server != protocol.ServerStopping
		if v.id != primary.id && mayStay && (!found || hasMore(v, best)) {
			best, found = v, true
		}
	}
	return best, found
}

// failoverUnderWay says whether a replica was asked so short a while ago that it
// may not be done yet. It is done when the shard, which is well, has a primary that
// need not go.
func (in Input) failoverUnderWay() bool {
	for shard, asked := range in.State.FailOvers {
		if in.State.Now.Sub(asked) >= failoverTime {
			continue
		}
		primary, found := primaryOf(ofShard(in.voices(), shard))
		if !found || in.behindTemplate(primary.Member) || waitsForStop(in, primary.Member) {
			return true
		}
	}
	return false
}
