//go:build servers

package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

// onServers runs a test against each version of the server.
func onServers(t *testing.T, test func(t *testing.T, program string)) {
	t.Parallel()
	for version, program := range serverPrograms(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, program)
		})
	}
}

// serverPrograms are the servers to test against, by version. They are named
// by VALKEY_SERVERS ("8.1=/path/valkey-server,9.1=…") or stand in the lab's cache.
func serverPrograms(t *testing.T) map[string]string {
	t.Helper()
	programs := map[string]string{}
	cache := os.Getenv("LAB")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache", "valkey-operator-lab")
	}
	for _, version := range []string{"8.1", "9.1"} {
		programs[version] = filepath.Join(cache, "servers", version, "valkey-server")
	}
	if named := os.Getenv("VALKEY_SERVERS"); named != "" {
		clear(programs)
		for pair := range strings.SplitSeq(named, ",") {
			version, path, _ := strings.Cut(pair, "=")
			programs[version] = path
		}
	}
	for version, path := range programs {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("There is no Valkey %s at %q: run `make servers` to fetch it, or name one in VALKEY_SERVERS.", version, path)
		}
	}
	return programs
}

// lose removes the member's data and leaves its place in the cluster.
func (m *member) lose(t *testing.T) {
	t.Helper()
	must(t, os.RemoveAll(m.data(volume.LogDirectory)))
	must(t, os.RemoveAll(m.data(volume.DumpFile)))
}

// dial connects as a client, or as the operator.
func (m *member) dial(user string) (*valkey.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	target := valkey.Target{Address: m.host + ":6379", Username: user}
	if user != "" {
		target.Password = "operator-secret"
	}
	return valkey.Dial(ctx, target)
}

// ask sends one command as a client.
func (m *member) ask(words ...string) (string, error) {
	conn, err := m.dial("")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return conn.Raw(ctx, words...)
}

// keys is the number of keys that the member holds, and false when it does not tell.
func (m *member) keys() (string, bool) {
	answer, err := m.ask("DBSIZE")
	return answer, err == nil
}

// operate has the operator do something on the member.
func (m *member) operate(t *testing.T, do func(*valkey.Conn) error) {
	t.Helper()
	conn, err := m.dial(userOperator)
	must(t, err)
	defer conn.Close()
	must(t, do(conn))
}

// form starts all members and makes them a cluster in which the first node of
// each shard is primary.
func (f *fleet) form(t *testing.T) {
	t.Helper()
	for _, m := range f.members {
		m.start(t)
	}
	f.all(t, "answer", func(m *member) bool { return m.facts().Server == protocol.ServerRunning })
	first := f.members[0]
	for _, m := range f.members[1:] {
		first.operate(t, func(c *valkey.Conn) error { return c.Meet(t.Context(), m.host, 6379, 0) })
	}
	shards := f.members[len(f.members)-1].shard + 1
	for _, m := range f.members {
		if m.node == 0 {
			m.operate(t, func(c *valkey.Conn) error { return c.AddSlots(t.Context(), valkey.ShardSlots(shards, m.shard)) })
		}
	}
	for _, m := range f.members {
		if m.node > 0 {
			f.follow(t, m, f.node(m.shard, 0))
		}
	}
	f.allReady(t)
}

func (f *fleet) follow(t *testing.T, replica, primary *member) {
	t.Helper()
	id := valkey.NodeID(primary.facts().NodeID)
	until(t, fmt.Sprintf("%s follows", replica), func() bool {
		conn, err := replica.dial(userOperator)
		if err != nil {
			return false
		}
		defer conn.Close()
		return conn.Replicate(t.Context(), id) == nil
	})
}

func (f *fleet) node(shard, node int) *member {
	return f.members[slices.IndexFunc(f.members, func(m *member) bool { return m.shard == shard && m.node == node })]
}

func (f *fleet) all(t *testing.T, what string, holds func(*member) bool) {
	t.Helper()
	for _, m := range f.members {
		until(t, fmt.Sprintf("%s: %s", m, what), func() bool { return holds(m) })
	}
}

func (f *fleet) allReady(t *testing.T) {
	t.Helper()
	f.all(t, "is ready", func(m *member) bool { return m.probe(protocol.PathReady) == http.StatusOK })
}

// write sets keys until count of them were acknowledged by the member.
func (m *member) write(t *testing.T, prefix string, count int) {
	t.Helper()
	conn, err := m.dial("")
	must(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for number := 0; count > 0; number++ {
		_, err := conn.Raw(ctx, "SET", fmt.Sprint(prefix, number), "value")
		if err == nil {
			count--
		} else if !strings.Contains(err.Error(), "MOVED") {
			t.Fatalf("writing to %s: %v", m, err)
		}
	}
}
