package agent

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

// Agents of the shard are listened to, those of other shards are known by their
// ids, and those of other clusters, which may have their addresses by now, not at all.
func TestAskShard(t *testing.T) {
	t.Parallel()
	config := Config{Identity: volume.Identity{ClusterID: "c1", Shard: 0, Node: 0}, Members: "/missing"}
	for host, peer := range map[string]struct {
		identity volume.Identity
		id       valkey.NodeID
	}{
		"127.93.17.1": {volume.Identity{ClusterID: "c1", Shard: 0, Node: 1}, "ours"},
		"127.93.17.2": {volume.Identity{ClusterID: "c1", Shard: 1, Node: 0}, "elsewhere"},
		"127.93.17.3": {volume.Identity{ClusterID: "c2", Shard: 1, Node: 0}, "stranger"},
	} {
		b := newBoard(Config{Identity: peer.identity, Bind: host}, slog.New(slog.DiscardHandler))
		b.setFiles(files{known: true, self: valkey.NodeEntry{ID: peer.id}})
		stop, err := serve(t.Context(), b.config, b)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		config.Peers = append(config.Peers, host)
	}
	shard := askShard(t.Context(), config, time.Now())
	if len(shard.Answers) != 1 || shard.Answers[0].NodeID != "ours" {
		t.Errorf("the shard's answers are %+v", shard.Answers)
	}
	if diff := cmp.Diff([]string{"elsewhere"}, shard.Elsewhere); diff != "" {
		t.Errorf("nodes of other shards (-want +got):\n%s", diff)
	}
}
