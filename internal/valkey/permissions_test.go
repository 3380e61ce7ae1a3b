//go:build servers

package valkey_test

import (
	"os"
	"path/filepath"
	"testing"

	"valkey.io/valkey-operator/internal/valkey"
)

// permissions is a bench of servers on which nobody but the two system users
// may do anything.
func permissions(t *testing.T, program string) *metal {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	users := "user default off\n" +
		"user _operator on >operator " + valkey.OperatorACL() + "\n" +
		"user _replication on >replication " + valkey.ReplicationACL() + "\n"
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	return &metal{program: program, settings: []string{
		"--aclfile", file, "--primaryuser", "_replication", "--primaryauth", "replication",
	}}
}

func asOperator(t *testing.T, m *metal, server int) *valkey.Conn {
	t.Helper()
	target := m.processes[server].target()
	target.Username, target.Password = "_operator", "operator"
	conn, err := valkey.Dial(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	for version, program := range serverPrograms(t) {
		t.Run("the operator may do its work on "+version, func(t *testing.T) {
			t.Parallel()
			m := permissions(t, program)
			m.add(t, 1)
			mayWork(t, asOperator(t, m, 0))
		})
		t.Run("the operator may do nothing else on "+version, func(t *testing.T) {
			t.Parallel()
			m := permissions(t, program)
			m.add(t, 1)
			mayNot(t, asOperator(t, m, 0))
		})
		t.Run("replicas follow on "+version, func(t *testing.T) {
			t.Parallel()
			m := permissions(t, program)
			m.add(t, 2)
			mayFollow(t, m)
		})
		t.Run("strangers are told apart on "+version, func(t *testing.T) {
			t.Parallel()
			m := permissions(t, program)
			m.add(t, 1)
			target := m.processes[0].target()
			target.Username, target.Password = "_operator", "guessed"
			if _, err := valkey.Dial(t.Context(), target); !valkey.IsNoAuth(err) {
				t.Errorf("a wrong password: %v", err)
			}
		})
	}
}

// mayWork sends all that the ports can send. A command may be refused for what
// it asks, not for who asks.
func mayWork(t *testing.T, conn *valkey.Conn) {
	t.Helper()
	ctx := t.Context()
	view := func() error { _, err := conn.View(ctx); return err }
	setting := func() error { _, _, err := conn.ConfigGet(ctx, "appendonly"); return err }
	raw := func(words ...string) func() error {
		return func() error { _, err := conn.Raw(ctx, words...); return err }
	}
	for name, command := range map[string]func() error{
		"view":        view,
		"meet":        func() error { return conn.Meet(ctx, "127.0.0.1", 1, 0) },
		"add slots":   func() error { return conn.AddSlots(ctx, valkey.AllSlots()) },
		"replicate":   func() error { return conn.Replicate(ctx, sampleID) },
		"forget":      func() error { return conn.Forget(ctx, sampleID) },
		"graceful":    func() error { return conn.Failover(ctx, valkey.Graceful) },
		"takeover":    func() error { return conn.Failover(ctx, valkey.Takeover) },
		"first epoch": func() error { return conn.SetConfigEpoch(ctx, 1) },
		"bump epoch":  func() error { return conn.BumpEpoch(ctx) },
		"config get":  setting,
		"config set":  func() error { return conn.ConfigSet(ctx, "maxmemory", "0") },
		"acl load":    func() error { return conn.ACLLoad(ctx) },
		"ping":        func() error { return conn.Ping(ctx) },
		"bgsave":      raw("BGSAVE"),
		"rewrite":     func() error { return conn.RewriteLog(ctx) },
		"dbsize":      raw("DBSIZE"),
		"wait":        raw("WAIT", "0", "1"),
		"pause":       raw("CLIENT", "PAUSE", "1", "WRITE"),
		"unpause":     raw("CLIENT", "UNPAUSE"),
	} {
		if err := command(); valkey.IsNoPerm(err) || !valkey.Answered(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := conn.Shutdown(ctx, valkey.NoSave); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func mayNot(t *testing.T, conn *valkey.Conn) {
	t.Helper()
	for _, words := range [][]string{
		{"GET", "key"},
		{"SET", "key", "value"},
		{"FLUSHALL"},
		{"KEYS", "*"},
		{"SCAN", "0"},
		{"CLUSTER", "RESET"},
		{"CLUSTER", "FLUSHSLOTS"},
		{"CONFIG", "REWRITE"},
		{"LATENCY", "RESET"},
		{"EVAL", "return 1", "0"},
		{"PUBLISH", "channel", "message"},
		{"ACL", "LIST"},
		{"ACL", "SETUSER", "_operator", "allkeys"},
		{"REPLICAOF", "NO", "ONE"},
	} {
		if _, err := conn.Raw(t.Context(), words...); !valkey.IsNoPerm(err) {
			t.Errorf("%v: %v", words, err)
		}
	}
}

func mayFollow(t *testing.T, m *metal) {
	t.Helper()
	primary, replica := asOperator(t, m, 0), asOperator(t, m, 1)
	host, port := m.place(1)
	if err := primary.Meet(t.Context(), host, port, 0); err != nil {
		t.Fatal(err)
	}
	if err := primary.AddSlots(t.Context(), valkey.AllSlots()); err != nil {
		t.Fatal(err)
	}
	view, err := primary.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id, _ := view.MyID()
	m.until(t, "the replica accepts its primary", func() bool { return replica.Replicate(t.Context(), id) == nil })
	m.until(t, "the replica is in sync", func() bool {
		view, err := replica.View(t.Context())
		return err == nil && view.Info.Replication.Primary != nil && view.Info.Replication.Primary.Up
	})
}
