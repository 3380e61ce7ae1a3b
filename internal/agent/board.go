package agent

import (
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// files is what the volume says about the member while no server runs.
type files struct {
	self  valkey.NodeEntry
	known bool
	empty protocol.Answer
}

func (f files) role() protocol.Role {
	switch {
	case f.known && f.self.Flags.Replica:
		return protocol.RoleReplica
	case f.known && f.self.Flags.Primary:
		return protocol.RolePrimary
	}
	return ""
}

// board holds all that the agent knows right now. The supervisor and the
// sampler write to it, the web server reads from it.
type board struct {
	config Config
	log    *slog.Logger

	mu       sync.Mutex
	verdict  guard.Verdict
	files    files
	seen     probe.Seen
	viewedAt time.Time // when seen.View was given
	notReady string
	disks    []protocol.Disk // newest last
	lows     lows
	held     bool // the log is held at its size for want of space
	lastStop *protocol.Stop
	refused  []string // users whose permissions the server refuses

	hold      string // names what the member is held for; empty: for nothing that a word could end
	commanded bool   // somebody gave the word that ends the hold
	kept      string // what was done to the member's files
	logCut    int64  // how many bytes of its log's end the server left out
}

func newBoard(config Config, log *slog.Logger) *board {
	return &board{config: config, log: log, notReady: "the server is not running", lastStop: readLastStop(config)}
}

// decide notes a decision, and logs it when it is a new one.
func (b *board) decide(phase probe.Phase, verdict guard.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.verdict != verdict {
		b.log.Info("decision", "decision", verdict.Decision, "message", verdict.Message)
	}
	hold := b.holdFor(phase, verdict)
	// A word that came while the decision was being made is about the last one.
	b.commanded = b.commanded && hold == b.hold
	b.hold, b.verdict = hold, verdict
	b.enter(phase)
}

// enter notes a phase; the caller holds the lock.
func (b *board) enter(phase probe.Phase) {
	b.seen.Phase = phase
	if phase == probe.Up {
		b.seen.UpAt = time.Now()
	}
	b.judge(time.Now())
}

func (b *board) setPhase(phase probe.Phase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(phase)
}

// judge renews the answer of the readiness probe; the caller holds the lock.
func (b *board) judge(now time.Time) {
	b.notReady = probe.Ready(b.seen, now)
	if ready := b.notReady == ""; ready != b.seen.WasReady {
		b.log.Info("readiness", "ready", ready, "why", b.notReady)
		b.seen.WasReady = ready
		b.seen.EverReady = b.seen.EverReady || ready
	}
}

func (b *board) setFiles(found files) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files = found
}

func (b *board) setDisk(disk protocol.Disk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := len(b.disks) - 1; last >= 0 && b.disks[last].TotalBytes != disk.TotalBytes {
		// A larger volume has a larger ballast, and more of its file system's own.
		b.lows = lows{}
	}
	b.disks = remember(b.disks, disk)
	b.lows.note(disk.TotalBytes-disk.AvailableBytes, disk.SampledAt)
}

// setHeld notes whether the log is held at its size.
func (b *board) setHeld(held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = held
}

// isHeld says whether the log is held at its size.
func (b *board) isHeld() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// writeFailed says whether the server said last that it cannot write its log.
func (b *board) writeFailed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen.View != nil && writeFailed(b.seen.View.Info.Persistence)
}

// lastView is what the server said last, and when; the zero time: nothing yet.
func (b *board) lastView() (view valkey.View, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen.View == nil {
		return valkey.View{}, time.Time{}
	}
	return *b.seen.View, b.viewedAt
}

// hasData says whether the server has read its data and answers.
func (b *board) hasData() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen.Phase == probe.Up && b.seen.View != nil && b.seen.View.Info.Loading == nil
}

// forget forgets the server that has ended, before another one is started, and
// what the volume said before that one wrote to it.
func (b *board) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files = files{}
	b.seen = probe.Seen{Phase: probe.Deciding, WasReady: b.seen.WasReady}
	b.held = false
	b.judge(time.Now())
}

// setReplaced notes whether another member took this one's place.
func (b *board) setReplaced(replaced bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.Replaced = replaced
}

// setRefused notes the users that the server refuses.
func (b *board) setRefused(users []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = slices.Clone(users)
}

// look is a snapshot for deciding.
func (b *board) look() (probe.Seen, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen, b.notReady
}

// answered notes that the server said something; view is nil when that was an error.
func (b *board) answered(now time.Time, view *valkey.View) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.AnsweredAt = now
	if view != nil {
		if gotFurther(b.seen.View, *view) {
			b.seen.ProgressAt = now
		}
		b.seen.View, b.viewedAt = view, now
	}
	b.judge(now)
}

// silent notes that the server said nothing.
func (b *board) silent(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judge(now)
}

func gotFurther(before *valkey.View, now valkey.View) bool {
	if now.Info.Loading == nil || before == nil || before.Info.Loading == nil {
		return true
	}
	return *now.Info.Loading != *before.Info.Loading &&
		now.Info.Loading.LoadedBytes != before.Info.Loading.LoadedBytes
}

// stopped notes how the server ended, also for the agent after this one.
func (b *board) stopped(stop protocol.Stop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastStop = &stop
	b.enter(probe.Stopped)
	text, err := json.Marshal(stop)
	if err == nil {
		err = writePrivately(b.config.lastStopFile(), text)
	}
	if err != nil {
		b.log.Warn("the server's end could not be recorded", "error", err)
	}
}

// readLastStop is what the agent before this one recorded, nil when it could not.
func readLastStop(config Config) *protocol.Stop {
	text, err := os.ReadFile(config.lastStopFile())
	if err != nil {
		return nil
	}
	var stop protocol.Stop
	if json.Unmarshal(text, &stop) != nil {
		return nil
	}
	return &stop
}

// setKept notes what was done to the member's files.
func (b *board) setKept(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = what
}

// setLogCut notes how much of the log's end the server left out.
func (b *board) setLogCut(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logCut = bytes
}
