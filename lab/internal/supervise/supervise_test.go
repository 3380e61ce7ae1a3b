package supervise

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"valkey.io/valkey-operator/lab/internal/wait"
)

// dirVariable makes the test's program a supervisor, process 1 of a namespace.
const dirVariable = "SUPERVISE_TEST_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := Supervisor{Bin: dir, LogDir: dir, Services: []Service{
		{Name: "first", Args: []string{"service", "first"}, Ready: func() bool {
			_, err := os.Stat(filepath.Join(dir, "first.up"))
			return err == nil
		}},
		{Name: "second", Args: []string{"service", "second"}},
	}}
	s.Run(ctx)
}

// service says when it starts and when it is asked to end, and leaves an
// orphan behind to be reaped.
const service = `#!/bin/sh
cd "$(dirname "$0")"
(sleep 0.1 &)
trap 'echo "$1 ended" >>events; exit' TERM
echo "$1 started" >>events
touch "$1.up"
while :; do sleep 0.05; done
`

func TestServicesStartInOrderComeBackAndEndLastFirst(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("this test makes a PID namespace: run it as root")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "service"), []byte(service), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), dirVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	events := func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "events"))
		return strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", ", ")
	}
	reach := func(want string) {
		t.Helper()
		if !wait.Until(t.Context(), 30*time.Second, func() bool { return events() == want }) {
			t.Fatalf("events are %q, want %q", events(), want)
		}
	}
	reach("first started, second started")
	kill(t, cmd.Process.Pid, "first")
	reach("first started, second started, first started")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	reach("first started, second started, first started, second ended, first ended")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the supervisor ends in order: %v", err)
	}
}

// kill ends a service without notice: the supervisor's child that was started
// by that name.
func kill(t *testing.T, parent int, name string) {
	t.Helper()
	children, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range children {
		p, err := os.FindProcess(childNamed(file, parent, name))
		if err == nil && p.Pid > 0 {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no child %q", name)
}

// childNamed is the process of a /proc/PID/stat file, 0 where it is not the
// parent's child of that name.
func childNamed(stat string, parent int, name string) int {
	b, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	line, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
	if err != nil || len(fields) < 4 || fields[3] != strconv.Itoa(parent) || !strings.HasSuffix(string(line), "\x00"+name+"\x00") {
		return 0
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return pid
}
