// Package process keeps track of the first processes of the lab's namespaces.
// Such a process is process 1 of a PID namespace, so ending it ends everything
// inside, with its mounts, addresses and loop devices.
//
// A process is named by its pid and its start time, so a reused pid is never
// hit. Nothing here ends a process by its name.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"valkey.io/valkey-operator/lab/internal/wait"
)

// startTime is when a process started, in clock ticks since boot; "" where
// there is no such process or it is already dead.
func startTime(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name in the second field may hold spaces and brackets.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 || f[0] == "X" || f[0] == "Z" && threads(pid) <= 1 {
		return ""
	}
	return f[19]
}

// threads counts a process's threads. Of several the first may be a zombie
// already while the others, and with them its namespace, are still ending.
func threads(pid int) int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0
	}
	return len(tasks)
}

// Record is a file that says which process runs under a name.
type Record string

// Pid is the process recorded, 0 where it does not run.
func (r Record) Pid() int {
	b, err := os.ReadFile(string(r))
	if err != nil {
		return 0
	}
	var pid int
	var start string
	if _, err := fmt.Sscan(string(b), &pid, &start); err != nil {
		return 0
	}
	if pid > 1 && startTime(pid) == start {
		return pid
	}
	return 0
}

func (r Record) write(pid int) error {
	if err := os.MkdirAll(filepath.Dir(string(r)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(string(r), fmt.Appendf(nil, "%d %s\n", pid, startTime(pid)), 0o644)
}

// Launch says how a first process starts.
type Launch struct {
	Record Record
	Log    string
	Files  []*os.File // handed over as descriptors 3 and on; the gate follows them
	Args   []string
	Env    []string
}

// Start starts the process in namespaces of its own (PID, mount, network, UTS,
// IPC). It runs up to WaitAtGate until open is called, so that the caller can
// wire up its network. Where the caller ends without opening, the gate opens.
func (l Launch) Start() (pid int, open func(), err error) {
	log, err := os.OpenFile(l.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, nil, err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	cmd := exec.Command(l.Args[0], l.Args[1:]...)
	cmd.Env, cmd.Dir = l.Env, "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = append(l.Files, r)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
		syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	if err := cmd.Start(); err != nil {
		w.Close()
		return 0, nil, err
	}
	pid = cmd.Process.Pid
	if err := l.Record.write(pid); err != nil {
		w.Close()
		return 0, nil, errors.Join(err, cmd.Process.Kill())
	}
	return pid, func() { w.Close() }, cmd.Process.Release()
}

// End ends the process recorded: in order with SIGTERM, or at once as a power
// cut would. It returns when the process is gone; one that is slow to end is
// killed after grace.
func (r Record) End(ctx context.Context, grace time.Duration) error {
	pid := r.Pid()
	if pid == 0 {
		return nil
	}
	gone := func() bool { return r.Pid() == 0 }
	if grace > 0 {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if wait.Until(ctx, grace, gone) {
			return nil
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	if !wait.Until(ctx, 30*time.Second, gone) {
		return fmt.Errorf("process %d does not end", pid)
	}
	return nil
}
