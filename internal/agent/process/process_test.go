package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/agent/process"
)

// The test's own program plays the servers under test: its first argument says
// which part, when it is one of these.
var parts = map[string]func(arguments []string){
	"exits":   exits,
	"endless": endless,
	"refuses": refuses,
	"writes":  writes,
	"first":   first,
	"server":  server,
	"middle":  middle,
	"leaf":    func([]string) {},
}

const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if part, found := parts[os.Args[1]]; found {
			part(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func exits(arguments []string) {
	fmt.Println("to standard output")
	fmt.Fprintln(os.Stderr, "to standard error")
	code, _ := strconv.Atoi(arguments[0])
	os.Exit(code)
}

func endless([]string) {
	fmt.Println("up")
	time.Sleep(patience)
}

// refuses ends at the second request only.
func refuses([]string) {
	requests := make(chan os.Signal, 2)
	signal.Notify(requests, syscall.SIGTERM)
	fmt.Println("up")
	<-requests
	fmt.Println("refused")
	<-requests
}

// writes adds a block to a file at each request, and says how that went.
func writes(arguments []string) {
	signal.Ignore(syscall.SIGXFSZ)
	requests := make(chan os.Signal, 1)
	signal.Notify(requests, syscall.SIGTERM)
	fmt.Println("up")
	for range requests {
		err := os.WriteFile(arguments[0], make([]byte, 100), 0o600)
		if errors.Is(err, syscall.EFBIG) {
			fmt.Println("too large")
		} else {
			fmt.Println("written", err)
		}
	}
}

// first is the first process of a namespace; its exit code is its server's.
func first([]string) {
	started, err := process.Start(process.Command{Path: "/proc/self/exe", Args: []string{"server"}, Output: os.Stdout})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	<-started.Done()
	os.Exit(started.Exit().Code)
}

// server makes an orphan and succeeds when the orphan is collected.
func server([]string) {
	answer, err := exec.Command("/proc/self/exe", "middle").Output()
	orphan, scanErr := strconv.Atoi(strings.TrimSpace(string(answer)))
	if err = errors.Join(err, scanErr); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for deadline := time.Now().Add(patience); !errors.Is(syscall.Kill(orphan, 0), syscall.ESRCH); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Println("the orphan was never collected")
			os.Exit(1)
		}
	}
}

func middle([]string) {
	leaf := exec.Command("/proc/self/exe", "leaf")
	if err := leaf.Start(); err != nil {
		os.Exit(1)
	}
	fmt.Println(leaf.Process.Pid)
}

// run starts a part and returns it with what passed through so far.
func run(t *testing.T, inherited *os.File, arguments ...string) (*process.Server, *process.Tail) {
	t.Helper()
	tail := process.NewTail(io.Discard, 10)
	started, err := process.Start(process.Command{Path: "/proc/self/exe", Args: arguments, Inherited: inherited, Output: tail})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = started.Signal(syscall.SIGKILL)
		<-started.Done()
	})
	return started, tail
}

func await(t *testing.T, started *process.Server) process.Exit {
	t.Helper()
	select {
	case <-started.Done():
		return started.Exit()
	case <-time.After(patience):
		t.Fatal("the process does not end")
		return process.Exit{}
	}
}

func awaitLine(t *testing.T, tail *process.Tail, line string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		lines := tail.Lines()
		if len(lines) > 0 && lines[len(lines)-1] == line {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no line %q, only %q", line, lines)
		}
	}
}

func TestExitCodeAndOutput(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 3} {
		started, tail := run(t, nil, "exits", strconv.Itoa(code))
		if got, want := await(t, started), (process.Exit{Code: code}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if diff := cmp.Diff([]string{"to standard output", "to standard error"}, tail.Lines()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		if err := started.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("signalling an ended process: %v", err)
		}
	}
}

func TestEndBySignal(t *testing.T) {
	t.Parallel()
	started, tail := run(t, nil, "endless")
	awaitLine(t, tail, "up")
	if err := started.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got, want := await(t, started), (process.Exit{Code: 137, Signal: syscall.SIGKILL}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestARefusalToEndIsOutlasted(t *testing.T) {
	t.Parallel()
	started, tail := run(t, nil, "refuses")
	awaitLine(t, tail, "up")
	_ = started.Signal(syscall.SIGTERM)
	awaitLine(t, tail, "refused")
	select {
	case <-started.Done():
		t.Fatal("a process that refused to end counts as ended")
	default:
	}
	_ = started.Signal(syscall.SIGTERM)
	if got := await(t, started); got.Code != 0 {
		t.Errorf("got %v, want a clean exit", got)
	}
}

//nolint:paralleltest // a process that another test starts would have a copy of the lock between fork and exec
func TestTheProcessKeepsWhatItInherits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	mine := lockable(t, path)
	if err := lock(mine); err != nil {
		t.Fatal(err)
	}
	started, tail := run(t, mine, "endless")
	awaitLine(t, tail, "up")
	_ = mine.Close()
	other := lockable(t, path)
	if err := lock(other); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("while the process runs: %v, want a lock that is held", err)
	}
	_ = started.Signal(syscall.SIGKILL)
	await(t, started)
	if err := lock(other); err != nil {
		t.Errorf("after the process has ended: %v", err)
	}
}

func lockable(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

func TestTheFirstProcessCollectsOrphans(t *testing.T) {
	t.Parallel()
	command := exec.Command("/proc/self/exe", "first")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	}
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

func TestAProgramThatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := process.Start(process.Command{Path: "no-such-program", Output: io.Discard}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want %v", err, exec.ErrNotFound)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	tests := map[string]struct {
		writes []string
		want   []string
	}{
		"nothing":                  {want: []string{}},
		"whole lines":              {writes: []string{"a\nb\n"}, want: []string{"a", "b"}},
		"a line in pieces":         {writes: []string{"a", "b", "\nc"}, want: []string{"ab", "c"}},
		"the last lines only":      {writes: []string{"a\nb\nc\n", "d\n"}, want: []string{"b", "c", "d"}},
		"carriage returns are cut": {writes: []string{"a\r\n"}, want: []string{"a"}},
		"long lines are cut":       {writes: []string{long, long + "\n", "b\n"}, want: []string{long[:512], "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var through strings.Builder
			tail := process.NewTail(&through, 3)
			for _, text := range test.writes {
				_, _ = tail.Write([]byte(text))
			}
			if diff := cmp.Diff(test.want, tail.Lines()); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if through.String() != strings.Join(test.writes, "") {
				t.Error("not everything passed through")
			}
		})
	}
}

func TestLimitFiles(t *testing.T) {
	t.Parallel()
	started, tail := run(t, nil, "writes", filepath.Join(t.TempDir(), "file"))
	awaitLine(t, tail, "up")
	for _, step := range []struct {
		limit uint64
		want  string
	}{{10, "too large"}, {process.NoFileLimit, "written <nil>"}, {99, "too large"}, {100, "written <nil>"}} {
		if err := started.LimitFiles(step.limit); err != nil {
			t.Fatal(err)
		}
		if err := started.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		awaitLine(t, tail, step.want)
	}
}

func TestLimitFilesOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	started, _ := run(t, nil, "exits", "0")
	await(t, started)
	if err := started.LimitFiles(10); err == nil {
		t.Error("no error")
	}
}
