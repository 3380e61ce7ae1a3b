package agent_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
)

// volumeSize is that of a volume of a member's own, in bytes.
const volumeSize = 64 << 20

// mount gives the member, before its first start, a volume of its own.
func (m *member) mount(t *testing.T) {
	t.Helper()
	must(t, syscall.Mount("tmpfs", m.data(""), "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", volumeSize)))
	t.Cleanup(func() {
		if err := syscall.Unmount(m.data(""), syscall.MNT_DETACH); err != nil {
			t.Errorf("the volume of %s is still there: %v", m, err)
		}
	})
	m.mostBallast = volume.MostBallast
}

// page is the least that a volume gives to a file, in bytes.
const page = 4 << 10

// fill leaves no page of the volume, and returns what makes space again.
func (m *member) fill(t *testing.T) (empty func()) {
	t.Helper()
	file, err := os.CreateTemp(m.data(""), "fill-")
	must(t, err)
	defer func() { _ = file.Close() }()
	end := int64(0)
	for step := int64(1 << 20); step >= page; {
		switch err := unix.Fallocate(int(file.Fd()), 0, end, step); {
		case err == nil:
			end += step
		case errors.Is(err, syscall.ENOSPC):
			step /= 2
		default:
			t.Fatal(err)
		}
	}
	return func() { must(t, os.Remove(file.Name())) }
}

// A server that ends for want of space is started again in the same container
// once there is some, and not before. The facts go on meanwhile.
func TestAServerThatLacksSpaceWaitsForIt(t *testing.T) {
	t.Parallel()
	m := newFleet(t, "/proc/self/exe", 1).members[0]
	m.mount(t)
	m.environment = []string{playServer + "=writes " + m.data("nodes.conf.tmp-1")}
	m.mostBallast = 0
	m.start(t)
	until(t, "the server is up", func() bool { return strings.Contains(m.log(t), "the server is up") })
	m.stop(t)
	must(t, os.Remove(m.data("nodes.conf.tmp-1")))
	empty := m.fill(t)
	m.start(t)
	until(t, "it waits", func() bool { return m.facts().Decision == protocol.DecisionVolumeFull })
	m.probesAnswer(t, http.StatusOK, http.StatusOK, http.StatusServiceUnavailable)
	facts := m.facts()
	if facts.Server != protocol.ServerHeld || !strings.Contains(facts.Message, "No space left on device") || facts.Disk == nil {
		t.Errorf("while it waits the facts are %+v", facts)
	}
	if count := strings.Count(m.log(t), "\nFatal: no table"); count != 1 {
		t.Errorf("it was started %d times on the full disk, want once", count)
	}
	empty()
	until(t, "the server is up again", func() bool { return strings.Count(m.log(t), "the server is up") == 2 })
	if code := m.stop(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func (m *member) ballast() int64 { return volume.Ballast(m.data("")) }
