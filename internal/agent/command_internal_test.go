package agent

import (
	"log/slog"
	"testing"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

// A command meets a try to start that is under way, and has another outcome than
// the last one: the word is about a hold that is over.
func TestACommandEndsNoOtherHold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		phase probe.Phase
		next  protocol.Decision
		want  bool
	}{
		"the same hold ends":                    {probe.Held, protocol.DecisionHeldEmpty, true},
		"another hold does not":                 {probe.Held, protocol.DecisionTableDamaged, false},
		"a start leaves nothing for the next":   {probe.Deciding, protocol.DecisionStart, false},
		"nor does one that waits for a lock":    {probe.Held, protocol.DecisionVolumeLocked, false},
		"nor one behind closed doors leave any": {probe.Deciding, protocol.DecisionStartReplaced, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			board := newBoard(Config{}, slog.New(slog.DiscardHandler))
			board.decide(probe.Held, guard.Verdict{Decision: protocol.DecisionHeldEmpty})
			command := protocol.StartEmpty{Hold: board.hold, Decision: protocol.DecisionHeldEmpty}
			if err := board.command(command); err != nil {
				t.Fatal(err)
			}
			board.decide(test.phase, guard.Verdict{Decision: test.next})
			if _, given := board.takeCommand(); given != test.want {
				t.Errorf("given %t, want %t", given, test.want)
			}
		})
	}
}
