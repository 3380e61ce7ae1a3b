package cluster

import (
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
)

func TestPrimariesPresent(t *testing.T) {
	t.Parallel()
	takeOver := []string{"settled FailingOver", "let node prod-0-1 take shard 0 over"}
	wait := []string{"wait FailingOver"}
	play(t, primariesPresent, map[string]scene{
		"every primary answers": {spec: persistent(3, 1), want: []string{"settled"}},
		"a cluster that never formed has nobody to take over": {
			spec: persistent(1, 1), happens: func(b *bench) { b.formed = false; b.kill(0, 0, protocol.ServerHeld) },
			want: []string{"settled"},
		},
		"three shards elect by themselves": {spec: persistent(3, 1), happens: func(b *bench) { b.kill(0, 0, protocol.ServerStopped) }, want: wait},
		"one shard cannot, and the primary is known to be held": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld) },
			want: takeOver,
		},
		"one shard cannot, and the primary is known to have stopped": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerStopped) },
			want: takeOver,
		},
		"two shards cannot":              {spec: persistent(2, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld) }, want: takeOver},
		"the primary is just silent":     {spec: persistent(1, 1), happens: func(b *bench) { b.at(0, 0).server.Silence(true) }, want: wait},
		"nobody knows about the primary": {spec: persistent(1, 1), happens: func(b *bench) { b.kill(0, 0, "") }, want: wait},
		"the primary has no pod, which proves nothing": {
			spec: persistent(1, 1), happens: func(b *bench) { b.kill(0, 0, ""); b.at(0, 0).podless = true },
			want: wait,
		},
		"the primary's server is loading": {spec: persistent(1, 1), happens: func(b *bench) { b.kill(0, 0, protocol.ServerLoading) }, want: wait},
		"the held primary has a second pod that may run": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld); b.at(0, 0).doubled = true },
			want: wait,
		},
		"the primary was replaced by a blank one": {
			spec: ephemeral(1, 1), happens: func(b *bench) { b.servers.Settle(); b.replace(0, 0, "10.1.0.1:6379") },
			want: takeOver,
		},
		"the primary was replaced, its old pod may still run": {
			spec: ephemeral(1, 1), happens: func(b *bench) { b.replace(0, 0, "10.1.0.1:6379"); b.at(0, 0).doubled = true },
			want: wait,
		},
		"the replica with most takes over": {spec: persistent(1, 2), happens: func(b *bench) {
			b.at(0, 1).server.Lag(true)
			b.write(50)
			b.hold(0, 0, protocol.ServerHeld)
		}, want: []string{"settled FailingOver", "let node prod-0-2 take shard 0 over"}},
		"of two replicas one is silent and may have more": {spec: persistent(1, 2), happens: func(b *bench) {
			b.hold(0, 0, protocol.ServerHeld)
			b.at(0, 1).server.Silence(true)
		}, want: wait},
		"of two replicas one is held as well": {spec: persistent(1, 2), happens: func(b *bench) {
			b.hold(0, 0, protocol.ServerHeld)
			b.hold(0, 2, protocol.ServerHeld)
		}, want: takeOver},
		"the shard has no replica": {spec: persistent(1, 0), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld) }, want: []string{"settled"}},
		"the replica was never in sync and the stopped primary has the data": {spec: persistent(1, 1), happens: func(b *bench) {
			b.write(50)
			b.unsynced(0, 1)
			b.kill(0, 0, protocol.ServerStopped)
		}, want: wait},
		"the replica was never in sync and the held primary has nothing either": {spec: persistent(1, 1), happens: func(b *bench) {
			b.unsynced(0, 1)
			b.kill(0, 0, protocol.ServerHeld)
			b.at(0, 0).empty = protocol.Yes
		}, want: takeOver},
	})
}

// hold ends a member's server after all replicas got what was written, and has
// its agent say why it is down.
func (b *bench) hold(shard, index int, agent protocol.ServerState) {
	b.servers.Step()
	b.kill(shard, index, agent)
}

// write writes keys that some shards get.
func (b *bench) write(keys int) {
	for i := range keys {
		if err := b.servers.Write(string(rune('a'+i%26))+string(rune('a'+i/26)), "value"); err != nil {
			panic(err)
		}
	}
}

// unsynced has a member lose its volume and be attached again, before its
// first sync ends.
func (b *bench) unsynced(shard, index int) {
	s := b.at(shard, index)
	s.server.Kill()
	s.server.Start(startEmptied)
}
