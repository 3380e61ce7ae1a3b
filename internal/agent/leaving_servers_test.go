//go:build servers

package agent_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// plannedStops is how many primaries are stopped under writers.
const plannedStops = 6

// A primary that is stopped hands its slots over first: no client meets an error,
// and no acknowledged write is undone.
func TestAStoppedPrimaryHandsOver(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		l := f.writeAll(t, patience)
		for round := range plannedStops {
			primary := f.primary(t, 0)
			if code := primary.stop(t); code != 0 {
				t.Fatalf("round %d: exit code %d, want 0", round, code)
			}
			primary.start(t)
			f.allReady(t)
			facts := primary.facts()
			if facts.Role != protocol.RoleReplica || facts.LastStop == nil || !strings.Contains(facts.LastStop.Note, "handed over to node") {
				t.Fatalf("round %d: the slots were not handed over: role %s, %+v", round, facts.Role, facts.LastStop)
			}
		}
		l.stop()
		if len(l.errors) > 0 {
			t.Errorf("%d errors of clients, the first is: %v", len(l.errors), l.errors[0])
		}
		l.nothingUndone(t)
		t.Logf("%d planned stops: longest stall %s", plannedStops, l.stall)
	})
}

// Names lag behind pods: a replica that is back at a new address is found all the same.
func TestAPrimaryHandsOverToAReplicaThatNoNameLeadsTo(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		nameless := f.primary(t, 0)
		config := nameless.config()
		config.Peers = nil
		nameless.stop(t)
		nameless.startAs(t, config)
		f.allReady(t)
		other := f.primary(t, 0)
		other.stop(t)
		other.start(t)
		f.allReady(t)
		nameless.stop(t) // a primary again
		nameless.start(t)
		f.allReady(t)
		if facts := nameless.facts(); facts.LastStop == nil || !strings.Contains(facts.LastStop.Note, "handed over to node") {
			t.Fatalf("the slots were not handed over: %+v", facts.LastStop)
		}
	})
}

// A primary that was failed over a moment before it is stopped lets clients learn
// of that first: those that are sent on meet no error, those that are cut off do.
func TestAFormerPrimarySendsItsClientsOnBeforeItStops(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		l := f.writeAll(t, patience)
		for range plannedStops {
			primary := f.primary(t, 0)
			replica := f.node(0, 1-primary.node)
			replica.operate(t, func(c *valkey.Conn) error { return c.Failover(t.Context(), valkey.Graceful) })
			until(t, "the former primary is a replica", func() bool {
				info, err := primary.ask("INFO", "replication")
				return err == nil && strings.Contains(info, "role:slave") // the wire's word
			})
			if code := primary.stop(t); code != 0 {
				t.Fatalf("exit code %d, want 0", code)
			}
			primary.start(t)
			f.allReady(t)
		}
		l.stop()
		if len(l.errors) > 0 {
			t.Errorf("%d errors of clients, the first is: %v", len(l.errors), l.errors[0])
		}
		l.nothingUndone(t)
	})
}

// stopRounds is how often a whole cluster is stopped and started again: 1, or STOPS.
func stopRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STOPS")
	if text == "" {
		return 1
	}
	rounds, err := strconv.Atoi(text)
	must(t, err)
	return rounds
}

// All members are told to stop within a second, under writers, and come back in
// any order: no acknowledged write is undone, whether it was acknowledged before
// the stop, during it, or by whoever came back first.
func TestAfterAllStoppedTheNewestDataServes(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		for name, nodes := range map[string][]int{"three shards": {2, 2, 2}, "one shard": {2}, "three copies": {3}} {
			for _, timeout := range []string{"2000", "15000"} {
				t.Run(name+" "+timeout, func(t *testing.T) {
					t.Parallel()
					seed := rand.Uint64()
					t.Logf("seed %d", seed)
					f := newFleet(t, program, nodes...)
					for _, m := range f.members {
						m.settle(t, everysec+"cluster-node-timeout "+timeout+"\n")
					}
					f.form(t)
					l := f.writeAll(t, time.Second)
					chance := rand.New(rand.NewPCG(seed, 0))
					for round := range stopRounds(t) {
						f.stopTogether(t, chance)
						f.startScattered(t, chance)
						f.allReady(t)
						l.nothingUndone(t)
						t.Logf("round %d is over", round)
					}
				})
			}
		}
	})
}

// stopTogether tells all members to stop within a second, each at a moment of its own.
func (f *fleet) stopTogether(t *testing.T, chance *rand.Rand) {
	t.Helper()
	var stopping sync.WaitGroup
	codes := make([]int, len(f.members))
	for i, m := range f.members {
		delay := time.Duration(chance.Int64N(int64(time.Second)))
		stopping.Go(func() {
			time.Sleep(delay) // who goes first is what is tried
			codes[i] = m.stop(t)
		})
	}
	stopping.Wait()
	for i, code := range codes {
		if code != 0 {
			t.Fatalf("%s: exit code %d, want 0", f.members[i], code)
		}
	}
}

// startScattered starts all members in any order, with up to two seconds between any two.
func (f *fleet) startScattered(t *testing.T, chance *rand.Rand) {
	t.Helper()
	for _, i := range chance.Perm(len(f.members)) {
		time.Sleep(time.Duration(chance.Int64N(int64(2 * time.Second)))) // who comes first is, too
		f.members[i].start(t)
	}
}
