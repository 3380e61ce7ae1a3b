//go:build servers

package agent_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
)

// killedStops is how many stops are cut short by a kill.
const killedStops = 4

// A member that is killed at any moment of its stop loses no write that a replica
// has: neither the one who was to take over nor the one who comes back is behind.
func TestAStopThatIsCutShortLosesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		l := f.keepLedger(t, &ledger{limit: time.Second, replicated: true})
		for range killedStops {
			primary := f.primary(t, 0)
			must(t, primary.command.Process.Signal(syscall.SIGTERM))
			// Any moment of the stop, and of the outage after it, is what is tried.
			time.Sleep(time.Duration(rand.Int64N(int64(600 * time.Millisecond))))
			primary.kill()
			time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Second))))
			primary.start(t)
			f.allReady(t)
			l.nothingUndone(t)
		}
		l.stop()
		if len(l.last) == 0 {
			t.Error("no write was acknowledged and replicated")
		}
	})
}

// A replica that is on its way out is handed nothing: the primary says so and
// stops at once.
func TestNothingIsHandedToAMemberThatStops(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		primary, replica := f.node(0, 0), f.node(0, 1)
		stuck := []*member{replica}
		signalServers(t, syscall.SIGSTOP, stuck)
		must(t, replica.command.Process.Signal(syscall.SIGTERM))
		until(t, "the replica says that it is stopping", func() bool { return replica.facts().Server == protocol.ServerStopping })
		if code := primary.stop(t); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		signalServers(t, syscall.SIGCONT, stuck)
		replica.await(t)
		if log := primary.log(t); !strings.Contains(log, "its slots were not handed over: node 1 is stopping") {
			t.Error("the primary does not say why it handed nothing over")
		}
		primary.start(t)
		replica.start(t)
		f.allReady(t)
		if role := primary.facts().Role; role != protocol.RolePrimary {
			t.Errorf("the former primary came back as %s", role)
		}
	})
}

// A primary that cannot write its disk hands over to a replica that has all in
// memory, and then ends without a wait for space.
func TestAPrimaryWithAFullDiskHandsOver(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 2)
		primary, replica := f.node(0, 0), f.node(0, 1)
		l := primary.load(t)
		until(t, "writes are accepted", func() bool { return l.accepted.Load() > 100 })
		primary.fill(t)
		until(t, "writes are refused", func() bool { return l.refused.Load() > 0 })
		until(t, "the ballast is released", func() bool { return primary.ballast() == 0 })
		l.stop()
		must(t, primary.command.Process.Signal(syscall.SIGTERM))
		until(t, "the replica is primary", func() bool { return replica.facts().Role == protocol.RolePrimary })
		if code := primary.await(t); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		if keys, _ := replica.keys(); keys != strconv.FormatInt(l.accepted.Load(), 10) {
			t.Errorf("%s keys on the successor, want the %d accepted", keys, l.accepted.Load())
		}
	})
}
