package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"
)

// maxNotes bounds the list of undone writes in a report; their number is exact.
const maxNotes = 20

// entry is one key's account. Each key has one writer, so its values only grow.
type entry struct {
	key       string
	slot      int
	acked     int64 // last sequence the cluster acknowledged; 0: none
	attempted int64 // last sequence sent
}

// Gap is the longest time without an acknowledged write.
type Gap struct {
	last    time.Time
	Seconds float64 `json:"s"`
	EndedAt float64 `json:"ended_at_s"`
}

func (g *Gap) success(now, start time.Time) {
	if d := now.Sub(g.last).Seconds(); d > g.Seconds {
		g.Seconds, g.EndedAt = d, now.Sub(start).Seconds()
	}
	g.last = now
}

// Shard is a set of slots with one owner when the run began. Slots that move
// later are still counted here.
type Shard struct {
	Slots  string `json:"slots"`
	Acked  int64  `json:"acked"`
	Errors int64  `json:"errors"`
	Gap
}

// Note is an acknowledged write that was found undone.
type Note struct {
	At   float64 `json:"at_s"`
	Slot int     `json:"slot"`
	What string  `json:"what"`
}

// book is what the writers share; its mutex covers all below it.
type book struct {
	start time.Time
	// end is when the writers were told to stop. A last write that hangs is the
	// stall of its own shard alone.
	end    time.Time
	bySlot [slotCount]*Shard

	mu         sync.Mutex
	overall    Gap
	shards     []*Shard
	acked      int64
	errors     map[string]int64
	firstError float64
	lastError  float64
	notes      []Note
	undone     int64
	latencies  []uint32 // microseconds of acknowledged writes
}

// readShards learns which slots have one owner.
func (b *book) readShards(ctx context.Context, client valkey.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ranges, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return err
	}
	owners := map[string]*Shard{}
	for _, r := range ranges {
		first, last, owner, err := slotRange(r)
		if err != nil {
			return fmt.Errorf("reading CLUSTER SLOTS: %w", err)
		}
		shard := owners[owner]
		if shard == nil {
			shard = &Shard{}
			owners[owner] = shard
			b.shards = append(b.shards, shard)
		}
		shard.Slots = strings.TrimPrefix(fmt.Sprintf("%s,%d-%d", shard.Slots, first, last), ",")
		for i := first; i <= last; i++ {
			b.bySlot[i] = shard
		}
	}
	return nil
}

// slotRange reads one element of CLUSTER SLOTS: first, last, [host, port, id, …], replicas….
func slotRange(r valkey.ValkeyMessage) (first, last int64, owner string, err error) {
	parts, err := r.ToArray()
	if err != nil {
		return 0, 0, "", err
	}
	if len(parts) < 3 {
		return 0, 0, "", fmt.Errorf("a range of %d parts", len(parts))
	}
	server, err := parts[2].ToArray()
	if err != nil {
		return 0, 0, "", err
	}
	if len(server) < 3 {
		return 0, 0, "", fmt.Errorf("an owner of %d parts", len(server))
	}
	first, errFirst := parts[0].AsInt64()
	last, errLast := parts[1].AsInt64()
	owner, errOwner := server[2].ToString()
	return first, last, owner, errors.Join(errFirst, errLast, errOwner)
}

func (b *book) begin() {
	b.errors = map[string]int64{}
	b.start = time.Now()
	b.overall.last = b.start
	for _, shard := range b.shards {
		shard.last = b.start
	}
}

// acknowledged enters one successful write; old is the sequence that it replaced.
func (b *book) acknowledged(e *entry, old int64, begin, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked++
	b.latencies = append(b.latencies, uint32(min(now.Sub(begin).Microseconds(), 1<<32-1)))
	b.overall.success(now, b.start)
	if shard := b.bySlot[e.slot]; shard != nil {
		shard.Acked++
		shard.success(now, b.start)
	}
	if old >= e.acked {
		return
	}
	b.undone += e.acked - old
	if len(b.notes) < maxNotes {
		b.notes = append(b.notes, Note{now.Sub(b.start).Seconds(), e.slot, fmt.Sprintf("found %d, acknowledged %d", old, e.acked)})
	}
}

func (b *book) failed(e *entry, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors[kind(err)]++
	b.lastError = now.Sub(b.start).Seconds()
	if b.firstError == 0 {
		b.firstError = b.lastError
	}
	if shard := b.bySlot[e.slot]; shard != nil {
		shard.Errors++
	}
}

// broken are the words of errors of a connection that was there and is gone.
var broken = []string{"EOF", "reset", "closing", "broken pipe"}

// kind is the first word of a server's error answer, else the class of the error.
func kind(err error) string {
	if server, ok := errors.AsType[*valkey.ValkeyError](err); ok {
		word, _, _ := strings.Cut(server.Error(), " ")
		return word
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "timeout"
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "refused"):
		return "refused"
	case strings.Contains(text, "no route"), strings.Contains(text, "unreachable"):
		return "unreachable"
	}
	for _, word := range broken {
		if strings.Contains(text, word) {
			return "connection lost"
		}
	}
	return text
}
