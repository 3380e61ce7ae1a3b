package agent

import (
	"context"
	"strings"
	"time"

	"valkey.io/valkey-operator/internal/agent/process"
	"valkey.io/valkey-operator/internal/agent/volume"
)

const (
	// reserveEvery is the time between looks at the volume of a running server: a
	// server that cannot write its node table ends at once, so a full disk must be
	// seen before the table changes.
	reserveEvery = 200 * time.Millisecond
	// ballastStep is how much ballast is put in place at a look, in bytes: on a
	// file system where it has to be written, no more than the disk takes along.
	ballastStep = 16 << 20
	// failsTime is for how long a server that finds space again may still say that it
	// cannot write: it tries each second, and is asked each second.
	failsTime = 5 * time.Second
	// refillRetry is the time after which the ballast is put in place again when
	// that failed, or the server could not write beside it: the file system does not
	// tell all that limits it, as a quota of the user's.
	refillRetry = 10 * time.Minute
	// tableShare is what is left for the node table while the log is held, in
	// bytes: it is rewritten beside the old one, and that of a hundred nodes has 20 KiB.
	tableShare = 1 << 20
)

// reserve keeps space on the volume for the last words of a running server: the
// end of its log and its node table. When the disk is about to be full, the
// ballast is given to them. A server under load would fill that too with its
// log within seconds, so the log is held where it is: the server refuses writes
// then just as on a full disk, and stays alive.
type reserve struct {
	config Config
	board  *board
	server *process.Server
	held   string // the file of the log that is held, empty: none
	left   int64  // the bytes that were left when it was

	failsSince  time.Time // since when the server cannot write although there is space
	refillAt    time.Time // when the ballast may be put in place again
	lastTrouble string
}

// run looks again and again until the context ends, and gives the whole reserve
// to the server then, for its end.
func (r *reserve) run(ctx context.Context) {
	defer r.letGo()
	for {
		r.look(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-time.After(reserveEvery):
		}
	}
}

func (r *reserve) look(now time.Time) {
	found, err := r.config.measure(now)
	if err != nil {
		return
	}
	r.board.setDisk(found.disk)
	switch {
	case found.isAmple():
		r.letGo()
		r.refill(found, now)
	case found.isTight() || r.board.writeFailed():
		r.failsSince = time.Time{}
		r.hold(found)
		if releaseBallast(r.config, found) {
			r.board.log.Warn("the volume is full: the ballast was released", "bytes", found.ballast)
		}
	}
}

// hold keeps the log at its size and most of what is left, for what the server
// has acknowledged already: under load that may be the writes of two seconds,
// and it is written as a whole or not at all. The rest is the node table's. A
// server that syncs each write ends when it cannot: its log is let run to the
// end of the disk. What is freed meanwhile is the server's too: a limit from when
// nothing was left would fail its node table.
func (r *reserve) hold(found space) {
	fsync, _, _ := r.config.setting("appendfsync")
	file, size, known := volume.LogEnd(r.config.Data)
	left := found.free + found.ballast
	isHeld := file == r.held && left < r.left+gainNeeded
	if !known || isHeld || strings.EqualFold(fsync, "always") {
		return
	}
	limit := size + left - min(tableShare, left/2)
	if err := r.server.LimitFiles(uint64(max(limit, 0))); err != nil {
		r.trouble("the log could not be held", err)
		return
	}
	r.held, r.left = file, left
	r.board.setHeld(true)
	r.board.log.Warn("the volume is full: the log is held", "file", file, "bytes", limit)
}

func (r *reserve) letGo() {
	if r.held == "" {
		return
	}
	if err := r.server.LimitFiles(process.NoFileLimit); err != nil {
		r.board.log.Warn("the log could not be let go", "error", err)
		return
	}
	r.held = ""
	r.board.setHeld(false)
	r.board.log.Info("the log may grow again")
}

// refill puts some more of the ballast in place, once the server has its data. A
// server that cannot write although the file system has space gets it back.
func (r *reserve) refill(found space, now time.Time) {
	if r.failsForLong(now) && releaseBallast(r.config, found) {
		r.refillAt = now.Add(refillRetry)
		r.board.log.Warn("the server cannot write although there is space: the ballast was released", "bytes", found.ballast)
		return
	}
	if found.ballast >= found.reserve || now.Before(r.refillAt) || !r.board.hasData() {
		return
	}
	if err := volume.AddBallast(r.config.Data, found.reserve, ballastStep); err != nil {
		r.refillAt = now.Add(refillRetry)
		r.trouble("the ballast could not be put in place", err)
		return
	}
	if found.ballast+ballastStep >= found.reserve {
		r.board.log.Info("the ballast is in place", "bytes", found.reserve)
	}
}

// failsForLong says whether the server has said for too long that it cannot
// write, at looks that all found space.
func (r *reserve) failsForLong(now time.Time) bool {
	if !r.board.writeFailed() {
		r.failsSince = time.Time{}
		return false
	}
	if r.failsSince.IsZero() {
		r.failsSince = now
	}
	return now.Sub(r.failsSince) >= failsTime
}

// trouble logs what stands in the way, once until it changes.
func (r *reserve) trouble(what string, err error) {
	if text := what + ": " + err.Error(); text != r.lastTrouble {
		r.lastTrouble = text
		r.board.log.Warn(what, "error", err)
	}
}

// releaseBallast says whether there was any to release.
func releaseBallast(config Config, found space) bool {
	if found.reserve == 0 || found.ballast == 0 {
		return false
	}
	released, err := volume.ReleaseBallast(config.Data)
	return released && err == nil
}
