package cluster

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

const (
	// brokenImage cannot be pulled.
	brokenImage = "valkey/valkey:broken"
	// failoverLimit is how long a server tries to do what it was asked.
	failoverLimit = 5 * time.Second
	// mostRollPasses is what a roll may need: for each member of a shard some waits
	// of failoverPause, sixty passes each, and then the longest waits of the servers.
	mostRollPasses = 6*60 + 3*mostPasses
)

// berth is one member's ValkeyNode, and what became of its pod.
type berth struct {
	*seat

	template v1alpha1.NodeTemplate // that of its ValkeyNode
	runs     string                // revision of the template that its pod was made from
	// rolling says that its node says so, replaced that a server which served was
	// ended for it and is not back yet.
	rolling, replaced bool
	seemsReady        bool // what the kubelet said last, which may be over
}

func (b *berth) broken() bool {
	return b.template.Image == brokenImage && b.runs == b.template.Revision
}

// fleet is a cluster in weather whose members get new templates.
type fleet struct {
	*climate
	berths []*berth
	now    time.Time
	asked  map[int]time.Time // what the operator remembers of failovers
	// begun are the failovers that the servers may still be busy with.
	begun  map[int]time.Duration
	calm   bool // nothing happened but edits of the spec
	writes int
}

// Whatever happens during a roll, and whatever is edited amid it: nothing is done
// while something is unknown, never are two members of a shard down by our hand, no
// primary is replaced, no acknowledged write is undone, and in calm weather none is
// even refused; once the weather is fine everybody runs the newest template.
func TestRollsInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := launch(t)
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			f.turn()
			for range rapid.IntRange(0, 40).Draw(t, "passes") {
				f.pass(rapid.IntRange(0, 3).Draw(t, "node controllers rest") == 0)
			}
		}
		f.clear()
		f.edit("valkey/valkey:9.1.2-final")
		f.mustEnd()
		if lost := f.servers.Lost(); len(lost) != 0 {
			t.Errorf("lost %v", lost)
		}
	})
}

func launch(t *rapid.T) *fleet {
	spec := persistent(rapid.Int32Range(1, 5).Draw(t, "shards"), rapid.Int32Range(0, 2).Draw(t, "replicas"))
	b := formedBench(spec, rapid.Uint64().Draw(t, "seed"))
	f := &fleet{
		climate: &climate{bench: b, t: t, emptied: map[int]bool{}},
		now:     noon, asked: map[int]time.Time{}, begun: map[int]time.Duration{}, calm: true,
	}
	in := b.input()
	for _, s := range b.seats {
		template := build.NodeSpec(in.build(), s.shard, s.index).Template
		f.berths = append(f.berths, &berth{seat: s, template: template, runs: template.Revision, seemsReady: true})
	}
	b.edits = append(b.edits, f.see)
	f.edit("valkey/valkey:9.1.3")
	return f
}

func (f *fleet) edit(image string) { f.spec.Image = image }

// edits are what a person may do amid a roll, and whims what may happen to a member.
var (
	edits = map[string]func(*fleet){
		"image 9.1.2":  func(f *fleet) { f.edit("valkey/valkey:9.1.2") },
		"image 9.1.3":  func(f *fleet) { f.edit("valkey/valkey:9.1.3") },
		"image 9.1.4":  func(f *fleet) { f.edit("valkey/valkey:9.1.4") },
		"broken image": func(f *fleet) { f.edit(brokenImage) },
		// The operator is killed, with what it remembers.
		"amnesia": func(f *fleet) { f.asked, f.begun = map[int]time.Time{}, map[int]time.Duration{} },
	}
	whims = map[string]func(*fleet, *berth){
		"silent": func(f *fleet, b *berth) {
			if f.dispensable(b) {
				b.server.Silence(true)
			}
		},
		"down": func(f *fleet, b *berth) {
			if f.dispensable(b) {
				f.end(b.seat)
			}
		},
		"heard":     func(_ *fleet, b *berth) { b.server.Silence(false) },
		"mute":      func(_ *fleet, b *berth) { b.mute = true },
		"told":      func(_ *fleet, b *berth) { b.mute = false },
		"lagging":   func(_ *fleet, b *berth) { b.server.Lag(true) },
		"well":      func(_ *fleet, b *berth) { b.server.Lag(false) },
		"sync 8 s":  func(_ *fleet, b *berth) { b.server.SlowSync(8 * time.Second) },
		"sync 30 s": func(_ *fleet, b *berth) { b.server.SlowSync(30 * time.Second) },
	}
)

// turn has somebody edit the spec, or something happen to a server or to the operator.
func (f *fleet) turn() {
	if rapid.IntRange(0, 2).Draw(f.t, "whim") == 0 {
		edits[rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(f.t, "edit")](f)
		return
	}
	f.calm = false
	at := rapid.IntRange(0, len(f.berths)-1).Draw(f.t, "member")
	whims[rapid.SampledFrom(slices.Sorted(maps.Keys(whims))).Draw(f.t, "whim")](f, f.berths[at])
}

// dispensable says whether the weather may take a server: a primary whose replicas
// do not have all that it has takes acknowledged writes with it, whatever we do.
func (f *fleet) dispensable(b *berth) bool {
	mine := b.server.View().Info
	if mine.Role == valkey.RoleReplica {
		return true
	}
	for _, other := range f.berths {
		view := other.server.View()
		if other == b || other.shard != b.shard || !other.server.Running() {
			continue
		}
		if !f.look(other.seat).Known || view.Info.Replication.ID != mine.Replication.ID || view.Info.Replication.Offset != mine.Replication.Offset {
			return false
		}
	}
	return true
}

func (f *fleet) clear() {
	for _, b := range f.berths {
		b.server.Silence(false)
		b.server.Lag(false)
		b.server.SlowSync(0)
		b.mute = false
	}
}

// see shows the nodes and pods as they are.
func (f *fleet) see(in *Input) {
	in.State.Now, in.State.FailOvers = f.now, f.asked
	for i, b := range f.berths {
		member := &in.State.Members[i]
		member.Record.Spec.Template, member.Record.Status.Revision = b.template, b.runs
		if b.broken() {
			member.Pods = []state.Pod{{Name: member.Name, UID: b.runs, Phase: corev1.PodPending, Problem: "ImagePullBackOff"}}
		}
		for j := range member.Pods {
			member.Pods[j].Ready = b.seemsReady && !b.broken()
		}
		if b.rolling {
			told(member, v1alpha1.ConditionWorkloadReady, v1alpha1.ReasonRollingOut, 0)
		}
	}
}

// ready is what the kubelet hears from the agent, also of one that is mute to us.
func (f *fleet) ready(b *berth) bool {
	view := f.look(b.seat)
	link := view.Value.Info.Replication.Primary
	return !b.podless && view.Known && (link == nil || link.Up && !link.SyncInProgress)
}

// pass has a client write, the operator look once and act, and the world go on.
func (f *fleet) pass(nodesRest bool) plan.Plan {
	f.writeOne()
	in := f.input()
	made := Make(in)
	if again := Make(in); !reflect.DeepEqual(made, again) {
		f.t.Errorf("the same input gave two plans:\n%v\n%v", made, again)
	}
	before := f.ownedAnywhere()
	for _, action := range made.Actions() {
		f.perform(in, action)
	}
	if !nodesRest {
		f.nodes()
	}
	f.endFailovers()
	if gone := before.Minus(f.ownedAnywhere()); !gone.IsEmpty() {
		f.t.Errorf("nobody's table has an owner for slots %s any more", gone)
	}
	f.servers.Step()
	f.now = f.now.Add(valkeytest.StepTime)
	if rapid.IntRange(0, 2).Draw(f.t, "kubelets look") > 0 {
		for _, b := range f.berths {
			b.seemsReady = f.ready(b)
		}
	}
	f.checkWorld()
	return made
}

// writeOne writes a key, of another slot each time. In calm weather somebody takes it.
func (f *fleet) writeOne() {
	f.writes++
	err := f.servers.Write(fmt.Sprintf("key-%d", f.writes%50), fmt.Sprint(f.writes))
	if err != nil && f.calm && f.spec.Replicas > 0 {
		f.t.Errorf("nothing is wrong, and a client hears: %v", err)
	}
}

func (f *fleet) perform(in Input, action plan.Action) {
	switch act := action.(type) {
	case plan.EnsureNode:
		f.renew(in, act)
	case plan.FailOver:
		f.failOver(in, act)
	default:
		f.check(in, action)
		hands := apply.Applier{Dial: f.servers.Dial}
		hands.Run(context.Background(), plan.Plan{{Verdict: plan.Verdict{Actions: []plan.Action{action}}}}) // what fails is tried again
	}
}

// renew gives a ValkeyNode the newest template, and compares that with the truth: one
// that runs must be dispensable, and everybody heard.
func (f *fleet) renew(in Input, act plan.EnsureNode) {
	var renewed *berth
	for i, b := range f.berths {
		if in.State.Members[i].Name == act.Node {
			renewed = b
		}
	}
	myself, _ := renewed.server.View().Myself()
	serves := f.ready(renewed)
	if serves && f.spec.Replicas > 0 && !myself.Slots.IsEmpty() {
		f.t.Errorf("%s: it owns slots %s", act, myself.Slots)
	}
	for _, other := range f.berths {
		if other == renewed || other.shard != renewed.shard || !serves {
			continue
		}
		if !f.ready(other) || other.runs != other.template.Revision {
			f.t.Errorf("%s: beside it node %d-%d does not serve, or is about to go", act, other.shard, other.index)
		}
	}
	renewed.template = build.NodeSpec(in.build(), renewed.shard, renewed.index).Template
}

// failOver asks a replica, and compares that with the truth: it is linked to a
// primary that serves, and no other shard is busy with the same.
func (f *fleet) failOver(in Input, act plan.FailOver) {
	f.asked[act.Shard] = in.State.Now
	for shard, at := range f.begun {
		if shard != act.Shard && f.servers.Now()-at < failoverLimit {
			f.t.Errorf("%s: shard %d began the same %v ago", act, shard, f.servers.Now()-at)
		}
	}
	for _, b := range f.berths {
		if b.shard == act.Shard && !f.ready(b) {
			f.t.Errorf("%s: node %d-%d of that shard is not well", act, b.shard, b.index)
		}
	}
	f.begun[act.Shard] = f.servers.Now()
	server, err := f.servers.Dial(f.context(), valkey.Target{Address: act.Replica.Address})
	if err == nil {
		_ = server.Failover(f.context(), valkey.Graceful) // what it came to is read from the roles
		server.Close()
	}
}

// nodes does what the node controllers, the workloads and the kubelets do.
func (f *fleet) nodes() {
	for _, b := range f.berths {
		switch {
		case b.template.Revision != b.runs && f.mayEnd(b):
			b.replaced = b.replaced || f.ready(b)
			b.server.Stop()
			b.podless, b.rolling, b.runs = true, true, b.template.Revision
		case b.podless && !b.broken():
			f.begin(b.seat, valkeytest.Kept)
		case b.rolling && f.ready(b):
			b.rolling, b.replaced = false, false
		}
	}
}

// endFailovers forgets the failovers that are seen to be over.
func (f *fleet) endFailovers() {
	for shard := range f.begun {
		if primary := f.primaryTruly(shard); primary != nil && primary.runs == primary.template.Revision && f.ready(primary) {
			delete(f.begun, shard)
		}
	}
}

// mayEnd says whether a node's controller would end its pod.
func (f *fleet) mayEnd(b *berth) bool {
	if !b.server.Running() {
		return true
	}
	myself, _ := b.server.View().Myself()
	return !b.mute && (f.spec.Replicas == 0 || myself.Slots.IsEmpty())
}

func (f *fleet) primaryTruly(shard int) *berth {
	for _, b := range f.berths {
		myself, _ := b.server.View().Myself()
		if b.shard == shard && b.server.Running() && !myself.Slots.IsEmpty() {
			return b
		}
	}
	return nil
}

// checkWorld looks at what the operator brought about.
func (f *fleet) checkWorld() {
	down, broken, unserved := map[int]int{}, 0, 0
	for _, b := range f.berths {
		if !b.replaced {
			continue
		}
		down[b.shard]++
		if down[b.shard] > 1 {
			f.t.Errorf("two members of shard %d are down by our hand", b.shard)
		}
		if b.broken() {
			broken++
		}
		if f.spec.Replicas == 0 {
			unserved++
		}
	}
	if broken > 1 {
		f.t.Errorf("%d members that served were given an image that none can run", broken)
	}
	if unserved > 1 && 2*unserved >= int(f.spec.Shards) {
		f.t.Errorf("%d voters of %d are down by our hand", unserved, f.spec.Shards)
	}
	for _, undoing := range f.servers.Undone() {
		f.t.Errorf("%s", undoing)
	}
}

// mustEnd lets passes go on until everybody runs the newest template.
func (f *fleet) mustEnd() {
	var made plan.Plan
	for range mostRollPasses {
		if made = f.pass(false); made.Settled() && f.rolled() && f.served() {
			return
		}
	}
	for _, step := range made {
		if step.Hold != plan.Settled || len(step.Actions) > 0 {
			f.t.Logf("%s/%s: %v: %s", step.Track, step.Rule, f.tell(step.Verdict), step.Note)
		}
	}
	for _, b := range f.berths {
		f.t.Logf("%d-%d asked %s runs %s rolling %t podless %t ready %t\n%v", b.shard, b.index, b.template.Revision, b.runs, b.rolling, b.podless, f.ready(b), b.server.View().Table)
	}
	f.t.Fatalf("it does not end")
}

func (f *fleet) rolled() bool {
	for _, b := range f.berths {
		if b.rolling || b.template.Image != f.spec.Image || b.runs != b.template.Revision {
			return false
		}
	}
	return true
}
