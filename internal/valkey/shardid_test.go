package valkey_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/valkey"
)

// stale is what 8.1.1 and 9.1.2 write when they are stopped right after a node
// has become a replica.
const stale = `b79e10d0 127.0.0.12:7000@17000,,tls-port=0,shard-id=74b1429a slave 98541227 0 1796075880211 2 disconnected
7fc5ca29 127.0.0.11:7000@17000,,tls-port=0,shard-id=25e655ff myself,slave 4850bdd8 0 0 1 connected
4850bdd8 127.0.0.10:7000@17000,,tls-port=0,shard-id=25e655ff master - 0 1796075880332 1 connected 0-5460
98541227 127.0.0.13:7000@17000,,tls-port=0,shard-id=dfed3b14 master - 0 1796075881057 2 disconnected 5461-10921
vars currentEpoch 4 lastVoteEpoch 0
`

const healed = `b79e10d0 127.0.0.12:7000@17000,,tls-port=0,shard-id=dfed3b14 slave 98541227 0 1796075880211 2 disconnected
7fc5ca29 127.0.0.11:7000@17000,,tls-port=0,shard-id=25e655ff myself,slave 4850bdd8 0 0 1 connected
4850bdd8 127.0.0.10:7000@17000,,tls-port=0,shard-id=25e655ff master - 0 1796075880332 1 connected 0-5460
98541227 127.0.0.13:7000@17000,,tls-port=0,shard-id=dfed3b14 master - 0 1796075881057 2 disconnected 5461-10921
vars currentEpoch 4 lastVoteEpoch 0
`

func TestHealShardIDs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, want string
		changed    int
	}{
		"a replica with another shard id than its primary": {stale, healed, 1},
		"all agree":            {healed, healed, 0},
		"a table without ids":  {"a 127.0.0.1:1@2 slave b 0 0 1 connected\nb 127.0.0.1:3@4 master - 0 0 1 connected\n", "a 127.0.0.1:1@2 slave b 0 0 1 connected\nb 127.0.0.1:3@4 master - 0 0 1 connected\n", 0},
		"an unknown primary":   {"a 127.0.0.1:1@2,,shard-id=1 slave b 0 0 1 connected\n", "a 127.0.0.1:1@2,,shard-id=1 slave b 0 0 1 connected\n", 0},
		"a table that was cut": {"b 127.0.0.1:3@4,,shard-id=2 master\na 127.0.0.1:1@2,,shard-id=1 slave b", "b 127.0.0.1:3@4,,shard-id=2 master\na 127.0.0.1:1@2,,shard-id=2 slave b", 1},
		"a primary that is a replica itself": {
			"a 127.0.0.1:1@2,,shard-id=1 slave b 0 0 1 connected\nb 127.0.0.1:3@4,,shard-id=1 slave c 0 0 1 connected\nc 127.0.0.1:5@6,,shard-id=2 master - 0 0 1 connected\n",
			"a 127.0.0.1:1@2,,shard-id=2 slave b 0 0 1 connected\nb 127.0.0.1:3@4,,shard-id=2 slave c 0 0 1 connected\nc 127.0.0.1:5@6,,shard-id=2 master - 0 0 1 connected\n", 2,
		},
		"two that follow each other": {
			"a 127.0.0.1:1@2,,shard-id=1 slave b 0 0 1 connected\nb 127.0.0.1:3@4,,shard-id=2 slave a 0 0 1 connected\n",
			"a 127.0.0.1:1@2,,shard-id=1 slave b 0 0 1 connected\nb 127.0.0.1:3@4,,shard-id=2 slave a 0 0 1 connected\n", 0,
		},
		"nothing":         {"", "", 0},
		"no table at all": {"x\n\n  y z\n", "x\n\n  y z\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, changed := valkey.HealShardIDs(test.text)
			if diff := cmp.Diff(test.want, got); diff != "" || changed != test.changed {
				t.Errorf("%d changed, want %d (-want +got):\n%s", changed, test.changed, diff)
			}
		})
	}
}
