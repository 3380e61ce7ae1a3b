//go:build servers

package agent_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/valkey-io/valkey-go"

	"valkey.io/valkey-operator/internal/agent/protocol"
)

// plannedStops is how many primaries are stopped under writers.
const plannedStops = 6

// ledger writes through a cluster's client, and remembers what was acknowledged
// and what was not.
type ledger struct {
	client client.Client

	mu     sync.Mutex
	last   map[string]int // the last number acknowledged, by key
	errors []error
	stall  time.Duration // the longest time between two acknowledgements of a writer
}

// writers is how many write at a time, each to keys of its own.
const writers = 4

// writeAll has writers write to all shards until the returned function is called.
func (f *fleet) writeAll(t *testing.T) (l *ledger, stop func()) {
	t.Helper()
	var addresses []string
	for _, m := range f.members {
		addresses = append(addresses, m.host+":6379")
	}
	opened, err := client.NewClient(client.ClientOption{InitAddress: addresses, DisableCache: true})
	must(t, err)
	t.Cleanup(opened.Close)
	l = &ledger{client: opened, last: map[string]int{}}
	var stopping atomic.Bool
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for number := 1; !stopping.Load(); number++ {
				l.write(fmt.Sprintf("ledger:%d:%d", writer, number%97), number)
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { stopping.Store(true); writing.Wait() }) }
	t.Cleanup(stop)
	return l, stop
}

func (l *ledger) write(key string, number int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	err := l.client.Do(ctx, l.client.B().Set().Key(key).Value(strconv.Itoa(number)).Build()).Error()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall = max(l.stall, time.Since(began))
	if err != nil {
		l.errors = append(l.errors, err)
		return
	}
	l.last[key] = number
}

// undone are the acknowledged writes that do not read back.
func (l *ledger) undone(t *testing.T) (undone []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, number := range l.last {
		text, err := l.client.Do(t.Context(), l.client.B().Get().Key(key).Build()).ToString()
		if got, _ := strconv.Atoi(text); got < number {
			undone = append(undone, fmt.Sprintf("%s is %q (%v), acknowledged was %d", key, text, err, number))
		}
	}
	return undone
}

// A primary that is stopped hands its slots over first: no client meets an error,
// and no acknowledged write is undone.
func TestAStoppedPrimaryHandsOver(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		l, stop := f.writeAll(t)
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
		stop()
		if len(l.errors) > 0 {
			t.Errorf("%d errors of clients, the first is: %v", len(l.errors), l.errors[0])
		}
		if undone := l.undone(t); len(undone) > 0 {
			t.Errorf("%d acknowledged writes are undone: %s", len(undone), strings.Join(undone, "\n"))
		}
		t.Logf("%d planned stops: longest stall %s", plannedStops, l.stall)
	})
}
