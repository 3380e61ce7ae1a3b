package cluster

import (
	"strings"
	"testing"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
)

func TestGraceAdvice(t *testing.T) {
	t.Parallel()
	saves := func(seconds int64) state.Fact[protocol.Facts] {
		return state.Seen(protocol.Facts{Files: &protocol.Files{SaveSeconds: seconds}})
	}
	for what, row := range map[string]struct {
		asked *int64
		agent state.Fact[protocol.Facts]
		says  string
	}{
		"the operator reckons":        {nil, saves(100), ""},
		"long enough":                 {new(int64(56)), saves(20), ""},
		"a second too short":          {new(int64(55)), saves(20), "may need 56 s"},
		"nobody tells":                {new(int64(30)), state.Unknown[protocol.Facts]("silent"), ""},
		"nothing was told of files":   {new(int64(30)), state.Seen(protocol.Facts{}), ""},
		"too short, with the remedy":  {new(int64(30)), saves(20), "raise spec.terminationGracePeriodSeconds"},
		"the member is named":         {new(int64(30)), saves(20), "prod-0-1"},
		"short, and nothing to write": {new(int64(30)), saves(0), ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := freshBench(persistent(1, 1), 2).input()
			in.Spec.TerminationGracePeriodSeconds = row.asked
			in.State.Members[1].Agent = row.agent
			advice, short := GraceAdvice(in)
			if short != (row.says != "") || !strings.Contains(advice, row.says) {
				t.Errorf("it says %q, want %q in it", advice, row.says)
			}
		})
	}
}
