package node

import (
	"strings"
	"testing"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// fatal are the last words of a server that does not understand a setting.
const fatal = "exited with code 1: *** FATAL CONFIG FILE ERROR (Version 9.1.2) ***\nReading the configuration file, at line 21\n>>> 'io-threads 500'\nargument must be between 1 and 256 inclusive"

func TestAServerThatDoesNotStartWithItsSettings(t *testing.T) {
	t.Parallel()
	agent := func(server protocol.ServerState, note string) state.Fact[protocol.Facts] {
		return state.Seen(protocol.Facts{Server: server, LastStop: &protocol.Stop{Note: note}})
	}
	silent := state.Unknown[protocol.Facts]("it restarts")
	for what, row := range map[string]struct {
		agent  state.Fact[protocol.Facts]
		pod    state.Pod
		reason string
	}{
		"its agent has come back":              {agent: agent(protocol.ServerStarting, fatal), reason: v1alpha1.ReasonConfigRefused},
		"its agent is about to go":             {agent: agent(protocol.ServerStopped, fatal), reason: v1alpha1.ReasonConfigRefused},
		"the worker is patient":                {agent: silent, pod: state.Pod{Problem: "container server: CrashLoopBackOff: " + fatal}, reason: v1alpha1.ReasonConfigRefused},
		"the container has just ended":         {agent: silent, pod: state.Pod{LastWords: fatal}, reason: v1alpha1.ReasonConfigRefused},
		"it has come up since, and loads":      {agent: agent(protocol.ServerLoading, fatal), pod: state.Pod{LastWords: fatal}, reason: v1alpha1.ReasonMembersStarting},
		"it ended for another cause":           {agent: agent(protocol.ServerStarting, "killed"), reason: v1alpha1.ReasonMembersStarting},
		"its image cannot be pulled by now":    {agent: silent, pod: state.Pod{Problem: "container server: ImagePullBackOff: no", LastWords: fatal}, reason: v1alpha1.ReasonPodPending},
		"nothing is known of how it ended yet": {agent: silent, reason: v1alpha1.ReasonMembersStarting},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			pod := in.State.Pods[0]
			pod.Ready, pod.Problem, pod.LastWords, pod.IP = false, row.pod.Problem, row.pod.LastWords, "10.0.0.7"
			in.State.Pods, in.State.Agent = []state.Pod{pod}, row.agent
			verdict := podReady(in)
			if verdict.Hold != plan.Wait || verdict.Reason != row.reason {
				t.Errorf("%s %s: %s", verdict.Hold, verdict.Reason, verdict.Note)
			}
			if quoted := strings.Contains(verdict.Note, "'io-threads 500' argument must be"); quoted != (row.reason == v1alpha1.ReasonConfigRefused) {
				t.Errorf("it says: %s", verdict.Note)
			}
		})
	}
}

func TestAServerThatCannotReadItsFilesIsToldAsADowngrade(t *testing.T) {
	t.Parallel()
	in := grown()
	in.State.Pods[0].Ready = false
	in.State.Agent = state.Seen(protocol.Facts{Decision: protocol.DecisionVersionTooOld, Message: "written by a newer one"})
	verdict := podReady(in)
	if verdict.Hold != plan.Blocked || verdict.Reason != v1alpha1.ReasonDowngradeRefused || verdict.Note != "written by a newer one" {
		t.Errorf("%+v", verdict)
	}
}
