package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/agent/protocol"
)

// playing is a single member whose server is played by the test's own program.
func playing(t *testing.T, how string) *member {
	t.Helper()
	m := newFleet(t, "/proc/self/exe", 1).members[0]
	m.environment = []string{playServer + "=" + how}
	return m
}

func (m *member) log(t *testing.T) string {
	t.Helper()
	return read(t, filepath.Join(m.dir, "log"))
}

func (m *member) lastStop(t *testing.T) protocol.Stop {
	t.Helper()
	var stop protocol.Stop
	must(t, json.Unmarshal([]byte(read(t, filepath.Join(m.dir, "run", "last-stop.json"))), &stop))
	return stop
}

func TestAServerThatFailsEndsTheAgentWithItsCode(t *testing.T) {
	t.Parallel()
	m := playing(t, "fails")
	m.start(t)
	if code := m.await(t); code != 3 {
		t.Errorf("exit code %d, want the server's 3", code)
	}
	stop := m.lastStop(t)
	want := protocol.Stop{At: stop.At, Note: "exited with code 3: all is well so far\nFatal error: no more"}
	if diff := cmp.Diff(want, stop); diff != "" {
		t.Errorf("last stop (-want +got):\n%s", diff)
	}
	m.environment = []string{playServer + "=ends"}
	m.start(t)
	until(t, "the next agent tells how the server ended", func() bool { return m.facts().LastStop != nil })
	if diff := cmp.Diff(&want, m.facts().LastStop); diff != "" {
		t.Errorf("the next agent's last stop (-want +got):\n%s", diff)
	}
}

func TestAStopIsClean(t *testing.T) {
	t.Parallel()
	m := playing(t, "ends")
	m.start(t)
	until(t, "the server is up", func() bool { return strings.Contains(m.log(t), "the server is up") })
	if code := m.stop(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if stop := m.lastStop(t); !stop.Clean {
		t.Errorf("the stop counts as not clean: %+v", stop)
	}
}

// A server on a full disk refuses to end, to save its data. The agent waits with
// it, says so to everybody, and asks again.
func TestARefusedStopIsWaitedFor(t *testing.T) {
	t.Parallel()
	m := playing(t, "refuses once")
	m.start(t)
	until(t, "the server is up", func() bool { return strings.Contains(m.log(t), "the server is up") })
	must(t, m.command.Process.Signal(syscall.SIGTERM))
	until(t, "the server refuses", func() bool { return strings.Contains(m.log(t), "refuses to end") })
	if facts := m.facts(); facts.Server != protocol.ServerStopping || facts.Ready {
		t.Errorf("while stopping the facts are %+v", facts)
	}
	if status := m.probe(protocol.PathLive); status != http.StatusOK {
		t.Errorf("while stopping the liveness probe answers %d", status)
	}
	if code := m.await(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestForeignVolumesAreHeldAndNotTouched(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"data without a marker":    "nodes.conf",
		"another member's volume":  ".valkey-operator/identity.json",
		"somebody else's database": "base/1/1255",
	}
	for name, file := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := playing(t, "ends")
			text := fmt.Sprintf(`{"version":1,"clusterID":%q,"shard":0,"node":7}`, clusterID)
			must(t, os.MkdirAll(filepath.Dir(m.data(file)), 0o755))
			must(t, os.WriteFile(m.data(file), []byte(text), 0o600))
			must(t, os.WriteFile(m.data("temp-1.rdb"), nil, 0o600))
			m.start(t)
			until(t, "the member is held", func() bool { return m.facts().Server == protocol.ServerHeld })
			if facts := m.facts(); facts.Decision != protocol.DecisionForeignVolume || facts.Message == "" {
				t.Errorf("got %+v", facts)
			}
			m.probesAnswer(t, http.StatusOK, http.StatusOK, http.StatusServiceUnavailable)
			if code := m.stop(t); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			left := [2]string{read(t, m.data(file)), read(t, m.data("temp-1.rdb"))}
			if want := [2]string{text, ""}; left != want {
				t.Errorf("the files hold %q, want %q", left, want)
			}
			if strings.Contains(m.log(t), "the server is up") {
				t.Error("the server was started")
			}
		})
	}
}

// A volume that cannot be used yet, as before its owner is right, is waited for.
func TestAnUnusableVolumeIsWaitedFor(t *testing.T) {
	t.Parallel()
	m := playing(t, "ends")
	must(t, os.WriteFile(m.data(".valkey-operator"), nil, 0o600))
	m.start(t)
	until(t, "the member is held", func() bool { return m.facts().Decision == protocol.DecisionVolumeUnusable })
	must(t, os.Remove(m.data(".valkey-operator")))
	until(t, "the server is up", func() bool { return strings.Contains(m.log(t), "the server is up") })
}

// An ephemeral member does not come back with the keys of an earlier day.
func TestAnEphemeralMemberForgetsItsDump(t *testing.T) {
	t.Parallel()
	m := playing(t, "ends")
	must(t, os.Mkdir(m.data(".valkey-operator"), 0o755))
	must(t, os.WriteFile(m.data(".valkey-operator/identity.json"),
		fmt.Appendf(nil, `{"version":1,"clusterID":%q,"shard":0,"node":0}`, clusterID), 0o600))
	must(t, os.WriteFile(m.data("dump.rdb"), []byte("old"), 0o600))
	config := m.config()
	config.Ephemeral = true
	m.startAs(t, config)
	until(t, "the server is up", func() bool { return strings.Contains(m.log(t), "the server is up") })
	if _, err := os.Stat(m.data("dump.rdb")); !os.IsNotExist(err) {
		t.Errorf("the dump: %v, want it gone", err)
	}
}

func TestSecretsAreForNobodyElse(t *testing.T) {
	t.Parallel()
	m := playing(t, "ends")
	m.start(t)
	until(t, "the server is up", func() bool { return strings.Contains(m.log(t), "the server is up") })
	entries, err := os.ReadDir(filepath.Join(m.dir, "run"))
	must(t, err)
	if len(entries) == 0 {
		t.Error("nothing was rendered")
	}
	for _, entry := range entries {
		info, err := entry.Info()
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", entry.Name(), info.Mode().Perm())
		}
	}
	if text := m.log(t); strings.Contains(text, "replication-secret") || strings.Contains(text, "operator-secret") {
		t.Error("a password is in the log")
	}
}
