//go:build servers

package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

// everysec is the fsync that a server with a full disk lives on with.
const everysec = "appendfsync everysec\n"

// small is a fleet of one shard whose members have small volumes of their own.
func small(t *testing.T, program string, nodes int) *fleet {
	t.Helper()
	f := newFleet(t, program, nodes)
	for _, m := range f.members {
		m.mount(t)
		m.settle(t, everysec)
	}
	f.form(t)
	for _, m := range f.members {
		until(t, "the ballast is in place", func() bool { return m.ballast() == volume.BallastSize(volumeSize) })
	}
	return f
}

// load writes to the member until it is stopped, whatever the member answers.
type load struct {
	accepted atomic.Int64
	refused  atomic.Int64
	stop     func()
}

func (m *member) load(t *testing.T) *load {
	t.Helper()
	l := &load{}
	var stopping atomic.Bool
	ended := make(chan struct{})
	l.stop = func() { stopping.Store(true); <-ended }
	t.Cleanup(l.stop)
	ctx := context.WithoutCancel(t.Context()) // no write is left in doubt
	conn, err := m.dial("")
	must(t, err)
	value := strings.Repeat("v", 4<<10)
	go func() {
		defer close(ended)
		defer conn.Close()
		for !stopping.Load() {
			_, err := conn.Raw(ctx, "SET", fmt.Sprint("load:", l.accepted.Load()), value)
			switch {
			case err == nil:
				l.accepted.Add(1)
			case valkey.IsMisconf(err):
				l.refused.Add(1)
			}
		}
	}()
	return l
}

// changeTable makes the server write its node table.
func (m *member) changeTable(t *testing.T) {
	t.Helper()
	for _, command := range []string{"DELSLOTS", "ADDSLOTS"} {
		m.operate(t, func(c *valkey.Conn) error { _, err := c.Raw(t.Context(), "CLUSTER", command, "16383"); return err })
	}
}

func (m *member) accepts() bool {
	_, err := m.ask("SET", "{a}key", "value")
	return err == nil
}

// A primary whose disk is filled to the last byte under load refuses writes and
// stays alive, whatever happens to its node table; with space it goes on. Nothing
// that it has acknowledged is lost.
func TestAFullDiskOnlyRefusesWrites(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 1)
		m := f.members[0]
		pid := m.serverPID(t)
		l := m.load(t)
		until(t, "writes are accepted", func() bool { return l.accepted.Load() > 100 })
		empty := m.fill(t)
		until(t, "writes are refused", func() bool { return l.refused.Load() > 0 })
		m.livesOnFullDisk(t)
		empty()
		until(t, "writes are accepted again", m.accepts)
		until(t, "the ballast is back", func() bool { return m.ballast() == volume.BallastSize(volumeSize) })
		l.stop()
		if got := m.serverPID(t); got != pid {
			t.Errorf("the server was started again: it is process %d, was %d", got, pid)
		}
		if code := m.stop(t); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		m.start(t)
		f.allReady(t)
		if keys, _ := m.keys(); keys != fmt.Sprint(l.accepted.Load()+1) {
			t.Errorf("%s keys after a restart, want the %d accepted and one", keys, l.accepted.Load())
		}
	})
}

// livesOnFullDisk checks all that a server with a full disk can do and cannot.
func (m *member) livesOnFullDisk(t *testing.T) {
	t.Helper()
	until(t, "the facts say so", m.writeFailed)
	until(t, "the ballast is released", func() bool { return m.ballast() == 0 })
	for range 10 {
		m.changeTable(t)
	}
	m.probesAnswer(t, http.StatusOK, http.StatusOK, http.StatusOK)
	if facts := m.facts(); facts.Disk == nil || facts.Disk.AvailableBytes > 0 {
		t.Errorf("on a full disk the facts are %+v", facts.Disk)
	}
	if _, err := m.ask("GET", "load:1"); err != nil {
		t.Errorf("reading: %v", err)
	}
	until(t, "two samples agree", func() bool {
		facts := m.facts()
		return facts.DiskBefore != nil && facts.DiskBefore.AvailableBytes == 0
	})
	if m.accepts() {
		t.Error("writes are accepted on a full disk")
	}
	if _, err := m.ask("DEL", "load:1"); !valkey.IsMisconf(err) {
		t.Errorf("deleting on a full disk: %v", err)
	}
}

func atoi(text string) int {
	number, _ := strconv.Atoi(text)
	return number
}

func (m *member) writeFailed() bool {
	facts := m.facts()
	return facts.Files != nil && facts.Files.WriteFailed
}

// A server that is stopped on a full disk ends, and has all that it acknowledged
// in its files: the ballast was for that.
func TestAStopOnAFullDiskLosesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 1)
		m := f.members[0]
		l := m.load(t)
		until(t, "writes are accepted", func() bool { return l.accepted.Load() > 100 })
		empty := m.fill(t)
		until(t, "writes are refused", func() bool { return l.refused.Load() > 0 })
		until(t, "the ballast is released", func() bool { return m.ballast() == 0 })
		l.stop()
		must(t, m.command.Process.Signal(syscall.SIGTERM))
		until(t, "it ends, or waits for space", func() bool { return m.serverPIDNow() == 0 || m.waitsForItsLog(t) })
		empty()
		m.await(t)
		m.start(t)
		f.allReady(t)
		if keys, _ := m.keys(); keys != fmt.Sprint(l.accepted.Load()) {
			t.Errorf("%s keys after a restart, want the %d accepted", keys, l.accepted.Load())
		}
	})
}

func (m *member) waitsForItsLog(t *testing.T) bool {
	t.Helper()
	return strings.Contains(m.log(t), "the server has acknowledged writes that its disk has no space for")
}

// What was acknowledged and is larger than all that is left of the disk is waited
// for with a stop: the server would end without it.
func TestAStopWaitsForAnUnwrittenLog(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 1)
		m := f.members[0]
		empty := m.fill(t)
		until(t, "the ballast is released", func() bool { return m.ballast() == 0 })
		_, err := m.ask("SET", "large", strings.Repeat("v", 8<<20))
		must(t, err)
		must(t, m.command.Process.Signal(syscall.SIGTERM))
		until(t, "it waits for space", func() bool { return m.waitsForItsLog(t) })
		if facts := m.facts(); facts.Server != protocol.ServerStopping || facts.Ready {
			t.Errorf("while it waits the facts are %+v", facts)
		}
		empty()
		if code := m.await(t); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		m.start(t)
		f.allReady(t)
		f.keysReach(t, 1)
	})
}

// A start on a full disk has the ballast for it, and so has the next one.
func TestAStartOnAFullDisk(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 1)
		m := f.members[0]
		m.write(t, "key:", written)
		must(t, m.stopQuietly(t))
		m.fill(t)
		for range 3 {
			m.start(t)
			f.allReady(t)
			if keys, _ := m.keys(); atoi(keys) < written {
				t.Errorf("%s keys are left of %d", keys, written)
			}
			until(t, "the log is held", m.writeFailed)
			l := m.load(t)
			until(t, "writes are refused", func() bool { return l.refused.Load() > 0 })
			m.changeTable(t)
			l.stop()
			m.probesAnswer(t, http.StatusOK, http.StatusOK, http.StatusOK)
			m.kill()
		}
		if got := m.ballast(); got != 0 {
			t.Errorf("%d bytes of ballast are in place on a full disk", got)
		}
	})
}

// A start on a full disk without a ballast is tried again in the same container
// once there is space, and not before.
func TestAStartWithoutABallastWaitsForSpace(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 1)
		m := f.members[0]
		m.write(t, "key:", written)
		must(t, m.stopQuietly(t))
		_, err := volume.ReleaseBallast(m.data(""))
		must(t, err)
		empty := m.fill(t)
		m.start(t)
		until(t, "the server runs or waits", func() bool {
			facts := m.facts()
			return facts.Server == protocol.ServerRunning || facts.Decision == protocol.DecisionVolumeFull
		})
		if facts := m.facts(); facts.Decision == protocol.DecisionVolumeFull {
			m.probesAnswer(t, http.StatusOK, http.StatusOK, http.StatusServiceUnavailable)
			if !strings.Contains(facts.Message, "No space left on device") || facts.Disk == nil {
				t.Errorf("while it waits the facts are %+v", facts)
			}
		}
		empty()
		f.allReady(t)
		f.keysReach(t, written)
	})
}

// A replica whose disk is full goes on in memory.
func TestAReplicaWithAFullDiskFollows(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 2)
		primary, replica := f.node(0, 0), f.node(0, 1)
		pid := replica.serverPID(t)
		empty := replica.fill(t)
		l := primary.load(t)
		until(t, "its disk is full", replica.writeFailed)
		before := l.accepted.Load()
		until(t, "writes go on", func() bool { return l.accepted.Load() > before+1000 })
		l.stop()
		f.keysReach(t, int(l.accepted.Load()))
		empty()
		until(t, "it writes again", func() bool { facts := replica.facts(); return facts.Files != nil && !facts.Files.WriteFailed })
		if got := replica.serverPID(t); got != pid {
			t.Errorf("the server was started again: it is process %d, was %d", got, pid)
		}
	})
}

// A rewrite that failed for want of space is made up for as soon as there is some.
func TestAFailedRewriteIsMadeUpFor(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 1)
		m := f.members[0]
		empty := m.fill(t)
		until(t, "the ballast is released", func() bool { return m.ballast() == 0 })
		m.fill(t)
		m.operate(t, func(c *valkey.Conn) error { _, _ = c.Raw(t.Context(), "BGREWRITEAOF"); return nil })
		until(t, "the rewrite has failed", func() bool { facts := m.facts(); return facts.Files != nil && facts.Files.RewriteFailed })
		empty()
		until(t, "the log is rewritten", func() bool { facts := m.facts(); return facts.Files != nil && !facts.Files.RewriteFailed })
	})
}

func (m *member) stopQuietly(t *testing.T) error {
	t.Helper()
	if code := m.stop(t); code != 0 {
		return fmt.Errorf("exit code %d, want 0", code)
	}
	return nil
}

// A server that syncs each write ends when it cannot. It comes back in the same
// container with all that it has acknowledged, once there is space.
func TestAServerThatSyncsEachWriteComesBack(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 1)
		m := f.members[0]
		must(t, m.stopQuietly(t))
		m.settle(t, everysec+"appendfsync always\n")
		m.start(t)
		f.allReady(t)
		pid := m.serverPID(t)
		empty := m.fill(t)
		l := m.load(t)
		until(t, "the server has ended", func() bool { return m.facts().LastStop != nil && m.serverPIDNow() != pid })
		l.stop()
		empty()
		f.allReady(t)
		if keys, _ := m.keys(); keys != fmt.Sprint(l.accepted.Load()) {
			t.Errorf("%s keys after all, want the %d accepted", keys, l.accepted.Load())
		}
	})
}
