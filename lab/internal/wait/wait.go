// Package wait waits on conditions. It never sleeps for a fixed time in the
// hope that something has happened.
package wait

import (
	"context"
	"time"
)

// every is how often a condition is asked: short beside what is waited for
// here (starts of processes), long beside the cost of asking.
const every = 50 * time.Millisecond

// Until asks until ok says yes. It reports false when limit or ctx ended first.
func Until(ctx context.Context, limit time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return ok()
		case <-tick.C:
		}
	}
	return true
}
