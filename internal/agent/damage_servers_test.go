//go:build servers

package agent_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"valkey.io/valkey-operator/internal/agent"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
)

// damages are what a crash makes of a node table.
var damages = map[string]func(text []byte) []byte{
	"cut in half":         func(text []byte) []byte { return text[:len(text)/2] },
	"without its end":     func(text []byte) []byte { return text[:strings.LastIndex(string(text), "vars ")] },
	"one newline":         func([]byte) []byte { return []byte("\n") },
	"nothing":             func([]byte) []byte { return nil },
	"zeros of its length": func(text []byte) []byte { return make([]byte, len(text)) },
}

// A member whose node table a crash has damaged, however, comes back by itself
// with its own id, place and keys; the damaged file stays beside.
func TestADamagedTableIsRestored(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		f.node(0, 0).write(t, "key:", written)
		f.keysReach(t, written)
		for what, damage := range damages {
			for _, m := range []*member{f.node(0, 1), f.node(0, 0)} {
				id := m.facts().NodeID
				until(t, "the agent has a copy of the table as it is", func() bool {
					return read(t, m.data(".valkey-operator/nodes.conf")) == read(t, m.data(volume.TableFile))
				})
				m.kill()
				must(t, os.WriteFile(m.data(volume.TableFile), damage([]byte(read(t, m.data(volume.TableFile)))), 0o600))
				m.start(t)
				f.allReady(t)
				f.keysReach(t, written)
				facts := m.facts()
				if facts.NodeID != id || !strings.Contains(facts.Kept, "nodes.conf.damaged-") {
					t.Errorf("%s, %s: id %s, want %s; kept: %q", what, m, facts.NodeID, id, facts.Kept)
				}
			}
		}
	})
}

// An agent that ends after any step of a start leaves files from which the next one
// goes on: the member is back with its id, and no key is lost.
func TestAnAgentMayEndAfterAnyStepOfAStart(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		for step, damage := range map[string]func(*testing.T, *member){
			agent.StepTableKept: func(t *testing.T, m *member) { must(t, os.Remove(m.data(".valkey-operator/nodes.conf"))) },
			agent.StepTableRestored: func(t *testing.T, m *member) {
				must(t, os.WriteFile(m.data(volume.TableFile), []byte("\n"), 0o600))
			},
			agent.StepSetAside: func(t *testing.T, m *member) { m.damageLog(t) },
		} {
			f := newFleet(t, program, 2, 1, 1)
			f.form(t)
			f.node(0, 0).write(t, "key:", written)
			f.keysReach(t, written)
			m := f.node(0, 1)
			id := m.facts().NodeID
			until(t, "the agent has a copy of the table as it is", func() bool {
				return read(t, m.data(".valkey-operator/nodes.conf")) == read(t, m.data(volume.TableFile))
			})
			m.kill()
			damage(t, m)
			m.endAt(t, step)
			m.start(t)
			f.allReady(t)
			f.keysReach(t, written)
			if now := m.facts().NodeID; now != id {
				t.Errorf("ended where %s: the id is %s, want %s", step, now, id)
			}
		}
	})
}

// endAt starts a member whose agent ends at a step.
func (m *member) endAt(t *testing.T, step string) {
	t.Helper()
	m.environment = []string{endAtStep + "=" + step}
	m.start(t)
	m.environment = nil
	if step == agent.StepSetAside {
		m.letStartEmpty(t, protocol.DecisionDataDamaged)
	}
	until(t, "the agent ends where "+step, func() bool {
		select {
		case <-m.ended:
			return true
		default:
			return false
		}
	})
}

// damageLog zeroes a part of a log's middle.
func (m *member) damageLog(t *testing.T) {
	t.Helper()
	log := m.largestIncrement(t)
	text := []byte(read(t, log))
	for i := range min(1024, len(text)/2) {
		text[len(text)/2+i-len(text)/4] = 0
	}
	must(t, os.WriteFile(log, text, 0o600))
}

func operatorWith(password string) protocol.Operator {
	return protocol.Operator{Client: http.DefaultClient, Password: password}
}

// letStartEmpty has the operator let a member start without its data.
func (m *member) letStartEmpty(t *testing.T, decision protocol.Decision) {
	t.Helper()
	until(t, "the member is held", func() bool { return m.facts().Decision == decision && m.facts().Hold != "" })
	to := protocol.Addressee{ClusterID: clusterID, Shard: m.shard, Node: m.node}
	must(t, operatorWith("operator-secret").Post(t.Context(), m.host, to,
		protocol.StartEmpty{Hold: m.facts().Hold, Decision: decision}))
}

// A member whose log is damaged in its middle is held; told to go on without, it
// sets its files aside and has its keys from the other one.
func TestADamagedLogIsSetAside(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		primary, replica := f.node(0, 0), f.node(0, 1)
		primary.write(t, "key:", written)
		f.keysReach(t, written)
		for _, m := range []*member{replica, primary} {
			m.kill()
			if m == primary {
				until(t, "the replica was promoted", func() bool { return replica.facts().Role == protocol.RolePrimary })
			}
			m.damageLog(t)
			m.start(t)
			m.letStartEmpty(t, protocol.DecisionDataDamaged)
			f.allReady(t)
			f.keysReach(t, written)
			if aside, _ := filepath.Glob(m.data("aside-1/appendonlydir/*.aof")); len(aside) == 0 {
				t.Errorf("%s: no log was kept; kept: %q", m, m.facts().Kept)
			}
		}
	})
}

func (m *member) largestIncrement(t *testing.T) (largest string) {
	t.Helper()
	paths, err := filepath.Glob(m.data(filepath.Join(volume.LogDirectory, "*.incr.aof")))
	must(t, err)
	size := int64(-1)
	for _, path := range paths {
		info, err := os.Stat(path)
		must(t, err)
		if info.Size() > size {
			largest, size = path, info.Size()
		}
	}
	return largest
}

// A log that a crash cut off is loaded without its end, and that is told.
func TestACutLogIsTold(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 1, 1, 1)
		f.form(t)
		m := f.node(0, 0)
		m.write(t, "key:", written)
		m.kill()
		log := m.largestIncrement(t)
		info, err := os.Stat(log)
		must(t, err)
		must(t, os.Truncate(log, info.Size()-5))
		m.start(t)
		f.allReady(t)
		if keys, _ := m.keys(); keys != strconv.Itoa(written-1) {
			t.Errorf("%s keys, want all but the last of %d", keys, written)
		}
		if cut := m.facts().LogCutBytes; cut <= 0 {
			t.Errorf("%d bytes of the log are told to be missing", cut)
		}
	})
}

// An older server is not started on a newer one's files.
func TestAnOlderServerIsHeld(t *testing.T) {
	t.Parallel()
	programs := serverPrograms(t)
	f := newFleet(t, programs["9.1"], 1, 1, 1)
	f.form(t)
	m := f.node(0, 0)
	m.write(t, "key:", written)
	m.stop(t)
	config := m.config()
	config.Program = programs["8.1"]
	m.startAs(t, config)
	until(t, "the older server is held", func() bool { return m.facts().Decision == protocol.DecisionVersionTooOld })
	m.stop(t)
	m.start(t)
	until(t, "the newer server has all keys", func() bool { keys, _ := m.keys(); return keys == strconv.Itoa(written) })
}

// A hold ends only by the operator's word about this very hold.
func TestOnlyTheOperatorEndsAHold(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		m := f.node(0, 0)
		m.write(t, "key:", written)
		f.keysReach(t, written)
		m.kill()
		f.node(0, 1).kill()
		m.lose(t)
		m.start(t)
		until(t, "the empty primary is held", func() bool { return m.facts().Decision == protocol.DecisionHeldEmpty })
		right := protocol.StartEmpty{Hold: m.facts().Hold, Decision: protocol.DecisionHeldEmpty}
		to := protocol.Addressee{ClusterID: clusterID, Shard: 0, Node: 0}
		for name, test := range map[string]struct {
			password string
			to       protocol.Addressee
			command  protocol.StartEmpty
			want     error
		}{
			"another password": {"guess", to, right, protocol.ErrSignature},
			"no password":      {"", to, right, protocol.ErrSignature},
			"another member":   {"operator-secret", protocol.Addressee{ClusterID: clusterID, Shard: 0, Node: 1}, right, protocol.ErrSignature},
			"another hold":     {"operator-secret", to, protocol.StartEmpty{Hold: "old", Decision: right.Decision}, protocol.ErrNotHeld},
			"no hold":          {"operator-secret", to, protocol.StartEmpty{Decision: right.Decision}, protocol.ErrNotHeld},
			"another decision": {"operator-secret", to, protocol.StartEmpty{Hold: right.Hold, Decision: protocol.DecisionDataDamaged}, protocol.ErrNotHeld},
		} {
			err := operatorWith(test.password).Post(t.Context(), m.host, test.to, test.command)
			if !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, want %v", name, err, test.want)
			}
		}
		if facts := m.facts(); facts.Decision != protocol.DecisionHeldEmpty {
			t.Fatalf("the member is not held any more: %s", facts.Decision)
		}
		m.letStartEmpty(t, protocol.DecisionHeldEmpty)
		until(t, "the member serves", func() bool { return m.facts().Server == protocol.ServerRunning })
	})
}
