package agent_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

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

// fill leaves no byte of the volume, and returns what makes space again.
func (m *member) fill(t *testing.T) (empty func()) {
	t.Helper()
	file, err := os.CreateTemp(m.data(""), "fill-")
	must(t, err)
	defer func() { _ = file.Close() }()
	for block := make([]byte, 1<<20); len(block) > 0; {
		switch _, err := file.Write(block); {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:len(block)/2]
		case err != nil:
			t.Fatal(err)
		}
	}
	return func() { must(t, os.Remove(file.Name())) }
}

func (m *member) ballast() int64 { return volume.Ballast(m.data("")) }
