package agent

import (
	"context"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// rewriteEvery is the least time between two rewrites that the agent asks for.
	rewriteEvery = time.Minute
	// rewriteMargin is by which part the expected size of a rewrite is exceeded at most.
	rewriteMargin = 4
	// worthRewriting is how many times larger than its rewrite the log of a full
	// volume must be for the rewrite to help.
	worthRewriting = 2
)

// rewrite asks for a rewrite of the log that the server does not start by
// itself: one that failed is tried again after up to an hour only, although
// there may be space by now; and one may be what makes space.
func (s *sampler) rewrite(ctx context.Context, view valkey.View, now time.Time) {
	if now.Sub(s.rewriteAt) < rewriteEvery {
		return
	}
	found, err := s.config.measure(now)
	if err != nil {
		return
	}
	files := filesOf(view.Info, s.board.isHeld())
	failed := files.Log && !view.Info.Persistence.AOFLastRewriteOK
	if !wantsRewrite(files, failed, found.free) {
		return
	}
	s.rewriteAt = now
	if _, err := s.conn.Raw(ctx, "BGREWRITEAOF"); err != nil {
		s.board.log.Warn("the log could not be rewritten", "error", err)
		return
	}
	s.board.log.Info("the log is rewritten", "free", found.free, "expected", files.NextBytes)
}

// wantsRewrite is true when a rewrite has failed or would make space, and there
// is room to write it.
func wantsRewrite(files protocol.Files, failed bool, free int64) bool {
	if !files.Log || files.Writing || files.NextBytes+files.NextBytes/rewriteMargin >= free {
		return false
	}
	return failed || files.WriteFailed && files.LogBytes >= worthRewriting*files.NextBytes
}
