//go:build servers

package agent_test

import (
	"strconv"
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// A primary with data comes back while its successor is down, and only a replica
// that followed the successor is there: its newer data is not overwritten.
func TestAReplicaSpeaksForItsSilentPrimary(t *testing.T) {
	onServers(t, func(t *testing.T, program string) {
		f := newFleet(t, program, 3, 1, 1)
		f.form(t)
		former, replica := f.node(0, 0), f.node(0, 2)
		replica.operate(t, func(c *valkey.Conn) error {
			return c.ConfigSet(t.Context(), "cluster-replica-no-failover", "yes")
		})
		former.write(t, "early:", written)
		f.keysReach(t, written)
		former.kill()
		successor := f.node(0, 1)
		until(t, "the other replica was promoted", func() bool { return successor.facts().Role == protocol.RolePrimary })
		until(t, "the replica follows it", func() bool {
			facts := replica.facts()
			return facts.PrimaryID == successor.facts().NodeID && facts.ConfigEpoch == successor.facts().ConfigEpoch
		})
		successor.write(t, "late:", written)
		until(t, "the replica has all keys", func() bool { keys, _ := replica.keys(); return keys == strconv.Itoa(2*written) })
		successor.kill()
		former.start(t)
		until(t, "the former primary has decided", func() bool { return former.facts().Decision != protocol.DecisionUndecided })
		if facts := former.facts(); facts.Decision != protocol.DecisionStartReplaced {
			t.Errorf("the former primary has decided %s (%s)", facts.Decision, facts.Message)
		}
		if keys, _ := replica.keys(); keys != strconv.Itoa(2*written) {
			t.Errorf("the replica has %s keys", keys)
		}
		successor.start(t)
		f.allReady(t)
		f.keysReach(t, 2*written)
	})
}
