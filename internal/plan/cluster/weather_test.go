package cluster

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// mostPasses is how many passes, half a second apart, a cluster may need once
// the weather is fine again. Waits of the servers themselves (two node timeouts
// until a failed primary is believed, a minute's ban of forgotten ids) are the
// longest.
const mostPasses = 400

// climate is a bench in weather, with the operator at work in it.
type climate struct {
	*bench
	t         *rapid.T
	addresses int
	// emptied are the shards of which a member has lost its data.
	emptied map[int]bool
}

// Whatever happens to servers, in any shape of cluster: the operator brings it
// back in bounded time once the weather is fine, does nothing that it must not
// on the way, and what was acknowledged and on a surviving volume is there.
func TestWeather(t *testing.T) {
	t.Parallel()
	for what, withStorage := range map[string]bool{"persistent": true, "ephemeral": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { weather(t, withStorage) })
		})
	}
}

func weather(t *rapid.T, withStorage bool) {
	shards, replicas := rapid.Int32Range(1, 4).Draw(t, "shards"), rapid.Int32Range(0, 2).Draw(t, "replicas")
	spec := ephemeral(shards, replicas)
	if withStorage {
		spec = persistent(shards, replicas)
	}
	c := &climate{bench: freshBench(spec, rapid.Uint64().Draw(t, "seed")), t: t, emptied: map[int]bool{}}
	c.settle()
	c.write(50)
	c.advance(2)
	for range rapid.IntRange(1, 5).Draw(t, "turns") {
		c.turn(withStorage)
		for range rapid.IntRange(0, 30).Draw(t, "passes") {
			c.pass()
		}
	}
	c.clear()
	c.settle()
	if lost := c.servers.Lost(); withStorage && len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
	for _, undoing := range c.servers.Undone() {
		if withStorage {
			t.Errorf("%s", undoing)
		}
	}
}

// turns are what may happen to one member.
var turns = map[string]func(*climate, *seat){
	"silent":   func(_ *climate, s *seat) { s.server.Silence(true) },
	"heard":    func(_ *climate, s *seat) { s.server.Silence(false) },
	"mute":     func(_ *climate, s *seat) { s.mute = true },
	"told":     func(_ *climate, s *seat) { s.mute = false },
	"down":     (*climate).end,
	"up":       func(c *climate, s *seat) { c.begin(s, valkeytest.Kept) },
	"moved":    func(c *climate, s *seat) { c.end(s); c.begin(s, valkeytest.Kept) },
	"replaced": func(c *climate, s *seat) { c.end(s); c.begin(s, valkeytest.Blank) },
	"emptied": func(c *climate, s *seat) {
		if c.emptied[s.shard] || !c.settledShard(s.shard) {
			return // nobody else may have the data
		}
		c.emptied[s.shard] = true
		c.end(s)
		c.begin(s, valkeytest.Emptied)
	},
}

// turn has something happen to one member.
func (c *climate) turn(withStorage bool) {
	s := rapid.SampledFrom(c.seats).Draw(c.t, "member")
	kinds := []string{"silent", "heard", "mute", "told", "down", "up", "moved"}
	if withStorage && c.spec.Replicas > 0 {
		kinds = append(kinds, "emptied")
	}
	if !withStorage {
		kinds = append(kinds, "replaced", "replaced")
	}
	turns[rapid.SampledFrom(kinds).Draw(c.t, "turn")](c, s)
}

func (b *bench) settledShard(shard int) bool { return ShardInSync(b.input(), shard) }

// end ends a member's pod. An ephemeral one's data goes with it.
func (c *climate) end(s *seat) {
	s.server.Kill()
	s.podless, s.agent, s.mute = true, "", false
}

// begin starts a member's pod at a new address, if it has none.
func (c *climate) begin(s *seat, data valkeytest.Data) {
	if !s.podless {
		return
	}
	if c.spec.Storage == nil {
		data = valkeytest.Blank
	}
	c.addresses++
	s.server.Start(valkeytest.Start{Address: fmt.Sprintf("10.1.%d.%d:6379", c.addresses/250, c.addresses%250+1), Data: data})
	s.podless, s.empty = false, ""
	if data == valkeytest.Emptied {
		s.empty = protocol.Yes
		c.guarded(s)
	}
}

// guarded has a member's agent look before its server starts.
func (c *climate) guarded(s *seat) {
	s.server.Kill()
	c.release(s)
}

// release has a held member's agent decide again.
func (c *climate) release(s *seat) {
	view := s.server.View()
	myself, _ := view.Myself()
	member := guard.Member{Node: s.index, ID: string(myself.ID), Known: true, Role: protocol.RolePrimary, OwnsSlots: !myself.Slots.IsEmpty(), Epoch: myself.ConfigEpoch, Empty: s.empty}
	if myself.Flags.Replica {
		member.Role = protocol.RoleReplica
	}
	s.patience--
	shard := guard.Shard{NodesKnown: true, Patient: s.patience > 0}
	for _, peer := range c.seats {
		if peer.shard != s.shard {
			if !peer.podless {
				shard.Elsewhere = append(shard.Elsewhere, peer.facts().NodeID)
			}
			continue
		}
		shard.Nodes = append(shard.Nodes, peer.index)
		if !peer.podless {
			facts := peer.facts()
			if facts.Empty == "" {
				facts.Empty = protocol.No
			}
			shard.Answers = append(shard.Answers, facts)
		}
	}
	switch decision := guard.Decide(member, shard).Decision; decision {
	case protocol.DecisionStart, protocol.DecisionStartReplaced:
		s.server.Start(valkeytest.Start{Closed: decision == protocol.DecisionStartReplaced})
		s.agent = ""
	case protocol.DecisionUndecided:
		s.agent = protocol.ServerStarting
	default:
		s.agent = protocol.ServerHeld
	}
}

// clear ends all bad weather: everybody runs, and is heard.
func (c *climate) clear() {
	for _, s := range c.seats {
		c.begin(s, valkeytest.Kept)
		s.server.Silence(false)
		s.mute = false
	}
}

func (c *climate) settle() {
	var made plan.Plan
	for range mostPasses {
		if made = c.pass(); made.Settled() && c.served() {
			c.formed = true
			return
		}
	}
	for _, step := range made {
		if step.Hold != plan.Settled || len(step.Actions) > 0 {
			c.t.Logf("%s/%s: %v: %s", step.Track, step.Rule, c.tell(step.Verdict), step.Note)
		}
	}
	for _, s := range c.seats {
		c.t.Logf("%d-%d %s agent %q podless %t\n%v", s.shard, s.index, s.server.Address(), s.agent, s.podless, s.server.View().Table)
	}
	c.t.Fatalf("not settled after %d passes", mostPasses)
}

// served says whether every member says that the cluster serves.
func (c *climate) served() bool {
	return !slices.ContainsFunc(c.seats, func(s *seat) bool { return !s.server.View().Cluster.StateOK })
}

// pass observes, plans, checks the plan against the truth, and acts; then half
// a second passes.
func (c *climate) pass() plan.Plan {
	in := c.input()
	made := Make(in)
	if again := Make(in); !reflect.DeepEqual(made, again) {
		c.t.Errorf("the same input gave two plans:\n%v\n%v", made, again)
	}
	for _, action := range made.Actions() {
		c.check(in, action)
	}
	before := c.ownedAnywhere()
	hands := apply.Applier{Dial: c.servers.Dial}
	hands.Run(context.Background(), made) // what fails is tried again
	if gone := before.Minus(c.ownedAnywhere()); build.StorageEnabled(c.spec) && !gone.IsEmpty() {
		c.t.Errorf("the operator made everybody forget who owns slots %s", gone)
	}
	for _, s := range c.seats {
		if s.agent == protocol.ServerHeld || s.agent == protocol.ServerStarting {
			c.release(s)
		}
	}
	c.servers.Step()
	return made
}

// ownedAnywhere are the slots that anybody's table, or volume, has an owner for.
func (c *climate) ownedAnywhere() valkey.Slots {
	owned := valkey.Slots{}
	for _, s := range c.seats {
		owned = owned.Union(s.server.View().Table.Owned())
	}
	return owned
}

// check compares an action with the truth, which the operator cannot see.
func (c *climate) check(in Input, action plan.Action) {
	heard := map[string]bool{}
	for _, v := range in.voices() {
		heard[v.Name] = true
	}
	addressed := func(to plan.Server) {
		if !heard[to.Node] {
			c.t.Errorf("%s: that member's state is unknown", action)
		}
	}
	switch act := action.(type) {
	case plan.MeetNode:
		addressed(act.Via)
		addressed(plan.Server{Node: act.Node})
	case plan.AssignSlots:
		addressed(act.To)
	case plan.AttachReplica:
		addressed(act.Replica)
	case plan.ForgetNode:
		addressed(act.From)
		for _, s := range c.seats {
			if s.server.ID() == act.ID {
				c.t.Errorf("%s: that is member %d-%d", action, s.shard, s.index)
			}
		}
	case plan.TakeOver:
		addressed(act.Replica)
		c.checkTakeOver(in, act)
	default:
		c.t.Errorf("unexpected: %s", action)
	}
}

// checkTakeOver: no primary of the shard runs, whether heard or not, and the
// other primaries that do are too few to vote, unless the replica's server would
// not stand, having been without its primary for too long or since its start.
func (c *climate) checkTakeOver(in Input, act plan.TakeOver) {
	voters := map[int]bool{}
	for _, s := range c.seats {
		myself, _ := s.server.View().Myself()
		if !s.server.Running() || !myself.Flags.Primary || myself.Slots.IsEmpty() {
			continue
		}
		if s.shard == act.Shard {
			c.t.Errorf("%s: its primary %d-%d runs", act, s.shard, s.index)
		}
		voters[s.shard] = true
	}
	stands := slices.ContainsFunc(in.voices(), func(v voice) bool {
		link := v.Server.Value.Info.Replication.Primary
		return v.Name == act.Replica.Node && link.DownSeconds >= 0 && link.DownSeconds < electionPatience
	})
	if len(voters) > int(c.spec.Shards)/2 && stands && c.allHeard() {
		c.t.Errorf("%s: %d of %d voters could elect", act, len(voters), c.spec.Shards)
	}
}

// allHeard says whether every running server answers: one that does not cannot vote.
func (c *climate) allHeard() bool {
	return !slices.ContainsFunc(c.seats, func(s *seat) bool {
		_, err := c.servers.Dial(c.context(), valkey.Target{Address: s.server.Address()})
		return s.server.Running() && err != nil
	})
}
