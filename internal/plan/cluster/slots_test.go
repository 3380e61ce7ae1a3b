package cluster

import (
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

func TestSlotsAssigned(t *testing.T) {
	t.Parallel()
	play(t, slotsAssigned, map[string]scene{
		"every slot is served": {spec: persistent(3, 1), want: []string{"settled"}},
		"fresh members get their shards' slots, the first of each": {spec: persistent(2, 1), fresh: true, want: []string{
			"settled SlotsUnassigned", "assign slots 0-8191 to node prod-0-0", "assign slots 8192-16383 to node prod-1-0",
		}},
		"a fresh member is silent: it may own slots": {
			spec: persistent(2, 0), fresh: true, happens: func(b *bench) { b.at(1, 0).server.Silence(true) },
			want: []string{"wait SlotsUnassigned"},
		},
		"a fresh member's agent is silent: it may be a stranger": {
			spec: persistent(2, 0), fresh: true, happens: func(b *bench) { b.at(1, 0).mute = true },
			want: []string{"wait SlotsUnassigned"},
		},
		"a fresh member is silent, and its shard's slots were given to nobody": {
			spec: persistent(2, 1), fresh: true, happens: func(b *bench) {
				b.at(0, 0).server.Silence(true)
				b.at(1, 0).server.Silence(true)
				b.unowned(0)
			},
			want: []string{"settled SlotsUnassigned", "assign slots 0-8191 to node prod-0-1"},
		},
		"primaries are spread over workers": {
			spec: persistent(2, 1), fresh: true, happens: func(b *bench) { b.workers("a", "b", "a", "b") },
			want: []string{"settled SlotsUnassigned", "assign slots 0-8191 to node prod-0-0", "assign slots 8192-16383 to node prod-1-1"},
		},
		"all of one worker answer first: it gets its share, the rest waits": {
			spec: persistent(2, 1), fresh: true, happens: func(b *bench) {
				b.workers("a", "b", "a", "b")
				b.at(0, 1).server.Silence(true)
				b.at(1, 1).server.Silence(true)
				b.edits = append(b.edits, func(in *Input) { in.State.Unowned = map[int]bool{0: true, 1: true} })
			},
			want: []string{"settled SlotsUnassigned", "assign slots 0-8191 to node prod-0-0"},
		},
		"everybody is on one worker": {
			spec: persistent(2, 0), fresh: true, happens: func(b *bench) { b.workers("a", "a") },
			want: []string{"settled SlotsUnassigned", "assign slots 0-8191 to node prod-0-0", "assign slots 8192-16383 to node prod-1-0"},
		},
		"nobody answers yet": {
			spec: persistent(1, 1), fresh: true, happens: func(b *bench) {
				b.at(0, 0).server.Silence(true)
				b.at(0, 1).server.Silence(true)
				b.unowned(0)
			},
			want: []string{"wait SlotsUnassigned"},
		},
		"the same with a claim that was kept": {
			spec: persistent(1, 1), fresh: true, happens: func(b *bench) {
				b.at(0, 0).server.Silence(true)
				b.unowned(0)
				b.edits = append(b.edits, func(in *Input) {
					in.State.CreatedAt = noon.Add(-time.Minute)
					in.State.Members[0].Claim.CreatedAt = noon.Add(-time.Hour)
				})
			},
			want: []string{"wait SlotsUnassigned"},
		},
		"the same, and another has keys already": {
			spec: persistent(1, 1), fresh: true, happens: func(b *bench) {
				b.at(0, 0).server.Silence(true)
				b.unowned(0)
				b.edits = append(b.edits, func(in *Input) { in.State.Members[1].Server.Value.Info.Keys = 1 })
			},
			want: []string{"wait SlotsUnassigned"},
		},
		"what was assigned before a crash is not assigned again": {
			spec: persistent(2, 0), fresh: true, happens: func(b *bench) { b.assign(0, valkey.ShardSlots(2, 0)) },
			want: []string{"settled SlotsUnassigned", "assign slots 8192-16383 to node prod-1-0"},
		},
		"a primary with slots gets what its shard lacks": {spec: persistent(1, 1), fresh: true, happens: func(b *bench) {
			b.assign(1, valkey.Slots{{First: 0, Last: 99}})
		}, want: []string{"settled SlotsUnassigned", "assign slots 100-16383 to node prod-0-1"}},
		"an owner is dead": {spec: persistent(3, 0), happens: func(b *bench) { b.kill(0, 0, ""); b.advance(30) }, want: []string{"wait SlotsUnassigned"}},
		"an owner was replaced by a blank server: its slots are not free while anybody knows them taken": {
			spec:    ephemeral(3, 0),
			happens: func(b *bench) { b.replace(0, 0, "10.1.0.1:6379"); b.advance(30) }, want: []string{"wait SlotsUnassigned"},
		},
		"an owner was replaced and is forgotten": {
			spec: ephemeral(3, 0), happens: func(b *bench) { b.replaceForgotten() },
			want: []string{"settled SlotsUnassigned", "assign slots 0-5460 to node prod-0-0"},
		},
		"every owner answers, and a newcomer without slots has yet to hear of them": {
			spec: ephemeral(3, 1), happens: func(b *bench) { b.replace(0, 1, "10.1.0.1:6379") },
			want: []string{"settled"},
		},
		"a shard has only replicas": {spec: ephemeral(1, 1), happens: func(b *bench) {
			b.edits = append(b.edits, func(in *Input) {
				for i := range in.State.Members {
					for n := range in.State.Members[i].Server.Value.Table.Nodes {
						entry := &in.State.Members[i].Server.Value.Table.Nodes[n]
						entry.Flags.Primary, entry.Flags.Replica, entry.Slots = false, true, nil
					}
				}
			})
		}, want: []string{"wait SlotsUnassigned"}},
	})
}

// workers puts the members' pods on workers, in order.
func (b *bench) workers(names ...string) {
	b.edits = append(b.edits, func(in *Input) {
		for i, name := range names {
			in.State.Members[i].Pods[0].Worker = name
		}
	})
}

// unowned has it remembered that the slots of a shard were given to nobody.
func (b *bench) unowned(shard int) {
	b.edits = append(b.edits, func(in *Input) { in.State.Unowned = map[int]bool{shard: true} })
}

func (b *bench) assign(seat int, slots valkey.Slots) {
	b.command(seat, func(server valkey.Server) error { return server.AddSlots(b.context(), slots) })
}

func (b *bench) command(seat int, command func(valkey.Server) error) {
	server, err := b.servers.Dial(b.context(), valkey.Target{Address: b.seats[seat].server.Address()})
	if err == nil {
		err = command(server)
	}
	if err != nil {
		panic(err)
	}
}

// replaceForgotten replaces the only member of the first shard by a blank one,
// and has the others forget the old one.
func (b *bench) replaceForgotten() {
	old := b.at(0, 0).server.ID()
	b.replace(0, 0, "10.1.0.1:6379")
	for seat := 1; seat < len(b.seats); seat++ {
		b.command(seat, func(server valkey.Server) error { return server.Forget(b.context(), old) })
	}
}

func TestDataPresent(t *testing.T) {
	t.Parallel()
	lost := []string{"blocked ShardLost"}
	loseVolume := func(b *bench) { b.replace(0, 0, "10.1.0.1:6379"); b.advance(30) }
	play(t, dataPresent, map[string]scene{
		"every slot has an owner":                           {spec: persistent(3, 1), want: []string{"settled"}},
		"the only copy's volume was replaced":               {spec: persistent(3, 0), happens: loseVolume, want: lost},
		"the same, and its old id is forgotten":             {spec: persistent(3, 0), happens: func(b *bench) { b.replaceForgotten() }, want: lost},
		"of one shard without replicas":                     {spec: persistent(1, 0), happens: loseVolume, want: lost},
		"of two shards without replicas, which cannot vote": {spec: persistent(2, 0), happens: loseVolume, want: lost},
		"an ephemeral cluster has no data to keep":          {spec: ephemeral(3, 0), happens: loseVolume, want: []string{"settled"}},
		"a cluster that has not formed but took writes":     {spec: persistent(3, 0), happens: func(b *bench) { b.formed = false; loseVolume(b) }, want: []string{"blocked ShardLost"}},
		"a cluster that never formed has no data yet":       {spec: persistent(3, 0), fresh: true, want: []string{"settled"}},
		"somebody is silent, who may have the data":         {spec: persistent(3, 0), happens: func(b *bench) { loseVolume(b); b.at(1, 0).server.Silence(true) }, want: []string{"settled"}},
		"a replica has it, and takes over": {
			spec: persistent(1, 1), happens: func(b *bench) { b.servers.Settle(); loseVolume(b) },
			want: []string{"settled"},
		},
	})
}

func TestReplicasAttached(t *testing.T) {
	t.Parallel()
	play(t, replicasAttached, map[string]scene{
		"everybody follows the primary of its shard": {spec: persistent(3, 1), want: []string{"settled"}},
		"a cluster without replicas":                 {spec: persistent(3, 0), want: []string{"settled"}},
		"members that have not met their primary wait": {
			spec: persistent(1, 1), fresh: true, happens: func(b *bench) { b.assign(0, valkey.AllSlots()) },
			want: []string{"wait ReplicasAttaching"},
		},
		"a blank member that knows its primary": {spec: persistent(1, 1), fresh: true, happens: func(b *bench) {
			b.assign(0, valkey.AllSlots())
			b.meet(0, 1)
			b.servers.Settle()
		}, want: []string{"settled ReplicasAttaching", "attach node prod-0-1 as replica of prod-0-0"}},
		"a replica that follows another shard's primary": {spec: persistent(2, 1), happens: func(b *bench) {
			other := b.at(1, 0).server.ID()
			b.command(1, func(server valkey.Server) error { return server.Replicate(b.context(), other) })
		}, want: []string{"settled ReplicasAttaching", "attach node prod-0-1 as replica of prod-0-0"}},
		"a replica that syncs": {spec: persistent(1, 1), happens: func(b *bench) { b.unsynced(0, 1) }, want: []string{"wait ReplicasAttaching"}},
		"a shard whose primary is away": {
			spec: persistent(1, 1), happens: func(b *bench) { b.kill(0, 0, "") },
			want: []string{"wait ReplicasAttaching"},
		},
		"another shard's primary is away: others are attached all the same": {spec: ephemeral(3, 1), happens: func(b *bench) {
			b.kill(2, 0, "")
			b.replace(0, 1, "10.1.0.1:6379")
			b.meet(0, 1)
			b.advance(3)
		}, want: []string{"settled ReplicasAttaching", "attach node prod-0-1 as replica of prod-0-0"}},
		"an earlier owner is back, while the later one is silent": {spec: persistent(1, 2), happens: func(b *bench) {
			b.kill(0, 0, "")
			b.command(1, func(server valkey.Server) error { return server.Failover(b.context(), valkey.Takeover) })
			b.servers.Settle()
			b.kill(0, 1, "")
			b.at(0, 0).mute = false
			b.at(0, 0).server.Start(valkeytest.Start{Address: "10.1.0.1:6379"})
			b.edits = append(b.edits, func(in *Input) {
				table := &in.State.Members[2].Server.Value.Table
				for i := range table.Nodes {
					if table.Nodes[i].ID == b.at(0, 0).server.ID() {
						table.Nodes[i].Addr.Host = "10.1.0.1" // it was introduced
					}
				}
			})
		}, want: []string{"wait ReplicasAttaching"}},
		"of two slot owners in a shard the later one is followed": {spec: persistent(3, 2), happens: func(b *bench) {
			b.at(0, 0).server.Silence(true)
			b.advance(30)
			b.at(0, 0).server.Silence(false)
			b.edits = append(b.edits, func(in *Input) {
				// The old primary has not heard yet.
				for i, entry := range in.State.Members[0].Server.Value.Table.Nodes {
					if entry.Flags.Myself {
						in.State.Members[0].Server.Value.Table.Nodes[i].Slots = valkey.ShardSlots(3, 0)
					}
				}
			})
		}, want: []string{"wait ReplicasAttaching"}},
	})
}

func TestShardInSync(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		happens func(*bench)
		want    bool
	}{
		"all members of the shard":      {func(*bench) {}, true},
		"a replica is silent":           {func(b *bench) { b.at(0, 1).server.Silence(true) }, false},
		"the primary is silent":         {func(b *bench) { b.at(0, 0).server.Silence(true) }, false},
		"a replica syncs":               {func(b *bench) { b.unsynced(0, 1) }, false},
		"a replica is another's":        {func(b *bench) { b.replace(0, 1, "10.1.0.1:6379") }, false},
		"a member of another one fails": {func(b *bench) { b.kill(1, 0, protocol.ServerHeld) }, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := formedBench(persistent(3, 1), 1)
			row.happens(b)
			if got := ShardInSync(b.input(), 0); got != row.want {
				t.Errorf("it is %t, want %t", got, row.want)
			}
		})
	}
}
