package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked means that somebody else holds the volume.
var ErrLocked = errors.New("the volume is in use by another agent or its server")

// Lock takes the volume, or fails at once with ErrLocked. The volume is held
// until the returned file is closed in this process and in each one that
// inherited it. The server inherits it, so that not even the agent's death lets
// a second server in while the first one or its saving child still runs.
//
// The server's own lock on its node table is not enough: the first rewrite
// replaces the file, and the lock stays with the old one.
func Lock(data string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Join(data, ownDirectory), 0o755); err != nil {
		return nil, fmt.Errorf("preparing the volume: %w", err)
	}
	file, err := os.OpenFile(ownFile(data, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the volume's lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, fmt.Errorf("locking the volume: %w", err)
}
