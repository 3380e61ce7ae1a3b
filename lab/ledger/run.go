package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"
)

// Run says how to write.
type Run struct {
	// Rate is the number of writes a second, all writers together.
	Rate int
	// Writers each have one request in flight and a range of slots of their own.
	Writers int
	// Keys are spread evenly over all slots.
	Keys int
	// Size is the padding of a value, in bytes.
	Size int
	// Timeout of one write.
	Timeout time.Duration
	// Prefix of every key.
	Prefix string
	// Replicas that must have a write before it counts as acknowledged, as WAIT
	// tells; with 0 the primary's answer is enough.
	Replicas int
}

// DefaultRun writes 2,000 times a second to 16,384 keys, one in each slot.
func DefaultRun() Run {
	return Run{Rate: 2000, Writers: 48, Keys: slotCount, Size: 32, Timeout: 2 * time.Second, Prefix: "ledger"}
}

func (r Run) validate() error {
	if r.Rate < 1 || r.Writers < 1 || r.Keys < 1 || r.Size < 0 || r.Timeout <= 0 || r.Replicas < 0 {
		return errors.New("rate, writers, keys and timeout must be positive, size and replicas not negative")
	}
	return nil
}

// Record writes until the context ends, then reads every acknowledged key
// back, for up to a minute, and reports. It fails only where it cannot begin.
// The function begun is called when the first write is about to be sent.
func (r Run) Record(ctx context.Context, client valkey.Client, begun func()) (Report, error) {
	if err := r.validate(); err != nil {
		return Report{}, err
	}
	b := &book{}
	if err := b.readShards(ctx, client); err != nil {
		return Report{}, err
	}
	entries := spread(r.Keys, r.Prefix)
	ended := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { ended <- time.Now() })
	b.begin()
	begun()
	slices := r.write(ctx, client, b, entries)
	b.end = <-ended
	return b.close(context.WithoutCancel(ctx), client, entries, slices), nil
}

// write runs the writers to their end and returns the gap of each.
func (r Run) write(ctx context.Context, client valkey.Client, b *book, entries []*entry) []Slice {
	slices := make([]Slice, r.Writers)
	pause := time.Duration(r.Writers) * time.Second / time.Duration(r.Rate)
	var wg sync.WaitGroup
	for w := range r.Writers {
		mine := entries[w*len(entries)/r.Writers : (w+1)*len(entries)/r.Writers]
		if len(mine) == 0 {
			continue
		}
		slices[w] = Slice{Slots: fmt.Sprintf("%d-%d", mine[0].slot, mine[len(mine)-1].slot), Gap: Gap{last: b.start}}
		one := writer{run: r, client: client, book: b, entries: mine, gap: &slices[w].Gap, pause: pause}
		wg.Go(func() { one.loop(ctx, pause*time.Duration(w)/time.Duration(r.Writers)) })
	}
	wg.Wait()
	return slices
}

type writer struct {
	run     Run
	client  valkey.Client
	book    *book
	entries []*entry
	gap     *Gap
	pause   time.Duration
}

// loop writes its keys in turn, at most one per pause, beginning after offset
// so that the writers are spread over the pause. After a failure the same key
// is next, so that the end of an outage is seen within one pause.
func (w writer) loop(ctx context.Context, offset time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(offset):
	}
	tick := time.NewTicker(w.pause)
	defer tick.Stop()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// A write that was begun is finished: its outcome must be known.
		if w.write(context.WithoutCancel(ctx), w.entries[i%len(w.entries)]) {
			i++
		}
	}
}

// write enters the outcome of one write in the account.
func (w writer) write(ctx context.Context, e *entry) bool {
	ctx, cancel := context.WithTimeout(ctx, w.run.Timeout)
	defer cancel()
	e.attempted++
	value := strconv.FormatInt(e.attempted, 10) + ":" + strings.Repeat("x", w.run.Size)
	begin := time.Now()
	old, err := w.send(ctx, e.key, value)
	now := time.Now()
	if err != nil {
		w.book.failed(e, err, now)
		return false
	}
	w.gap.success(now, w.book.start)
	w.book.acknowledged(e, sequence(old), begin, now)
	e.acked = e.attempted
	return true
}

// errTooFewReplicas is a write that the primary has done and too few replicas have.
var errTooFewReplicas = errors.New("too few replicas")

// send does one SET … GET: the old value, empty where there was none, proves
// that the last acknowledged write was still there, or shows that it was undone.
func (w writer) send(ctx context.Context, key, value string) (old string, err error) {
	set := w.client.B().Set().Key(key).Value(value).Get().Build()
	if w.run.Replicas == 0 {
		return oldValue(w.client.Do(ctx, set))
	}
	// WAIT speaks of what its own connection wrote, so both need the same one.
	// It answers in time for the outcome to be known.
	wait := w.client.B().Wait().Numreplicas(int64(w.run.Replicas)).Timeout(w.run.Timeout.Milliseconds() / 2).Build()
	err = w.client.Dedicated(func(one valkey.DedicatedClient) error {
		answers := one.DoMulti(ctx, set, wait)
		var errSet error
		old, errSet = oldValue(answers[0])
		have, errWait := answers[1].AsInt64()
		if errSet == nil && errWait == nil && have < int64(w.run.Replicas) {
			return errTooFewReplicas
		}
		return cmp.Or(errSet, errWait)
	})
	return old, err
}

// oldValue is what a SET … GET replaced.
func oldValue(answer valkey.ValkeyResult) (string, error) {
	old, err := answer.ToString()
	if valkey.IsValkeyNil(err) {
		return "", nil
	}
	return old, err
}

// sequence reads the number that a value begins with; 0 where there is none.
func sequence(value string) int64 {
	number, _, _ := strings.Cut(value, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
