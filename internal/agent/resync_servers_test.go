//go:build servers

package agent_test

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"valkey.io/valkey-operator/internal/valkey"
)

// A replica whose disk is full and that has lost its place in its primary's history
// cannot take a copy. It stays alive for its primary to be asked again, and follows
// it when there is space.
func TestAReplicaWithAFullDiskThatMustCopyWaits(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := small(t, program, 2)
		primary, replica := f.node(0, 0), f.node(0, 1)
		pid := replica.serverPID(t)
		empty := replica.fill(t)
		primary.operate(t, func(c *valkey.Conn) error {
			return errors.Join(
				c.ConfigSet(t.Context(), "rdbcompression", "no"), // the copy has more than a ballast
				c.ConfigSet(t.Context(), "repl-backlog-size", "16384"),
				c.ConfigSet(t.Context(), "client-output-buffer-limit", "replica 1mb 0 0"),
			)
		})
		l := primary.load(t)
		until(t, "its log is held", replica.writeFailed)
		until(t, "the primary has much more", func() bool { return l.accepted.Load() > 2000 })
		syncs := func() int { info, _ := primary.ask("INFO", "stats"); return fullSyncs(info) }
		before := syncs()
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
		until(t, "the primary gives it up", func() bool {
			info, _ := primary.ask("INFO", "replication")
			return strings.Contains(info, "connected_slaves:0")
		})
		must(t, syscall.Kill(pid, syscall.SIGCONT))
		l.stop()
		until(t, "it has tried to copy twice", func() bool { return syncs() >= before+2 })
		for range 10 {
			primary.changeTable(t)
		}
		if got := replica.serverPID(t); got != pid {
			t.Errorf("the server was started again: it is process %d, was %d", got, pid)
		}
		empty()
		f.allReady(t)
		f.keysReach(t, int(l.accepted.Load()))
	})
}

func fullSyncs(info string) int {
	_, after, _ := strings.Cut(info, "sync_full:")
	count, _ := strconv.Atoi(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]))
	return count
}
