package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// patience bounds every wait; waits end as soon as their condition holds.
	patience = 60 * time.Second
	// pause is the time between two looks at a condition.
	pause = 50 * time.Millisecond
	// clusterID is the cluster of all members under test.
	clusterID = "8f14e45f-ceea-467f-a0e6-1b4c3f0a9d11"
	// settings are what an operator would give to the whole cluster. Every write
	// is durable before it is acknowledged, so that none may be missing later.
	settings = `
appendonly yes
appendfsync always
save ""
cluster-node-timeout 2000
cluster-require-full-coverage no
cluster-allow-replica-migration no
repl-diskless-sync-delay 0
replica-ignore-disk-write-errors yes
repl-diskless-load on-empty-db
`
)

// fleet is a cluster of members, each an agent and its server with an address
// and directories of their own.
type fleet struct {
	shared  string // the operator's files
	program string
	members []*member
}

// member is one of them. Its agent is the first process of a process
// namespace, as in a container: when it ends, all its processes end.
type member struct {
	fleet       *fleet
	shard, node int
	host, dir   string
	environment []string
	mostBallast int64
	command     *exec.Cmd
	ended       chan struct{}
}

// newFleet makes members, not started, for shards with so many nodes each.
func newFleet(t *testing.T, program string, nodes ...int) *fleet {
	t.Helper()
	f := &fleet{shared: t.TempDir(), program: program}
	list := protocol.Members{ClusterID: clusterID}
	for shard, count := range nodes {
		var indices []int
		for node := range count {
			indices = append(indices, node)
			f.members = append(f.members, f.newMember(t, shard, node))
		}
		list.Shards = append(list.Shards, indices)
	}
	text, err := json.Marshal(list)
	must(t, err)
	f.write(t, "members.json", string(text))
	f.write(t, userOperator, "operator-secret")
	f.write(t, userReplication, "replication-secret")
	f.write(t, "users.acl", "user "+userOperator+" on >operator-secret "+valkey.OperatorACL()+"\n"+
		"user "+userReplication+" on >replication-secret "+valkey.ReplicationACL()+"\n")
	return f
}

const (
	userOperator    = "_operator"
	userReplication = "_replication"
)

func (f *fleet) newMember(t *testing.T, shard, node int) *member {
	t.Helper()
	m := &member{fleet: f, shard: shard, node: node, dir: t.TempDir(), host: fmt.Sprintf(
		"127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))}
	for _, name := range []string{"data", "run"} {
		must(t, os.Mkdir(filepath.Join(m.dir, name), 0o755))
	}
	m.settle(t, "")
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(m.dir, "log"))
			t.Logf("log of %s:\n%s", m, log)
		}
	})
	return m
}

// settle writes the operator's settings, with more of a test's own.
func (m *member) settle(t *testing.T, more string) {
	t.Helper()
	text := settings + "bind-source-addr " + m.host + "\n" + more
	must(t, os.WriteFile(filepath.Join(m.dir, "valkey.conf"), []byte(text), 0o600))
}

func (f *fleet) write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(f.shared, name), []byte(text), 0o600))
}

func (m *member) String() string {
	return fmt.Sprintf("shard %d node %d (%s)", m.shard, m.node, m.host)
}

func (m *member) data(name string) string { return filepath.Join(m.dir, "data", name) }

func (m *member) config() agent.Config {
	var peers []string
	for _, peer := range m.fleet.members {
		peers = append(peers, peer.host)
	}
	return agent.Config{
		Identity: volume.Identity{ClusterID: clusterID, Shard: m.shard, Node: m.node},
		Peers:    peers,
		Data:     m.data(""), Run: filepath.Join(m.dir, "run"),
		Settings: filepath.Join(m.dir, "valkey.conf"), Members: filepath.Join(m.fleet.shared, "members.json"),
		ACL: filepath.Join(m.fleet.shared, "users.acl"), Passwords: m.fleet.shared,
		PodIP: m.host, Bind: m.host, Program: m.fleet.program, MostBallast: m.mostBallast,
	}
}

// start starts the member's agent.
func (m *member) start(t *testing.T) { m.startAs(t, m.config()) }

func (m *member) startAs(t *testing.T, config agent.Config) {
	t.Helper()
	text, err := json.Marshal(config)
	must(t, err)
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	defer func() { _ = log.Close() }()
	m.command = exec.Command("/proc/self/exe")
	m.command.Env = append(append(os.Environ(), actAsAgent+"="+string(text)), m.environment...)
	m.command.Stdout, m.command.Stderr = log, log
	m.command.SysProcAttr = firstProcess()
	must(t, m.command.Start())
	command, ended := m.command, make(chan struct{})
	m.ended = ended
	go func() {
		_ = command.Wait()
		close(ended)
	}()
}

// firstProcess makes a process the first one of a namespace that ends with it,
// and with the test itself.
func firstProcess() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// kill ends the member's whole container at once.
func (m *member) kill() {
	if m.command != nil {
		_ = m.command.Process.Kill()
		<-m.ended
	}
}

// stop ends the member as the kubelet does and returns the agent's exit code.
func (m *member) stop(t *testing.T) int {
	t.Helper()
	must(t, m.command.Process.Signal(syscall.SIGTERM))
	return m.await(t)
}

// await waits for the agent's end and returns its exit code.
func (m *member) await(t *testing.T) int {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(patience):
		t.Fatalf("%s does not end", m)
	}
	return m.command.ProcessState.ExitCode()
}

func (m *member) facts() protocol.Facts {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	facts, err := protocol.Get(ctx, http.DefaultClient, m.host)
	if err != nil {
		return protocol.Facts{}
	}
	return facts
}

// probe is the status that a probe's path answers.
func (m *member) probe(path string) int {
	url := "http://" + net.JoinHostPort(m.host, strconv.Itoa(protocol.Port)) + path
	client := http.Client{Timeout: patience}
	response, err := client.Get(url)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// probesAnswer checks what the three probes answer.
func (m *member) probesAnswer(t *testing.T, started, live, ready int) {
	t.Helper()
	got := [3]int{m.probe(protocol.PathStarted), m.probe(protocol.PathLive), m.probe(protocol.PathReady)}
	if want := [3]int{started, live, ready}; got != want {
		t.Errorf("started, live and ready answer %v, want %v", got, want)
	}
}

// until waits for a condition, and fails the test when it does not come.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
