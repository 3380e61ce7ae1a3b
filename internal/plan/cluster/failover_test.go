package cluster

import (
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

func TestPrimariesPresent(t *testing.T) {
	t.Parallel()
	takeOver := []string{"settled FailingOver", "let node prod-0-1 take shard 0 over"}
	wait := []string{"wait FailingOver"}
	play(t, primariesPresent, map[string]scene{
		"every primary answers": {spec: persistent(3, 1), want: []string{"settled"}},
		"a cluster that has not formed yet needs its primaries as well": {
			spec: persistent(1, 1), happens: func(b *bench) { b.formed = false; b.hold(0, 0, protocol.ServerHeld) },
			want: takeOver,
		},
		"three shards elect by themselves": {spec: persistent(3, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld) }, want: wait},
		"three shards cannot, for the replica restarted while the primary lost its volume": {
			spec: persistent(3, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld); b.restart(0, 1) },
			want: takeOver,
		},
		"three shards cannot any more, for the replica has been alone for too long": {
			spec: persistent(3, 1), happens: func(b *bench) {
				b.hold(0, 0, protocol.ServerHeld)
				b.at(1, 0).server.Kill() // two of three are no majority without the replica's shard
				b.at(2, 0).server.Kill()
				b.advance(electionPatience + 1)
				b.at(1, 0).server.Start(valkeytest.Start{})
				b.at(2, 0).server.Start(valkeytest.Start{})
			},
			want: takeOver,
		},
		"the replica restarted, and the primary is just silent": {
			spec: persistent(3, 1), happens: func(b *bench) { b.kill(0, 0, ""); b.restart(0, 1) },
			want: wait,
		},
		"the others' agents are silent, their servers vote": {spec: persistent(3, 1), happens: func(b *bench) {
			b.hold(0, 0, protocol.ServerHeld)
			b.at(1, 0).mute, b.at(2, 0).mute = true, true
		}, want: wait},
		"two of three are down and the third is alone": {spec: persistent(3, 1), happens: func(b *bench) {
			b.hold(0, 0, protocol.ServerHeld)
			b.kill(1, 0, "")
			b.advance(10)
		}, want: takeOver},
		"two of three are down, but the replica has yet to notice": {spec: persistent(3, 1), happens: func(b *bench) {
			b.hold(0, 0, protocol.ServerHeld)
			b.kill(1, 0, "")
		}, want: wait},
		"one shard cannot, and the primary is known to be held": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld) },
			want: takeOver,
		},
		"the primary has stopped, and is about to be started again": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerStopped) },
			want: wait,
		},
		"the primary's agent waits for a volume that another server has": {
			spec: persistent(1, 1), happens: func(b *bench) {
				b.hold(0, 0, protocol.ServerHeld)
				b.edits = append(b.edits, func(in *Input) { in.State.Members[0].Agent.Value.Decision = protocol.DecisionVolumeLocked })
			},
			want: wait,
		},
		"one replica still follows the primary before the last one, which is just silent": {
			spec: ephemeral(1, 2), happens: func(b *bench) {
				b.servers.Settle()
				b.replace(0, 0, "10.1.0.1:6379")
				b.servers.Step()
				b.edits = append(b.edits, func(in *Input) {
					last := &in.State.Members[2].Server.Value.Table
					for i := range last.Nodes {
						if last.Nodes[i].Flags.Myself {
							last.Nodes[i].PrimaryID = b.at(0, 0).server.ID()
						}
					}
					in.State.Members[0].Server = state.Unknown[valkey.View]("silent")
				})
			},
			want: wait,
		},
		"the replica is still linked to a primary that has no pod any more": {
			spec: ephemeral(1, 1), happens: func(b *bench) {
				b.replace(0, 0, "10.1.0.1:6379")
				b.edits = append(b.edits, func(in *Input) { in.State.Members[1].Server.Value.Info.Replication.Primary.Up = true })
			},
			want: wait,
		},
		"two shards cannot": {spec: persistent(2, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld) }, want: takeOver},
		"the primary ends at each start, its replica was linked": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, ""); b.crashLoop(0) },
			want: takeOver,
		},
		"the primary ends at each start, its replica restarted as well": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, ""); b.restart(0, 1); b.crashLoop(0) },
			want: wait,
		},
		"the primary ends at each start, its replica has nothing": {
			spec: persistent(1, 1), happens: func(b *bench) {
				b.hold(0, 0, "")
				b.crashLoop(0)
				b.edits = append(b.edits, func(in *Input) { in.State.Members[1].Server.Value.Info.Keys = 0 })
			},
			want: wait,
		},
		"the primary waits for space, its replica was linked to the end": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld); b.fill(0, 0) },
			want: takeOver,
		},
		"the primary waits for space with its data, its replica restarted as well": {
			spec: persistent(1, 1), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld); b.restart(0, 1); b.fill(0, 0) },
			want: wait,
		},
		"the primary waits for space with its data, its replica had been alone for long": {
			spec: persistent(1, 1), happens: func(b *bench) {
				b.hold(0, 0, protocol.ServerHeld)
				b.advance(electionPatience + 1)
				b.fill(0, 0)
			},
			want: wait,
		},
		"one shard has to wait, the other one need not": {
			spec: persistent(2, 1), happens: func(b *bench) { b.kill(0, 0, ""); b.hold(1, 0, protocol.ServerHeld) },
			want: []string{"settled FailingOver", "let node prod-1-1 take shard 1 over"},
		},
		"the primary is just silent":     {spec: persistent(1, 1), happens: func(b *bench) { b.at(0, 0).server.Silence(true) }, want: wait},
		"nobody knows about the primary": {spec: persistent(1, 1), happens: func(b *bench) { b.kill(0, 0, "") }, want: wait},
		"the replica has the address that the primary's pod is still seen under": {
			spec: persistent(1, 1), happens: func(b *bench) {
				b.kill(0, 0, "")
				b.restart(0, 1)
				b.edits = append(b.edits, func(in *Input) { in.State.Members[0].Server = in.State.Members[1].Server })
			},
			want: wait,
		},
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
			spec: ephemeral(1, 1), happens: func(b *bench) { b.servers.Settle(); b.replace(0, 0, "10.1.0.1:6379"); b.servers.Step() },
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
		"of two replicas one waits for space and may have more": {spec: persistent(1, 2), happens: func(b *bench) {
			b.hold(0, 0, protocol.ServerHeld)
			b.hold(0, 2, protocol.ServerHeld)
			b.fill(0, 2)
		}, want: wait},
		"the shard has no replica": {spec: persistent(1, 0), happens: func(b *bench) { b.hold(0, 0, protocol.ServerHeld) }, want: []string{"settled"}},
		"the replica was never in sync and the held primary has the data": {spec: persistent(1, 1), happens: func(b *bench) {
			b.write(50)
			b.unsynced(0, 1)
			b.kill(0, 0, protocol.ServerHeld)
			b.at(0, 0).empty = protocol.No
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
	b.servers.Step()
}

// restart restarts a member's server on its data.
func (b *bench) restart(shard, index int) {
	b.at(shard, index).server.Kill()
	b.at(shard, index).server.Start(valkeytest.Start{})
	b.servers.Step()
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

// fill has a member's agent say that its server waits for space.
func (b *bench) fill(shard, index int) {
	b.edits = append(b.edits, func(in *Input) {
		member := &in.State.Members[shard*(int(b.spec.Replicas)+1)+index]
		member.Agent.Value.Decision, member.Agent.Value.Empty = protocol.DecisionVolumeFull, protocol.No
	})
}

// crashLoop has the worker of a shard's first member say that its server ends over and over.
func (b *bench) crashLoop(shard int) {
	seat := b.at(shard, 0)
	b.edits = append(b.edits, func(in *Input) {
		member := &in.State.Members[shard*(int(b.spec.Replicas)+1)]
		member.Record.Status.NodeID = string(seat.server.ID())
		member.Pods[0].CrashLooping, member.Pods[0].Ready = true, false
	})
}
