//go:build servers

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/valkey-io/valkey-go"
)

const (
	// writers is how many write at a time, each to keys of its own.
	writers = 4
	// writePause is a writer's pause after each write, so that it takes no processor whole.
	writePause = time.Millisecond
)

// ledger writes through a cluster's client, and remembers what was acknowledged
// and what was not.
type ledger struct {
	client     client.Client
	limit      time.Duration // of one write
	replicated bool          // a write counts only once a replica has it
	stop       func()

	mu     sync.Mutex
	last   map[string]int // the last number acknowledged, by key
	errors []error
	stall  time.Duration // the longest that an acknowledged write took
}

// writeAll has writers write to all shards until the ledger is stopped. A write
// ends after the limit.
func (f *fleet) writeAll(t *testing.T, limit time.Duration) *ledger {
	t.Helper()
	return f.keepLedger(t, &ledger{limit: limit})
}

func (f *fleet) keepLedger(t *testing.T, l *ledger) *ledger {
	t.Helper()
	var addresses []string
	for _, m := range f.members {
		addresses = append(addresses, m.host+":6379")
	}
	opened, err := client.NewClient(client.ClientOption{InitAddress: addresses, DisableCache: true})
	must(t, err)
	t.Cleanup(opened.Close)
	l.client, l.last = opened, map[string]int{}
	var stopping atomic.Bool
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for number := 1; !stopping.Load(); number++ {
				l.write(fmt.Sprintf("ledger:%d:%d", writer, number%97), number)
				time.Sleep(writePause) // the writers' rate
			}
		})
	}
	l.stop = func() { stopping.Store(true); writing.Wait() }
	t.Cleanup(l.stop)
	return l
}

func (l *ledger) write(key string, number int) {
	ctx, cancel := context.WithTimeout(context.Background(), l.limit)
	defer cancel()
	began := time.Now()
	err := l.set(ctx, key, number)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.errors = append(l.errors, err)
		return
	}
	l.stall = max(l.stall, time.Since(began))
	l.last[key] = number
}

func (l *ledger) set(ctx context.Context, key string, number int) error {
	set := l.client.B().Set().Key(key).Value(strconv.Itoa(number)).Build()
	if !l.replicated {
		return l.client.Do(ctx, set).Error()
	}
	return l.client.Dedicated(func(c client.DedicatedClient) error {
		if err := c.Do(ctx, set).Error(); err != nil {
			return err
		}
		have, err := c.Do(ctx, c.B().Wait().Numreplicas(1).Timeout(l.limit.Milliseconds()).Build()).AsInt64()
		if err == nil && have < 1 {
			err = errors.New("no replica has it")
		}
		return err
	})
}

// nothingUndone checks that every write that is acknowledged by now reads back,
// or a later one of the same key does.
func (l *ledger) nothingUndone(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	promised := maps.Clone(l.last)
	l.mu.Unlock()
	var undone []string
	for key, number := range promised {
		text := ""
		until(t, "a key is read", func() bool {
			var err error
			text, err = l.client.Do(t.Context(), l.client.B().Get().Key(key).Build()).ToString()
			return err == nil || client.IsValkeyNil(err)
		})
		if got, _ := strconv.Atoi(text); got < number {
			undone = append(undone, fmt.Sprintf("%s is %q, acknowledged was %d", key, text, number))
		}
	}
	if len(undone) > 0 {
		t.Fatalf("%d of %d acknowledged writes are undone:\n%s", len(undone), len(promised), strings.Join(undone, "\n"))
	}
}
