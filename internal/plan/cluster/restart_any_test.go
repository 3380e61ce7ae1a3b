package cluster

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// agentsPatience is how many passes a primary's agent waits for the others' word.
const agentsPatience = 40

// After everything stopped, in any order and with any age of data, the newest serves:
// whoever comes back first, no acknowledged write is undone, nor is one that a
// client gets in meanwhile.
func TestTheNewestDataServesAfterEverythingStopped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := persistent(rapid.Int32Range(1, 4).Draw(t, "shards"), rapid.Int32Range(1, 2).Draw(t, "replicas"))
		b := formedBench(spec, rapid.Uint64().Draw(t, "seed"))
		c := &climate{bench: b, t: t, emptied: map[int]bool{}}
		written := 0
		write := func() {
			written++
			_ = b.servers.Write(fmt.Sprintf("key-%d", written%50), fmt.Sprint(written)) // where nobody serves, nothing is promised
		}
		for _, s := range shuffled(t, c.seats, "stops") {
			for range rapid.IntRange(0, 30).Draw(t, "passes before") {
				write()
				b.servers.Step()
			}
			if rapid.Bool().Draw(t, "killed") {
				s.server.Kill()
			}
			s.server.Stop()
			s.podless = true
		}
		for _, s := range shuffled(t, c.seats, "starts") {
			c.begin(s, valkeytest.Kept)
			s.patience = agentsPatience
			c.guarded(s)
			for range rapid.IntRange(0, agentsPatience/len(c.seats)).Draw(t, "passes after") {
				write()
				c.pass()
			}
		}
		c.settle()
		write()
		for _, undoing := range b.servers.Undone() {
			t.Errorf("%s", undoing)
		}
		if lost := b.servers.Lost(); len(lost) != 0 {
			t.Errorf("lost %v", lost)
		}
	})
}

// shuffled draws an order without the addresses that a Permutation would print.
func shuffled(t *rapid.T, seats []*seat, label string) []*seat {
	places := make([]int, len(seats))
	for i := range places {
		places[i] = i
	}
	var order []*seat
	for _, i := range rapid.Permutation(places).Draw(t, label) {
		order = append(order, seats[i])
	}
	return order
}
