// Package apply holds the hands: it performs the actions of a plan, one
// function an action, and is the only package that writes. It decides
// nothing: an action that rests on an observation repeats it as a
// precondition, so that a stale plan fails harmlessly.
package apply

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
)

// serverPatience bounds each command to a server: dial, login and answer.
const serverPatience = 5 * time.Second

// Applier performs plans in one namespace.
type Applier struct {
	Client    client.Client
	Namespace string
	// Dial connects to a server as the operator's user; nil where no action
	// talks to servers.
	Dial valkey.Dialer
	// Command lets a member start without its data, by a word to its agent that is
	// signed with a password; nil where no action does that.
	Command Commander
	// Login is the operator's password at the servers of this cluster.
	Login string
	// Lanes is on how many targets a step is carried out side by side; less
	// than two means one after the other.
	Lanes int
}

// Commander gives a command, signed with a password, to the agent at a host.
type Commander func(ctx context.Context, host, password string, to protocol.Addressee, command protocol.StartEmpty) error

// CommandAgent gives a command to an agent over HTTP.
func CommandAgent(ctx context.Context, host, password string, to protocol.Addressee, command protocol.StartEmpty) error {
	return protocol.Operator{Client: agentClient, Password: password}.Post(ctx, host, to, command)
}

// agentClient keeps no connection: one to a pod that went would be found dead only by waiting.
var agentClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Run performs the steps of a plan in order. An error in a step ends that
// step's track; other tracks go on. It returns one result for each step
// that had actions, and logs one line an action.
func (a Applier) Run(ctx context.Context, p plan.Plan) plan.Outcome {
	var outcome plan.Outcome
	failed := map[string]bool{}
	for _, step := range p {
		if len(step.Actions) == 0 || failed[step.Track] {
			continue
		}
		result := a.runStep(ctx, step)
		failed[step.Track] = result.Err != nil
		outcome = append(outcome, result)
	}
	return outcome
}

// do performs one action. Together with doClaim and doServer it is the only
// switch over their types.
func (a Applier) do(ctx context.Context, action plan.Action) error {
	switch act := action.(type) {
	case plan.Ensure:
		return a.ensure(ctx, act)
	case plan.EnsureNode:
		return a.ensure(ctx, plan.Ensure{
			Kind: "ValkeyNode", Name: act.Node, Manager: act.Manager,
			Config: client.ApplyConfigurationFromUnstructured(act.Fields.DeepCopy()),
		})
	case plan.Adopt:
		return a.adopt(ctx, act)
	case plan.CreatePasswords:
		return a.createPasswords(ctx, act)
	case plan.RecordIdentity:
		return a.recordIdentity(ctx, act)
	case plan.MarkPod:
		return a.markPod(ctx, act)
	case plan.DeletePod:
		return a.deletePod(ctx, act)
	case plan.DeleteBudget:
		return a.deleteBudget(ctx, act)
	case plan.ScaleWorkload:
		return a.scaleWorkload(ctx, act)
	default:
		return a.doClaim(ctx, action)
	}
}
