// Package supervise is what process 1 of a lab's namespace does: it starts
// services in order, starts again those that end, reaps orphans, and ends the
// services last first.
//
// It must run as process 1 of a PID namespace: it waits for every child there
// is, and when it returns the kernel ends whatever is left.
package supervise

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"valkey.io/valkey-operator/lab/internal/wait"
)

// readyLimit bounds the wait for one service before the next one is started
// anyway: a service that never gets ready has said why in its log by then.
const readyLimit = time.Minute

// Service is a process that is kept running.
type Service struct {
	Name string
	Args []string // Args[0] is a program in the supervisor's directory
	// Ready says whether the next service may start; nil means at once.
	Ready func() bool
}

// Supervisor keeps services running.
type Supervisor struct {
	Bin      string // the programs' directory
	LogDir   string // NAME.log for each service
	Services []Service

	mu       sync.Mutex
	running  map[int]int // pid to the service's index
	stopping bool
	died     chan int
}

// Run starts the services and keeps them running until ctx ends.
func (s *Supervisor) Run(ctx context.Context) {
	s.running, s.died = map[int]int{}, make(chan int, 64)
	go s.reap()
	go s.startAll(ctx)
	for {
		select {
		case i := <-s.died:
			fmt.Println(time.Now().Format(time.TimeOnly), s.Services[i].Name, "ended; starting it again")
			time.AfterFunc(time.Second, func() { s.start(i) })
		case <-ctx.Done():
			s.stopAll() //nolint:contextcheck // the context has ended: that is why it stops
			return
		}
	}
}

func (s *Supervisor) startAll(ctx context.Context) {
	for i, service := range s.Services {
		s.start(i)
		if service.Ready != nil && !wait.Until(ctx, readyLimit, service.Ready) {
			fmt.Println(time.Now().Format(time.TimeOnly), service.Name, "is not ready; going on")
		}
	}
}

// start starts one service; a failure is written into its log and counts as
// its death, so that it is tried again.
func (s *Supervisor) start(i int) {
	service := s.Services[i]
	log, err := os.OpenFile(filepath.Join(s.LogDir, service.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Println(err)
		s.died <- i
		return
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		fmt.Println(err)
		s.died <- i
		return
	}
	defer null.Close()
	// Held while forking, so that reap does not see a pid it cannot place.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	p, err := os.StartProcess(filepath.Join(s.Bin, service.Args[0]), service.Args, &os.ProcAttr{
		Files: []*os.File{null, log, log},
		Env:   []string{"PATH=" + s.Bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
	})
	if err != nil {
		_, _ = fmt.Fprintln(log, "cannot start:", err)
		s.died <- i
		return
	}
	s.running[p.Pid] = i
	_ = p.Release() // reap waits for it
}

func (s *Supervisor) reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		if err != nil { // no child yet
			time.Sleep(200 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		i, ours := s.running[pid]
		delete(s.running, pid)
		s.mu.Unlock()
		if ours {
			s.died <- i
		}
	}
}

// stopAll ends the services last first, each with time to end in order.
func (s *Supervisor) stopAll() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	for i := range slices.Backward(s.Services) {
		pid := s.pid(i)
		if pid == 0 {
			continue
		}
		gone := func() bool { return s.pid(i) != pid }
		_ = syscall.Kill(pid, syscall.SIGTERM)
		if !wait.Until(context.Background(), 3*time.Second, gone) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			wait.Until(context.Background(), 2*time.Second, gone)
		}
	}
}

func (s *Supervisor) pid(i int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, j := range s.running {
		if j == i {
			return pid
		}
	}
	return 0
}
