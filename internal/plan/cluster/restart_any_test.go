package cluster

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// agentsPatience is how many passes a primary's agent waits for the others' word.
const agentsPatience = 40

// outage is a cluster whose members all stop, and come back, under a writer.
type outage struct {
	*climate
	written int
}

// After everything stopped, in any order and with any age of data, the newest serves:
// whoever comes back first, no acknowledged write is undone, nor is one that a
// client gets in meanwhile.
func TestTheNewestDataServesAfterEverythingStopped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := persistent(rapid.Int32Range(1, 4).Draw(t, "shards"), rapid.Int32Range(1, 2).Draw(t, "replicas"))
		b := formedBench(spec, rapid.Uint64().Draw(t, "seed"))
		o := &outage{climate: &climate{bench: b, t: t, emptied: map[int]bool{}}}
		for _, s := range o.shuffled("stops") {
			o.stop(s)
		}
		for _, s := range o.shuffled("starts") {
			o.start(s)
		}
		o.settle()
		o.writeOne()
		for _, undoing := range b.servers.Undone() {
			t.Errorf("%s", undoing)
		}
		if lost := b.servers.Lost(); len(lost) != 0 {
			t.Errorf("lost %v", lost)
		}
	})
}

// writeOne writes a key. Where nobody serves its slot, nothing is promised.
func (o *outage) writeOne() {
	o.written++
	_ = o.servers.Write(fmt.Sprintf("key-%d", o.written%50), fmt.Sprint(o.written))
}

// stop ends a member after a while, in which others may have elected a primary.
func (o *outage) stop(s *seat) {
	for range rapid.IntRange(0, 30).Draw(o.t, "passes before") {
		o.writeOne()
		o.servers.Step()
	}
	if rapid.Bool().Draw(o.t, "killed") {
		s.server.Kill()
	}
	s.server.Stop()
	s.podless = true
}

// start brings a member's agent back, which decides about its server, and lets the
// operator work for a while.
func (o *outage) start(s *seat) {
	o.begin(s, valkeytest.Kept)
	s.patience = agentsPatience
	o.guarded(s)
	for range rapid.IntRange(0, agentsPatience/len(o.seats)).Draw(o.t, "passes after") {
		o.writeOne()
		o.pass()
	}
}

// shuffled draws the members in any order.
func (o *outage) shuffled(label string) []*seat {
	var places []int
	for i := range o.seats {
		places = append(places, i)
	}
	var order []*seat
	for _, i := range rapid.Permutation(places).Draw(o.t, label) {
		order = append(order, o.seats[i])
	}
	return order
}
