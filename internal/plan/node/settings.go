package node

import (
	"fmt"
	"slices"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// settingRefused is the verdict on a member whose server did not start because of
// its settings, and whether that is so: by what its agent tells of the last end,
// else by the last words that its worker keeps. One that has come up since
// is past that.
func settingRefused(in Input, pod state.Pod) (plan.Verdict, bool) {
	words := []string{pod.Problem}
	if pod.Problem == "" { // of another problem they tell nothing
		words = append(words, pod.LastWords)
	}
	if agent := in.State.Agent; agent.Known {
		if agent.Value.Server != protocol.ServerStarting && agent.Value.Server != protocol.ServerStopped {
			return plan.Verdict{}, false
		}
		if agent.Value.LastStop != nil {
			words = slices.Insert(words, 0, agent.Value.LastStop.Note)
		}
	}
	for _, text := range words {
		if refusal, found := valkey.SettingRefusal(text); found {
			return plan.Verdict{
				Hold: plan.Wait, Reason: v1alpha1.ReasonConfigRefused, Look: plan.LookServer,
				Note: fmt.Sprintf("the server of pod %s does not start with its settings: %s; mend or remove that setting in spec.config", pod.Name, refusal),
			}, true
		}
	}
	return plan.Verdict{}, false
}
