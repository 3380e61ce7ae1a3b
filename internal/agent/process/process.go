// Package process runs one server process: it starts it, passes its output on,
// signals it and collects its end, and with it every orphan, when this process
// is the first one of its container.
//
// It knows nothing of Valkey and never restarts anything.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// drainTime bounds how long the last output of an ended server is waited for:
// a child that outlives it may keep the pipe open.
const drainTime = time.Second

// Command says what to run.
type Command struct {
	// Path is the program's, or its name to be found on PATH.
	Path string
	Args []string
	// Inherited stays open in the process as descriptor 3 until it ends.
	Inherited *os.File
	// Output gets what the process writes to standard output and error.
	Output io.Writer
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, or 128 and the number of the signal that ended it.
	Code int
	// Signal is 0 for a process that exited by itself.
	Signal syscall.Signal
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ended by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// Server is a started process.
type Server struct {
	pid  int
	done chan struct{}
	exit Exit
}

// Start runs the command.
func Start(command Command) (*Server, error) {
	path, err := exec.LookPath(command.Path)
	if err != nil {
		return nil, fmt.Errorf("finding the server's program: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	process, err := os.StartProcess(path, append([]string{command.Path}, command.Args...), &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{nil, writer, writer, command.Inherited},
	})
	_ = writer.Close()
	if err != nil {
		_ = reader.Close()
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	server := &Server{pid: process.Pid, done: make(chan struct{})}
	_ = process.Release() // its end is collected here, together with those of orphans
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(command.Output, reader)
	}()
	go server.collect(reader, drained)
	return server, nil
}

// Done is closed when the process has ended and its output was passed on.
func (s *Server) Done() <-chan struct{} { return s.done }

// Exit is how the process ended. It is valid once Done is closed.
func (s *Server) Exit() Exit { return s.exit }

// Signal sends a signal; a process that has ended is no error.
func (s *Server) Signal(signal syscall.Signal) error {
	select {
	case <-s.done:
		return nil
	default:
	}
	if err := syscall.Kill(s.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signalling the server: %w", err)
	}
	return nil
}

// NoFileLimit lets files become as large as the system allows.
const NoFileLimit = unix.RLIM_INFINITY

// LimitFiles bounds how many bytes long any file may become that the process
// writes from now on: a write beyond that fails, as on a full disk. The process
// must have been started by a program that ignores SIGXFSZ.
func (s *Server) LimitFiles(bytes uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(s.pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return fmt.Errorf("reading the server's file limit: %w", err)
	}
	limit.Cur = min(bytes, limit.Max)
	if err := unix.Prlimit(s.pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		return fmt.Errorf("setting the server's file limit: %w", err)
	}
	return nil
}

func (s *Server) collect(output *os.File, drained <-chan struct{}) {
	status := wait(s.pid)
	_ = output.SetReadDeadline(time.Now().Add(drainTime))
	<-drained
	_ = output.Close()
	s.exit = Exit{Code: status.ExitStatus()}
	if status.Signaled() {
		s.exit = Exit{Code: 128 + int(status.Signal()), Signal: status.Signal()}
	}
	close(s.done)
}

// wait returns how the process ended. The first process of a container inherits
// all orphans in it, and collects them on the way.
func wait(pid int) syscall.WaitStatus {
	whom := pid
	if os.Getpid() == 1 {
		whom = -1
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(whom, &status, 0, nil)
		if ended == pid {
			return status
		}
		if errors.Is(err, syscall.ECHILD) {
			return 0
		}
	}
}
