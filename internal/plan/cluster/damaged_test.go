package cluster

import (
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
)

// cannotUse has the agent of a member, by its place in the list, hold it for its files.
func (b *bench) cannotUse(place int, decision protocol.Decision) {
	b.edits = append(b.edits, func(in *Input) {
		facts := &in.State.Members[place].Agent.Value
		facts.Server, facts.Decision, facts.Hold = protocol.ServerHeld, decision, "abc"
	})
}

func TestFilesUsable(t *testing.T) {
	t.Parallel()
	blocked := []string{"blocked FilesDamaged"}
	play(t, filesUsable, map[string]scene{
		"nobody is held": {spec: persistent(1, 1), want: []string{"settled"}},
		"a replica's log is damaged": {
			spec: persistent(1, 1), happens: func(b *bench) {
				b.hold(0, 1, protocol.ServerHeld)
				b.cannotUse(1, protocol.DecisionDataDamaged)
			},
			want: []string{"settled FilesDamaged", "let node prod-0-1 (DataDamaged) start without its data"},
		},
		"a primary's table is damaged and nobody took its place": {
			spec: persistent(1, 1), happens: func(b *bench) {
				b.hold(0, 0, protocol.ServerHeld)
				b.cannotUse(0, protocol.DecisionTableDamaged)
			},
			want: blocked,
		},
		"the only member's log is damaged": {
			spec: persistent(1, 0), happens: func(b *bench) {
				b.hold(0, 0, protocol.ServerHeld)
				b.cannotUse(0, protocol.DecisionDataDamaged)
			},
			want: blocked,
		},
		"a person lets the only member start without its data": {
			spec: persistent(1, 0), happens: func(b *bench) {
				b.hold(0, 0, protocol.ServerHeld)
				b.cannotUse(0, protocol.DecisionDataDamaged)
				b.edits = append(b.edits, func(in *Input) { in.State.Members[0].Record = &state.NodeRecord{StartEmpty: "abc"} })
			},
			want: []string{"settled FilesDamaged", "let node prod-0-0 (DataDamaged) start without its data"},
		},
		"a person allowed it in an earlier hold": {
			spec: persistent(1, 0), happens: func(b *bench) {
				b.hold(0, 0, protocol.ServerHeld)
				b.cannotUse(0, protocol.DecisionDataDamaged)
				b.edits = append(b.edits, func(in *Input) { in.State.Members[0].Record = &state.NodeRecord{StartEmpty: "old"} })
			},
			want: blocked,
		},
	})
}
