package agent

import (
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

func TestSuccessor(t *testing.T) {
	t.Parallel()
	const primary = "p"
	replica := func(node int, offset int64, edits ...func(*protocol.Facts)) protocol.Facts {
		facts := protocol.Facts{
			Node: node, Server: protocol.ServerRunning, Role: protocol.RoleReplica, PrimaryID: primary, Ready: true, Offset: offset,
		}
		for _, edit := range edits {
			edit(&facts)
		}
		return facts
	}
	stopping := func(f *protocol.Facts) { f.Server = protocol.ServerStopping }
	unlinked := func(f *protocol.Facts) { f.Ready, f.NotReady = false, "the replica's link to its primary is down" }
	astray := func(f *protocol.Facts) { f.PrimaryID = "q" }
	promoted := func(f *protocol.Facts) { f.Role, f.PrimaryID = protocol.RolePrimary, "" }
	for sentence, c := range map[string]struct {
		answers map[string]protocol.Facts
		host    string
		why     string
	}{
		"nobody answers":                      {nil, "", "no other member of the shard answers"},
		"the only replica":                    {map[string]protocol.Facts{"a": replica(1, 5)}, "a", ""},
		"the one with the newest data":        {map[string]protocol.Facts{"a": replica(1, 5), "b": replica(2, 7), "c": replica(3, 6)}, "b", ""},
		"never one that is stopping":          {map[string]protocol.Facts{"a": replica(1, 5), "b": replica(2, 7, stopping)}, "a", ""},
		"all are stopping":                    {map[string]protocol.Facts{"b": replica(2, 5, stopping), "a": replica(1, 5, stopping)}, "", "node 1 is stopping, node 2 is stopping"},
		"one without a link":                  {map[string]protocol.Facts{"a": replica(1, 5, unlinked)}, "", "node 1 is not ready: the replica's link to its primary is down"},
		"one that follows another primary":    {map[string]protocol.Facts{"a": replica(1, 5, astray)}, "", "node 1 does not follow it"},
		"one that is a primary itself by now": {map[string]protocol.Facts{"a": replica(1, 5, promoted)}, "", "node 1 does not follow it"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			host, _, why := successor(primary, c.answers)
			if host != c.host || why != c.why {
				t.Errorf("got %q and %q, want %q and %q", host, why, c.host, c.why)
			}
		})
	}
}

func TestVotes(t *testing.T) {
	t.Parallel()
	entry := func(id valkey.NodeID, primary bool, slots valkey.Slots) valkey.NodeEntry {
		return valkey.NodeEntry{ID: id, Slots: slots, Flags: valkey.NodeFlags{Primary: primary, Replica: !primary}}
	}
	table := valkey.NodeTable{Nodes: []valkey.NodeEntry{
		entry("a", true, valkey.ShardSlots(3, 0)), entry("b", true, valkey.ShardSlots(3, 1)), entry("c", true, valkey.ShardSlots(3, 2)),
		entry("replica", false, nil), entry("new", true, nil),
	}}
	senders := map[valkey.NodeID]bool{"a": true, "c": true, "replica": true, "new": true}
	if heard, voters := votes(table, senders); heard != 2 || voters != 3 {
		t.Errorf("got %d of %d, want 2 of 3", heard, voters)
	}
}
