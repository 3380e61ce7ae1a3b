package cluster

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// What follows runs inside the namespaces of the hub or a node, as process 1.

func mount(source, target, fstype string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, fstype, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

func bind(source, target string) error { return mount(source, target, "", syscall.MS_BIND, "") }

// enter cuts this process's mounts off from the machine's, gives it a /proc of
// its own PID namespace and a host name.
func enter(name string) error {
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	return syscall.Sethostname([]byte(name))
}

// waitAtGate blocks until the launcher has wired up the network.
func waitAtGate(fd uintptr) error {
	gate := os.NewFile(fd, "gate")
	defer gate.Close()
	_, err := io.Copy(io.Discard, gate)
	return err
}
