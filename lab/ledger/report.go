package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"
)

// readers is how many keys are read back at once.
const readers = 32

// Report is the outcome of a run.
type Report struct {
	Seconds   float64 `json:"seconds"`
	Acked     int64   `json:"acked"`
	PerSecond float64 `json:"acked_per_s"`
	Keys      int     `json:"keys"`
	// Lost keys had an acknowledged value and have none at the end.
	Lost int `json:"lost"`
	// Stale keys have an older value than the one acknowledged last.
	Stale int `json:"stale"`
	// Undone are acknowledged writes whose effect was gone when the key was next written or read.
	Undone int64 `json:"undone"`
	// Unread keys could not be read back.
	Unread     int              `json:"unread"`
	Errors     int64            `json:"errors"`
	ErrorKinds map[string]int64 `json:"error_kinds,omitempty"`
	FirstError float64          `json:"first_error_s,omitempty"`
	LastError  float64          `json:"last_error_s,omitempty"`
	P50        float64          `json:"p50_ms"`
	P99        float64          `json:"p99_ms"`
	Max        float64          `json:"max_ms"`
	// LongestStall is the longest time without an acknowledged write to any slot.
	LongestStall Gap      `json:"longest_stall"`
	Shards       []*Shard `json:"shards"`
	WorstSlice   Slice    `json:"worst_slice"`
	Notes        []Note   `json:"undone_notes,omitempty"`
}

// Slice is the range of slots of one writer. It shows what the number of a
// whole shard hides, such as a slot that is blocked by a move.
type Slice struct {
	Slots string `json:"slots"`
	Gap
}

// close counts the gaps that are still open, reads everything back and sums up.
func (b *book) close(ctx context.Context, client valkey.Client, entries []*entry, writers []Slice) Report {
	end := b.end
	b.overall.success(end, b.start)
	for _, shard := range b.shards {
		shard.success(end, b.start)
	}
	r := Report{
		Seconds: end.Sub(b.start).Seconds(), Acked: b.acked, Keys: len(entries), Undone: b.undone,
		ErrorKinds: b.errors, FirstError: b.firstError, LastError: b.lastError,
		LongestStall: b.overall, Shards: b.shards, Notes: b.notes,
	}
	r.PerSecond = float64(int(float64(r.Acked) / r.Seconds))
	for _, n := range b.errors {
		r.Errors += n
	}
	for i := range writers {
		if writers[i].Slots == "" {
			continue
		}
		writers[i].success(end, b.start)
		if writers[i].Seconds > r.WorstSlice.Seconds {
			r.WorstSlice = writers[i]
		}
	}
	r.latency(b.latencies)
	r.readBack(ctx, client, entries)
	return r
}

func (r *Report) latency(microseconds []uint32) {
	if len(microseconds) == 0 {
		return
	}
	slices.Sort(microseconds)
	at := func(share float64) float64 {
		return float64(microseconds[int(share*float64(len(microseconds)-1))]) / 1000
	}
	r.P50, r.P99, r.Max = at(.5), at(.99), at(1)
}

// readBack asks for every acknowledged key, for up to a minute.
func (r *Report) readBack(ctx context.Context, client valkey.Client, entries []*entry) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	work := make(chan *entry)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for e := range work {
				value, err := read(ctx, client, e.key)
				mu.Lock()
				r.enter(e, value, err)
				mu.Unlock()
			}
		})
	}
	for _, e := range entries {
		if e.acked > 0 {
			work <- e
		}
	}
	close(work)
	wg.Wait()
}

// enter compares what was read of one key with its account.
func (r *Report) enter(e *entry, value string, err error) {
	found := sequence(value)
	switch {
	case valkey.IsValkeyNil(err):
		r.Lost++
		r.Undone += e.acked
	case err != nil:
		r.Unread++
	case found < e.acked:
		r.Stale++
		r.Undone += e.acked - found
	}
}

// read repeats until there is an answer or the context ends.
func read(ctx context.Context, client valkey.Client, key string) (string, error) {
	for {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		value, err := client.Do(one, client.B().Get().Key(key).Build()).ToString()
		cancel()
		if err == nil || valkey.IsValkeyNil(err) {
			return value, err
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("reading %s: %w", key, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
