//go:build servers

package valkey_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// patience bounds every wait; waits end as soon as their condition holds.
	patience = 60 * time.Second
	// nodeTimeout is cluster-node-timeout of the real servers: short enough for
	// a test, and longer than a busy machine stalls.
	nodeTimeout = 2 * time.Second
	// clientPort can be the same everywhere: each server has an address of its own.
	clientPort = 6379
)

func TestContractOnServers(t *testing.T) {
	t.Parallel()
	for version, program := range serverPrograms(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			holdContract(t, func(*testing.T) bench { return &metal{program: program} })
		})
	}
}

// serverPrograms are the servers to test against, by version. They are named
// by VALKEY_SERVERS ("8.1=/path/valkey-server,9.1=…") or stand in the lab's cache.
func serverPrograms(t *testing.T) map[string]string {
	t.Helper()
	programs := map[string]string{}
	if named := os.Getenv("VALKEY_SERVERS"); named != "" {
		for pair := range strings.SplitSeq(named, ",") {
			version, path, _ := strings.Cut(pair, "=")
			programs[version] = path
		}
	} else {
		for _, version := range []string{"8.1", "9.1"} {
			programs[version] = filepath.Join(labCache(t), "servers", version, "valkey-server")
		}
	}
	for version, path := range programs {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("There is no Valkey %s at %q: run `make servers` to fetch it, or name one in VALKEY_SERVERS.", version, path)
		}
	}
	return programs
}

func labCache(t *testing.T) string {
	t.Helper()
	if cache := os.Getenv("LAB"); cache != "" {
		return cache
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(home, ".cache", "valkey-operator-lab")
}

// metal is the bench of real servers. Each has a directory and an address of
// 127.0.0.0/8 of its own.
type metal struct {
	program   string
	processes []*process
	settings  []string // added to every server's command line
}

type process struct {
	dir, host string
	command   *exec.Cmd
}

func (m *metal) add(t *testing.T, count int) {
	t.Helper()
	for range count {
		p := &process{dir: t.TempDir(), host: anyHost()}
		t.Cleanup(func() { p.cleanUp(t) })
		m.processes = append(m.processes, p)
		m.run(t, p)
	}
}

// anyHost is one of some sixteen million addresses, so that tests that run at
// the same time do not meet.
func anyHost() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// run starts the process and waits until it answers, if only that it loads.
func (m *metal) run(t *testing.T, p *process, extra ...string) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	// With fsync every second a killed server may lose what it acknowledged while
	// an fsync was under way: it puts off its writes for that long.
	words := []string{
		"--bind", p.host, "--bind-source-addr", p.host, "--port", fmt.Sprint(clientPort), "--dir", p.dir,
		"--cluster-enabled", "yes", "--cluster-node-timeout", fmt.Sprint(nodeTimeout.Milliseconds()),
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--repl-diskless-sync-delay", "0",
	}
	words = append(words, m.settings...)
	p.command = exec.Command(m.program, append(words, extra...)...)
	p.command.Stdout, p.command.Stderr = log, log
	// Should the test itself be killed, its servers go with it.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	m.until(t, "the server answers", func() bool {
		conn, err := valkey.Dial(t.Context(), p.target())
		if err != nil {
			return valkey.Answered(err)
		}
		defer conn.Close()
		return valkey.Answered(conn.Ping(t.Context()))
	})
}

func (p *process) target() valkey.Target {
	return valkey.Target{Address: fmt.Sprintf("%s:%d", p.host, clientPort)}
}

func (p *process) kill() {
	if p.command == nil {
		return
	}
	// Both may fail only because the process has ended, which is what is wanted.
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
	p.command = nil
}

// cleanUp ends the process, and shows the end of its log when the test failed.
func (p *process) cleanUp(t *testing.T) {
	t.Helper()
	p.kill()
	if !t.Failed() {
		return
	}
	const lines = 15
	log, err := os.ReadFile(filepath.Join(p.dir, "log"))
	last := strings.Split(strings.TrimSpace(string(log)), "\n")
	t.Logf("%s (%v):\n%s", p.host, err, strings.Join(last[max(0, len(last)-lines):], "\n"))
}

func (m *metal) dial(t *testing.T, server int) *valkey.Conn {
	t.Helper()
	conn, err := valkey.Dial(t.Context(), m.processes[server].target())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func (m *metal) connect(t *testing.T, server int) link {
	t.Helper()
	return m.dial(t, server)
}

func (m *metal) place(server int) (host string, port int) {
	return m.processes[server].host, clientPort
}

func (m *metal) kill(_ *testing.T, server int) { m.processes[server].kill() }

func (m *metal) stop(t *testing.T, server int) {
	t.Helper()
	m.signal(t, server, syscall.SIGTERM)
	// A server that is told to end, ends with 0; the deadline is the tests' own.
	if err := m.processes[server].command.Wait(); err != nil {
		t.Errorf("the end of server %d: %v", server, err)
	}
	m.processes[server].command = nil
}

func (m *metal) slowSync(t *testing.T, server int) {
	t.Helper()
	conn := m.dial(t, server)
	defer conn.Close()
	// A quarter of a second for each of the thirty keys.
	if err := conn.ConfigSet(t.Context(), "rdb-key-save-delay", "250000"); err != nil {
		t.Fatal(err)
	}
}

func (m *metal) silence(t *testing.T, server int) {
	t.Helper()
	m.signal(t, server, syscall.SIGSTOP)
}

func (m *metal) wake(t *testing.T, server int) {
	t.Helper()
	m.signal(t, server, syscall.SIGCONT)
}

func (m *metal) signal(t *testing.T, server int, signal syscall.Signal) {
	t.Helper()
	if err := m.processes[server].command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

func (m *metal) start(t *testing.T, server int, how restart) {
	t.Helper()
	p := m.processes[server]
	var extra []string
	switch how {
	case same:
	case moved:
		p.host = anyHost()
	case emptied:
		p.remove(t, "appendonlydir")
	case blank:
		p.remove(t, "appendonlydir")
		p.remove(t, "nodes.conf")
	case barred:
		extra = []string{"--primaryuser", "nobody", "--primaryauth", "wrong"}
	case slowly:
		m.rewrite(t, server)
		// One second per key, answering after every kilobyte: a key has more.
		m.run(t, p, "--key-load-delay", "1000000", "--loading-process-events-interval-bytes", "1024")
		return
	}
	m.runLoaded(t, server, extra...)
}

// runLoaded starts the process and waits until it has read its dataset.
func (m *metal) runLoaded(t *testing.T, server int, extra ...string) {
	t.Helper()
	m.run(t, m.processes[server], extra...)
	conn := m.dial(t, server)
	defer conn.Close()
	m.until(t, "the dataset is loaded", func() bool { return conn.Ping(t.Context()) == nil })
}

func (p *process) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// rewrite brings all keys into the base file: only its loading can be slowed down.
func (m *metal) rewrite(t *testing.T, server int) {
	t.Helper()
	m.runLoaded(t, server)
	conn := m.dial(t, server)
	defer conn.Close()
	if err := conn.RewriteLog(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.until(t, "the rewrite is over", func() bool {
		view, err := conn.View(t.Context())
		return err == nil && view.Info.Persistence.AOFBaseBytes > 0 && !view.Info.Persistence.AOFRewriteInProgress
	})
	m.kill(t, server)
}

// valueBytes is more than the least interval in which a loading server answers.
const valueBytes = 2048

func (m *metal) write(t *testing.T, key string) {
	t.Helper()
	var refusals error
	for server, p := range m.processes {
		if p.command == nil {
			continue
		}
		conn := m.dial(t, server)
		said, err := conn.Raw(t.Context(), "SET", key, incompressible(key))
		conn.Close()
		if err == nil && said == "OK" {
			return
		}
		refusals = errors.Join(refusals, err)
	}
	t.Fatalf("nobody takes %s: %v", key, refusals)
}

// incompressible is a long value that a dump cannot make short.
func incompressible(key string) string {
	source := rand.NewPCG(uint64(len(key)), uint64(valkey.KeySlot(key)))
	text := make([]byte, 0, valueBytes)
	for len(text) < valueBytes {
		text = fmt.Appendf(text, "%016x", source.Uint64())
	}
	return string(text)
}

func (m *metal) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// linger is the one plain wait: that nothing happens is no condition to wait for.
func (m *metal) linger() { time.Sleep(2 * nodeTimeout) }
