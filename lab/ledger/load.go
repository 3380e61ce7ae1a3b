package ledger

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
)

// batch is how many commands travel together.
const batch = 500

// connections is how many batches are under way at once.
const connections = 4

// patience is how long a key that gives an error is tried again.
const patience = 20 * time.Second

// Loaded is the outcome of Load.
type Loaded struct {
	Keys  int `json:"keys"`
	Acked int `json:"acked"`
	// Retried keys gave an error at first, Failed ones to the last.
	Retried int     `json:"retried"`
	Failed  int     `json:"failed"`
	Seconds float64 `json:"seconds"`
}

// Verified is the outcome of Verify. All keys are in exactly one of the four counts.
type Verified struct {
	Keys int `json:"keys"`
	// Found keys have the value that was loaded, Wrong ones another.
	Found   int     `json:"found"`
	Wrong   int     `json:"wrong"`
	Missing int     `json:"missing"`
	Unread  int     `json:"unread"`
	Seconds float64 `json:"seconds"`
}

// Progress is told how many keys are done.
type Progress func(done int)

func loadKey(i int) string   { return fmt.Sprintf("k:%d", i) }
func loadValue(i int) string { return fmt.Sprintf("v:%d", i) }

// Load writes n keys, k:0 => v:0 and so on, in pipelines. A key that gives an
// error is written again, for up to twenty seconds.
func Load(ctx context.Context, client valkey.Client, n int, progress Progress) Loaded {
	begin, result := time.Now(), Loaded{Keys: n}
	inBatches(n, progress, func(from, to int) func() {
		commands := make(valkey.Commands, 0, to-from)
		for i := from; i < to; i++ {
			commands = append(commands, client.B().Set().Key(loadKey(i)).Value(loadValue(i)).Build())
		}
		retried, failed := 0, 0
		for i, answer := range client.DoMulti(ctx, commands...) {
			if answer.Error() == nil {
				continue
			}
			retried++
			if err := again(ctx, func(ctx context.Context) error { return set(ctx, client, loadKey(from+i), loadValue(from+i)) }); err != nil {
				failed++
			}
		}
		return func() {
			result.Retried += retried
			result.Failed += failed
			result.Acked += to - from - failed
		}
	})
	result.Seconds = time.Since(begin).Seconds()
	return result
}

// again repeats until there is no error, or patience or the context end.
func again(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Verify reads n keys that Load wrote. A key that gives an error is asked for
// again, for up to twenty seconds.
func Verify(ctx context.Context, client valkey.Client, n int, progress Progress) Verified {
	begin, result := time.Now(), Verified{Keys: n}
	inBatches(n, progress, func(from, to int) func() {
		commands := make(valkey.Commands, 0, to-from)
		for i := from; i < to; i++ {
			commands = append(commands, client.B().Get().Key(loadKey(i)).Build())
		}
		answers := client.DoMulti(ctx, commands...)
		values := make([]string, len(answers))
		errs := make([]error, len(answers))
		for i, a := range answers {
			values[i], errs[i] = a.ToString()
			if errs[i] != nil && !valkey.IsValkeyNil(errs[i]) {
				values[i], errs[i] = readSoon(ctx, client, loadKey(from+i))
			}
		}
		return func() {
			for i := range values {
				result.enter(values[i], errs[i], loadValue(from+i))
			}
		}
	})
	result.Seconds = time.Since(begin).Seconds()
	return result
}

func readSoon(ctx context.Context, client valkey.Client, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return read(ctx, client, key)
}

func (v *Verified) enter(value string, err error, want string) {
	switch {
	case valkey.IsValkeyNil(err):
		v.Missing++
	case err != nil:
		v.Unread++
	case value != want:
		v.Wrong++
	default:
		v.Found++
	}
}

// inBatches calls do for each part of n, several at once, and the function
// that it returns one at a time.
func inBatches(n int, progress Progress, do func(from, to int) (enter func())) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	starts, done := make(chan int), 0
	for range connections {
		wg.Go(func() {
			for from := range starts {
				to := min(from+batch, n)
				enter := do(from, to)
				mu.Lock()
				enter()
				done += to - from
				progress(done)
				mu.Unlock()
			}
		})
	}
	for from := 0; from < n; from += batch {
		starts <- from
	}
	close(starts)
	wg.Wait()
}

// Fill says how much to write.
type Fill struct {
	// Bytes in all, in values of Size bytes.
	Bytes int64
	Size  int
	// UntilFull stops at the first MISCONF answer, which is what a full disk gives.
	UntilFull bool
}

// Filled is the outcome of Fill.
type Filled struct {
	// Keys were acknowledged, Failed ones gave an error.
	Keys   int64 `json:"keys"`
	Failed int64 `json:"failed"`
	// Full says that a server answered MISCONF.
	Full    bool    `json:"full"`
	Seconds float64 `json:"seconds"`
}

// Do writes values that do not compress, over all slots, as fast as the cluster takes them.
func (f Fill) Do(ctx context.Context, client valkey.Client) Filled {
	return f.with(func(key string) error { return set(ctx, client, key, noise(f.Size)) })
}

// with writes each key by write, several at once.
func (f Fill) with(write func(key string) error) Filled {
	begin, entries, total := time.Now(), spread(slotCount, "fill"), f.Bytes/int64(f.Size)
	var next, acked, failed atomic.Int64
	var full atomic.Bool
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for i := next.Add(1); i <= total && (!f.UntilFull || !full.Load()); i = next.Add(1) {
				// The step is prime, so that neighbours go to different shards.
				err := write(fmt.Sprintf("%s:%d", entries[i*7919%slotCount].key, i))
				switch {
				case err == nil:
					acked.Add(1)
				case strings.Contains(err.Error(), "MISCONF"):
					full.Store(true)
					failed.Add(1)
				default:
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return Filled{Keys: acked.Load(), Failed: failed.Load(), Full: full.Load(), Seconds: time.Since(begin).Seconds()}
}

func set(ctx context.Context, client valkey.Client, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return client.Do(ctx, client.B().Set().Key(key).Value(value).Build()).Error()
}

// noise does not compress, so that a value takes its size in a snapshot too.
func noise(n int) string {
	bytes := make([]byte, n)
	_, _ = rand.Read(bytes) // never fails
	return string(bytes)
}
