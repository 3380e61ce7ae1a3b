package node

import (
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
)

// The time to end follows what saves take, and stays as it was while nobody tells.
func TestGraceSeconds(t *testing.T) {
	t.Parallel()
	saves := func(seconds int64) state.Fact[protocol.Facts] {
		return state.Seen(protocol.Facts{Files: &protocol.Files{SaveSeconds: seconds}})
	}
	silent := state.Unknown[protocol.Facts]("silent")
	for what, row := range map[string]struct {
		agent    state.Fact[protocol.Facts]
		workload *state.Workload
		want     int64
	}{
		"a new member":                   {silent, nil, 60},
		"saves take long":                {saves(50), &state.Workload{GraceSeconds: 60}, 120},
		"saves take less long than once": {saves(1), &state.Workload{GraceSeconds: 300}, 60},
		"its agent is silent":            {silent, &state.Workload{GraceSeconds: 300}, 300},
		"nothing is told of files":       {state.Seen(protocol.Facts{}), &state.Workload{GraceSeconds: 300}, 300},
		"the user had asked for little":  {silent, &state.Workload{GraceSeconds: 30}, 60},
	} {
		in := Input{State: state.Node{Agent: row.agent, Workload: row.workload}}
		if got := in.graceSeconds(); got != row.want {
			t.Errorf("%s: %d s, want %d", what, got, row.want)
		}
	}
}
