//go:build servers

package agent_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

const written = 500

// watchKeys notes the smallest number of keys that a member ever told, until
// the returned function is called.
func watchKeys(m *member) (smallest func() int) {
	least, done := -1, make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			if text, told := m.keys(); told {
				if keys, err := strconv.Atoi(text); err == nil && (least < 0 || keys < least) {
					least = keys
				}
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() int {
		close(done)
		watching.Wait()
		return least
	}
}

// A primary whose process is killed and whose data is gone comes back before,
// during or after the election of its successor; whenever it does, the replica's
// keys survive and reach it.
func TestEmptyPrimaryNeverEmptiesItsReplica(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		f.form(t)
		primary, replica := f.node(0, 0), f.node(0, 1)
		primary.write(t, "key:", written)
		until(t, "the replica has all keys", func() bool { keys, _ := replica.keys(); return keys == strconv.Itoa(written) })
		for round := range 4 {
			smallest := watchKeys(replica)
			primary.kill()
			primary.lose(t)
			delay := time.Duration(rand.Int64N(int64(4 * time.Second)))
			if round == 0 {
				delay = 0
			}
			time.Sleep(delay)
			primary.start(t)
			until(t, fmt.Sprintf("round %d: after %s the lost primary has all keys as a replica", round, delay), func() bool {
				keys, _ := primary.keys()
				return keys == strconv.Itoa(written) && primary.facts().Role == protocol.RoleReplica
			})
			if least := smallest(); least != written {
				t.Fatalf("round %d, back after %s: the survivor had only %d keys at some time, want %d", round, delay, least, written)
			}
			f.allReady(t)
			primary, replica = replica, primary
		}
	})
}

// A member that lost its data and its place comes back while nobody can tell its
// server so, and a replica comes back that still follows it: it must not copy
// the emptiness, and no client's write may be taken.
func TestReplacedPrimaryFeedsNobody(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 3, 1, 1)
		f.form(t)
		primary := f.node(0, 0)
		primary.write(t, "key:", written)
		f.keysReach(t, written)
		believer := f.node(0, 2)
		believer.kill()
		primary.kill()
		primary.lose(t)
		successor := f.node(0, 1)
		until(t, "the other replica was promoted", func() bool { return successor.facts().Role == protocol.RolePrimary })
		informed := []*member{successor, f.node(1, 0), f.node(2, 0)}
		signalServers(t, syscall.SIGSTOP, informed)
		primary.start(t)
		until(t, "the lost primary runs", func() bool { return primary.facts().Server == protocol.ServerRunning })
		if facts := primary.facts(); facts.Decision != protocol.DecisionStartReplaced || facts.Role != protocol.RolePrimary {
			t.Fatalf("the lost primary was to start as one that is replaced, and not to know it yet: %+v", facts)
		}
		believer.start(t)
		until(t, "the believer is turned away", func() bool {
			if keys, told := believer.keys(); told && keys != strconv.Itoa(written) {
				t.Fatalf("the believer has %s keys, want %d", keys, written)
			}
			return primary.turnedAway(t) > 0
		})
		if _, err := primary.ask("DBSIZE"); !valkey.IsNoAuth(err) {
			t.Errorf("a client of the lost primary got %v, want to be refused", err)
		}
		smallest := watchKeys(believer)
		signalServers(t, syscall.SIGCONT, informed)
		f.keysReach(t, written)
		f.allReady(t)
		if least := smallest(); least != written {
			t.Errorf("the believer had only %d keys at some time, want %d", least, written)
		}
	})
}

func signalServers(t *testing.T, signal syscall.Signal, members []*member) {
	t.Helper()
	for _, m := range members {
		must(t, syscall.Kill(m.serverPID(t), signal))
	}
}

// turnedAway is how many log-ins the member's server has refused.
func (m *member) turnedAway(t *testing.T) (count int) {
	t.Helper()
	m.operate(t, func(c *valkey.Conn) error {
		text, err := c.Raw(t.Context(), "INFO", "stats")
		_, rest, _ := strings.Cut(text, "acl_access_denied_auth:")
		_, scanErr := fmt.Sscan(rest, &count)
		return errors.Join(err, scanErr)
	})
	return count
}

// keysReach waits until each member of the first shard has so many keys.
func (f *fleet) keysReach(t *testing.T, count int) {
	t.Helper()
	f.all(t, "has all keys", func(m *member) bool {
		keys, _ := m.keys()
		return m.shard != 0 || keys == strconv.Itoa(count)
	})
}

// primary waits until a shard has a primary and returns it.
func (f *fleet) primary(t *testing.T, shard int) (primary *member) {
	t.Helper()
	until(t, fmt.Sprintf("shard %d has a primary", shard), func() bool {
		for _, m := range f.members {
			facts := m.facts()
			if m.shard == shard && facts.Server == protocol.ServerRunning && facts.Role == protocol.RolePrimary {
				primary = m
			}
		}
		return primary != nil
	})
	return primary
}

// serverPID is the process of the member's server.
func (m *member) serverPID(t *testing.T) int {
	t.Helper()
	pid := m.serverPIDNow()
	if pid == 0 {
		t.Fatalf("%s has no server", m)
	}
	return pid
}

// serverPIDNow is 0 while there is no server.
func (m *member) serverPIDNow() int {
	agentPID := m.command.Process.Pid
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", agentPID))
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", agentPID, thread.Name()))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return pid
		}
	}
	return 0
}

// All members stop, in any order and any way, and start again in any order:
// every acknowledged write is there.
func TestNothingIsLostWhenAllStop(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 2, 2)
		f.form(t)
		total := 0
		for round := range 4 {
			f.stopAll(t, round)
			f.startAll(t)
			f.allReady(t)
			if got := f.countPrimaries(t); got != total {
				t.Fatalf("round %d: %d keys on the primaries, want %d", round, got, total)
			}
			for shard := range 3 {
				f.primary(t, shard).write(t, fmt.Sprintf("round:%d:%d:", round, shard), 100)
				total += 100
			}
		}
	})
}

// stopAll ends the members one after the other. In odd rounds they are killed.
// Between two ends there is time for what clusters do meanwhile; but writes go
// on only as long as the whole shard is there.
func (f *fleet) stopAll(t *testing.T, round int) {
	t.Helper()
	for _, i := range rand.Perm(len(f.members)) {
		if round%2 == 1 {
			f.members[i].kill()
		} else if code := f.members[i].stop(t); code != 0 {
			t.Fatalf("%s: exit code %d, want 0", f.members[i], code)
		}
	}
}

func (f *fleet) startAll(t *testing.T) {
	t.Helper()
	for _, i := range rand.Perm(len(f.members)) {
		f.members[i].start(t)
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
	}
}

func (f *fleet) countPrimaries(t *testing.T) int {
	t.Helper()
	total := 0
	for shard := range f.members[len(f.members)-1].shard + 1 {
		text, told := f.primary(t, shard).keys()
		keys, err := strconv.Atoi(text)
		if !told || err != nil {
			t.Fatalf("shard %d does not tell its keys", shard)
		}
		total += keys
	}
	return total
}

// A replica that missed the last writes is back before its primary: although the
// voters would elect it, it leaves the shard to the primary's newer data.
func TestReplicaWithOldDataWaitsForItsPrimary(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2, 1, 1)
		for _, m := range f.members {
			// By default a replica that was not yet connected since its start counts as
			// too old to be elected, and never comes to power by itself.
			m.settle(t, "cluster-replica-validity-factor 0\n")
		}
		f.form(t)
		primary, replica := f.node(0, 0), f.node(0, 1)
		primary.write(t, "early:", written)
		f.keysReach(t, written)
		replica.kill()
		primary.write(t, "late:", written)
		primary.kill()
		replica.start(t)
		until(t, "the primary is marked as failed", func() bool {
			table, err := replica.ask("CLUSTER", "NODES")
			return err == nil && strings.Contains(table, "master,fail ")
		})
		// Elections take about a second from here. That none is won can only be
		// seen by letting that time pass.
		for range 25 {
			time.Sleep(4 * pause)
			if role := replica.facts().Role; role != protocol.RoleReplica {
				t.Fatalf("the replica with old data has become %s", role)
			}
		}
		primary.start(t)
		f.allReady(t)
		f.keysReach(t, 2*written)
	})
}

// A shard without a key has nothing to lose: nobody can be elected here, and the
// primary comes back as soon as the other one has said that it is empty too.
func TestAnEmptyShardComesBack(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2)
		f.form(t)
		primary, replica := f.node(0, 0), f.node(0, 1)
		replica.kill()
		primary.kill()
		primary.start(t)
		until(t, "the primary is held", func() bool { return primary.facts().Decision == protocol.DecisionHeldEmpty })
		replica.start(t)
		f.allReady(t)
		if got := primary.facts().Decision; got != protocol.DecisionStart {
			t.Errorf("the primary has decided %q, want %q", got, protocol.DecisionStart)
		}
	})
}

// Two agents on one directory: the second one waits, alive but not ready, and
// goes on as soon as the first one is gone.
func TestSecondAgentWaitsForTheVolume(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 1)
		first := f.members[0]
		first.start(t)
		until(t, "the first server runs", func() bool { return first.facts().Server == protocol.ServerRunning })
		second := f.newMember(t, 0, 0)
		config := second.config()
		config.Data = first.config().Data
		second.startAs(t, config)
		until(t, "the second agent is held", func() bool { return second.facts().Decision == protocol.DecisionVolumeLocked })
		second.probesAnswer(t, http.StatusOK, http.StatusOK, http.StatusServiceUnavailable)
		first.kill()
		until(t, "the second server runs", func() bool { return second.facts().Server == protocol.ServerRunning })
	})
}

// A server that loads is started and alive but not ready; asked to stop it
// does so at once and loses nothing.
func TestStopDuringLoad(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		const count = 5000
		f := newFleet(t, program, 1)
		m := f.members[0]
		f.form(t)
		m.write(t, "key:", count)
		m.operate(t, func(c *valkey.Conn) error { _, err := c.Raw(t.Context(), "BGREWRITEAOF"); return err })
		until(t, "the log is rewritten", func() bool { return m.rewritten(t) })
		if code := m.stop(t); code != 0 {
			t.Fatalf("exit code %d, want 0", code)
		}
		m.settle(t, "key-load-delay 20000\nloading-process-events-interval-bytes 1024\n")
		m.start(t)
		until(t, "the server loads", func() bool { facts := m.facts(); return facts.Loading != nil && facts.Loading.LoadedBytes > 0 })
		facts := m.facts()
		if facts.Server != protocol.ServerLoading || facts.Ready || facts.Empty != protocol.No {
			t.Errorf("while loading the facts are %+v", facts)
		}
		m.probesAnswer(t, http.StatusOK, http.StatusOK, http.StatusServiceUnavailable)
		if code := m.stop(t); code != 0 {
			t.Errorf("stopped while loading: exit code %d, want 0", code)
		}
		m.settle(t, "")
		m.start(t)
		f.allReady(t)
		f.keysReach(t, count)
	})
}

func (m *member) rewritten(t *testing.T) bool {
	t.Helper()
	conn, err := m.dial(userOperator)
	must(t, err)
	defer conn.Close()
	view, err := conn.View(t.Context())
	return err == nil && !view.Info.Persistence.AOFRewriteInProgress && view.Info.Persistence.AOFBaseBytes > 1024
}

// One user's mistake keeps no server from starting, and no other user out.
func TestAMistakenUserIsOff(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 1)
		m := f.members[0]
		good := read(t, m.config().ACL) + "user shop on >shop-secret ~* +@read\n"
		bad := good + "user mail on >mail-secret ~* +@raed\n"
		f.write(t, "users.acl", bad)
		f.form(t)
		if got := m.facts().RefusedUsers; len(got) != 1 || got[0] != "mail" {
			t.Errorf("started with a mistaken user, %q are called refused", got)
		}
		f.write(t, "users.acl", good)
		until(t, "no user is refused any more", func() bool { return len(m.facts().RefusedUsers) == 0 })
		f.write(t, "users.acl", strings.Replace(bad, "@read", "@all", 1))
		until(t, "the mistake is seen on the running server", func() bool { return len(m.facts().RefusedUsers) == 1 })
		shop, err := valkey.Dial(t.Context(), valkey.Target{Address: m.host + ":6379", Username: "shop", Password: "shop-secret"})
		must(t, err)
		defer shop.Close()
		_, err = shop.Raw(t.Context(), "SET", "a", "b")
		must(t, err)
	})
}

// The operator's new password reaches the agent before the users that have it,
// and the connection breaks: the agent still gets in, and gives them.
func TestAPasswordNewerThanTheUsers(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 1)
		m := f.members[0]
		f.form(t)
		f.write(t, userOperator, "new-secret")
		_, err := m.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		must(t, err)
		until(t, "the server takes the new password", func() bool {
			conn, err := valkey.Dial(t.Context(), valkey.Target{Address: m.host + ":6379", Username: userOperator, Password: "new-secret"})
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	})
}

// A member that is stopped before it has heard of a replica's new shard has
// written a table that 8.1.1 ends on at every start.
func TestATableWithAStaleShardIDStarts(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 2)
		f.form(t)
		m := f.node(0, 0)
		f.node(0, 1).stop(t) // first, lest it be handed the slots
		m.stop(t)
		table := read(t, m.data(volume.TableFile))
		var lines []string
		for line := range strings.Lines(table) {
			if strings.Contains(line, " slave ") {
				before, after, _ := strings.Cut(line, "shard-id=")
				line = before + "shard-id=" + strings.Repeat("0", 40) + after[40:]
			}
			lines = append(lines, line)
		}
		stale := strings.Join(lines, "")
		if stale == table {
			t.Fatalf("there is no replica in the table:\n%s", table)
		}
		must(t, os.WriteFile(m.data(volume.TableFile), []byte(stale), 0o600))
		for _, member := range f.members {
			member.start(t)
		}
		f.allReady(t)
	})
}
