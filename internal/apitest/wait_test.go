//go:build apiserver

package apitest

import (
	"context"
	"testing"
	"time"
)

const (
	// patience is how long anything is waited for. It is only ever used up by a
	// test that fails.
	patience = time.Minute
	// period is how often a condition is looked at, and how often the world moves.
	period = 50 * time.Millisecond
)

// pause waits a moment, unless the context ends first.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(period):
		return nil
	}
}

// await looks until a condition has no complaint any more, and fails the test
// with the last one when patience ends.
func await(t *testing.T, what string, complaint func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		last := complaint()
		if last == nil {
			return
		}
		if pause(ctx) != nil {
			t.Fatalf("waited in vain until %s: %v", what, last)
		}
	}
}
