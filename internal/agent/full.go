package agent

import (
	"fmt"
	"strings"
	"time"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/process"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// gainNeeded is how many bytes more than at its end a server must find to be
	// started again: its node table and the start of a log take a few KiB.
	gainNeeded = 1 << 20
	// fullRetry is the time after which a server is started again whatever the
	// volume says: it may have lacked something that is not counted in bytes.
	fullRetry = time.Minute
)

// want is how a server ended for want of space on its volume.
type want struct {
	at    time.Time
	free  int64 // bytes that the file system had left
	quote string
}

// noSpace are the words of the system for a write that failed for want of space,
// and the server's for one that it could do in part only.
var noSpace = []string{"No space left on device", "Disk quota exceeded", "Short write while writing to the AOF file"}

// lacksSpace tells from its last words whether a server ended by itself for want
// of space.
func lacksSpace(exit process.Exit, lines []string) (quote string, lacks bool) {
	if exit.Signal != 0 || exit.Code == 0 {
		return "", false
	}
	for _, line := range lines {
		for _, words := range noSpace {
			if strings.Contains(line, words) {
				return line, true
			}
		}
	}
	return "", false
}

// isOver says whether the server may find what it lacked.
func (w want) isOver(free int64, now time.Time) bool {
	return free >= w.free+gainNeeded || now.Sub(w.at) >= fullRetry
}

// verdict tells of the space that there was at the server's end, and not now: it
// stays the same, for those who note each change of it, until that is of use.
func (w want) verdict(total int64) guard.Verdict {
	return guard.Verdict{Decision: protocol.DecisionVolumeFull, Message: fmt.Sprintf(
		"the volume is full: make it larger with spec.storage.size; the server ended when %d of %d bytes were free, with %q, and is started again once there is space",
		w.free, total, w.quote)}
}

// awaitLog waits, for as long as the kubelet lets us, while a primary has
// acknowledged more than it can write: asked to end it would do so at once, as if
// nothing were missing. A replica has nothing that its primary has not.
func (a *agent) awaitLog(server *process.Server) {
	for began, told := time.Now(), false; ; {
		view, at := a.board.lastView()
		found, err := a.config.measure(time.Now())
		// While there is space, what the server said last is good enough.
		fresh := at.After(began) || found.isAmple()
		owes := owesLog(view, found.free+found.ballast)
		if err != nil || fresh && !owes || !fresh && time.Since(began) > lookTime {
			return
		}
		if fresh && !told {
			told = true
			a.log.Warn("the server has acknowledged writes that its disk has no space for: it is stopped once there is some",
				"bytes", view.Info.Persistence.AOFPendingBytes, "free", found.free)
		}
		select {
		case <-server.Done():
			return
		case <-time.After(reserveEvery):
		}
	}
}

// owesLog says whether a server has acknowledged more than it finds space for.
func owesLog(view valkey.View, free int64) bool {
	return view.Info.Role == valkey.RolePrimary && writeFailed(view.Info.Persistence) &&
		view.Info.Persistence.AOFPendingBytes > free
}

// makeRoom gives a server that is to be started on a full volume the ballast,
// and says why it has to wait even so.
func (a *agent) makeRoom() (wait guard.Verdict, waits bool) {
	found, err := a.config.measure(time.Now())
	if err != nil {
		return guard.Verdict{}, false
	}
	a.board.setDisk(found.disk)
	if found.isTight() && releaseBallast(a.config, found) {
		a.log.Warn("the volume is full: the ballast was released for the start", "bytes", found.ballast)
		found.free += found.ballast
	}
	if a.lacked == nil || a.lacked.isOver(found.free, time.Now()) {
		return guard.Verdict{}, false
	}
	return a.lacked.verdict(found.disk.TotalBytes), true
}

// noteWant remembers how the server ended for want of space.
func (a *agent) noteWant(quote string) {
	a.lacked = &want{at: time.Now(), quote: quote}
	if found, err := a.config.measure(time.Now()); err == nil {
		a.lacked.free = found.free
	}
}
