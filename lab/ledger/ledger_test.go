package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSlotOfAKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]uint16{"123456789": 0x31c3 % slotCount, "foo": 12182, "": 0} {
		if got := crc16(key) % slotCount; got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

func TestSpreadCoversEverySlotOnce(t *testing.T) {
	t.Parallel()
	for i, e := range spread(slotCount, "p") {
		tag := e.key[len(fmt.Sprintf("p:%d:{", i)) : len(e.key)-1]
		if e.slot != i || int(crc16(tag)%slotCount) != i {
			t.Fatalf("key %d is %q for slot %d, its tag has slot %d", i, e.key, e.slot, crc16(tag)%slotCount)
		}
	}
}

func TestNodeTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table string
		want  Node
	}{
		"a primary with two ranges, one slot alone and one on the move": {
			"b 10.0.0.2:6379@16379 slave a 0 0 1 connected\n" +
				"a 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-99 200-299 500 [600->-b]\n",
			Node{ID: "a", Role: "primary", Slots: 201, Known: 2},
		},
		"a replica": {
			"b 10.0.0.2:6379@16379 myself,slave a 0 0 1 connected\n",
			Node{ID: "b", Role: "replica", PrimaryID: "a", Known: 1},
		},
		"nothing that can be read": {"\nvars currentEpoch 1\n", Node{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Node{}
			got.parse(c.table)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKindOfAnError(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"timeout":         fmt.Errorf("write: %w", context.DeadlineExceeded),
		"connection lost": io.ErrUnexpectedEOF,
		"refused":         errors.New("dial tcp 10.0.0.1:6379: connect: connection refused"),
		"unreachable":     errors.New("dial tcp 10.0.0.1:6379: connect: no route to host"),
		"something else":  errors.New("something else"),
	} {
		if got := kind(err); got != want {
			t.Errorf("kind of %v is %q, want %q", err, got, want)
		}
	}
}

func TestAnOlderValueThanAcknowledgedIsUndone(t *testing.T) {
	t.Parallel()
	b := &book{}
	b.begin()
	e := &entry{acked: 7}
	b.acknowledged(e, 7, b.start, b.start)
	if b.undone != 0 {
		t.Fatalf("%d undone although the last write was there", b.undone)
	}
	b.acknowledged(e, 4, b.start, b.start)
	if b.undone != 3 || len(b.notes) != 1 {
		t.Fatalf("%d undone with %d notes, want 3 and 1", b.undone, len(b.notes))
	}
}

func TestReadingBack(t *testing.T) {
	t.Parallel()
	r := Report{}
	r.enter(&entry{acked: 5}, "5:x", nil)
	r.enter(&entry{acked: 5}, "6:x", nil) // sent, not acknowledged, and yet done
	r.enter(&entry{acked: 5}, "3:x", nil)
	r.enter(&entry{acked: 5}, "", io.EOF)
	got := map[string]int{"stale": r.Stale, "undone": int(r.Undone), "unread": r.Unread, "lost": r.Lost}
	if diff := cmp.Diff(map[string]int{"stale": 1, "undone": 2, "unread": 1, "lost": 0}, got); diff != "" {
		t.Error(diff)
	}
}

func TestGapIsTheLongest(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	g := Gap{last: start}
	for _, at := range []time.Duration{time.Second, 4 * time.Second, 5 * time.Second} {
		g.success(start.Add(at), start)
	}
	if g.Seconds != 3 || g.EndedAt != 4 {
		t.Errorf("longest gap %v s ended at %v s, want 3 and 4", g.Seconds, g.EndedAt)
	}
}

func TestBatchesCoverAllOnce(t *testing.T) {
	t.Parallel()
	n, last := 2*batch+7, 0
	seen := make([]int, n)
	inBatches(n, func(done int) { last = done }, func(from, to int) func() {
		return func() {
			for i := from; i < to; i++ {
				seen[i]++
			}
		}
	})
	for i, times := range seen {
		if times != 1 {
			t.Fatalf("key %d was done %d times", i, times)
		}
	}
	if last != n {
		t.Errorf("progress ended at %d of %d", last, n)
	}
}

func TestFillingStopsAtAFullDisk(t *testing.T) {
	t.Parallel()
	misconf, other := errors.New("MISCONF Errors writing to the AOF file"), errors.New("timeout")
	for name, c := range map[string]struct {
		fill       Fill
		err        error // of every write from the eleventh on
		full, ends bool
	}{
		"when it is asked to":      {Fill{Bytes: 1 << 20, Size: 1, UntilFull: true}, misconf, true, true},
		"not when nobody asked":    {Fill{Bytes: 1 << 10, Size: 1}, misconf, true, false},
		"not at any other trouble": {Fill{Bytes: 1 << 10, Size: 1, UntilFull: true}, other, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var writes atomic.Int64
			got := c.fill.with(func(string) error {
				if writes.Add(1) > 10 {
					return c.err
				}
				return nil
			})
			if got.Keys != 10 || got.Failed != writes.Load()-10 || got.Full != c.full {
				t.Errorf("%d writes gave %+v", writes.Load(), got)
			}
			if ended := writes.Load() < c.fill.Bytes; ended != c.ends {
				t.Errorf("it ended after %d of %d writes", writes.Load(), c.fill.Bytes)
			}
		})
	}
}

func TestAStallCountsUntilTheWritersWereToldToStop(t *testing.T) {
	t.Parallel()
	hanging, serving := &Shard{}, &Shard{}
	b := &book{shards: []*Shard{hanging, serving}}
	b.begin()
	b.end = b.start.Add(3 * time.Second)
	serving.success(b.start.Add(time.Second), b.start)
	hanging.success(b.start.Add(7*time.Second), b.start) // its write was begun before the end
	r := b.close(t.Context(), nil, nil, nil)
	if hanging.Seconds != 7 || serving.Seconds != 2 || r.Seconds != 3 {
		t.Errorf("stalls of %v s and %v s in %v s, want 7 and 2 in 3", hanging.Seconds, serving.Seconds, r.Seconds)
	}
}

func TestClusterInfo(t *testing.T) {
	t.Parallel()
	got := Node{}
	got.enterInfo("cluster_state:ok\r\ncluster_current_epoch:7\r\ncluster_my_epoch:3\r\n")
	if diff := cmp.Diff(Node{State: "ok", Epoch: 7}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatARunNeeds(t *testing.T) {
	t.Parallel()
	r := DefaultRun()
	if err := r.validate(); err != nil {
		t.Error(err)
	}
	if r.Replicas = -1; r.validate() == nil {
		t.Error("it would wait for -1 replicas")
	}
}
