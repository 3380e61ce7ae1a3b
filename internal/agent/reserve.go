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
		r.refill(found)
	case found.isTight() || r.board.writeFailed():
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
// end of the disk.
func (r *reserve) hold(found space) {
	fsync, _, _ := r.config.setting("appendfsync")
	file, size, known := volume.LogEnd(r.config.Data)
	if !known || file == r.held || strings.EqualFold(fsync, "always") {
		return
	}
	left := found.free + found.ballast
	limit := size + left - min(tableShare, left/2)
	if err := r.server.LimitFiles(uint64(max(limit, 0))); err != nil {
		r.board.log.Warn("the log could not be held", "error", err)
		return
	}
	r.held = file
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

// refill puts some more of the ballast in place, once the server has its data.
func (r *reserve) refill(found space) {
	if found.ballast >= found.reserve || !r.board.hasData() {
		return
	}
	if err := volume.AddBallast(r.config.Data, found.reserve, ballastStep); err != nil {
		r.board.log.Warn("the ballast could not be put in place", "error", err)
		return
	}
	if found.ballast+ballastStep >= found.reserve {
		r.board.log.Info("the ballast is in place", "bytes", found.reserve)
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
