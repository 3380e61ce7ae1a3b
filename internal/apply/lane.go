package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"valkey.io/valkey-operator/internal/plan"
)

// A lane is the actions of a step on one target, in the plan's order.
type lane []plan.Action

// lanesOf parts actions by their targets, in order of first appearance.
func lanesOf(actions []plan.Action) []lane {
	var lanes []lane
	at := map[string]int{}
	for _, action := range actions {
		target := targetOf(action)
		i, known := at[target]
		if !known {
			i = len(lanes)
			at[target] = i
			lanes = append(lanes, nil)
		}
		lanes[i] = append(lanes[i], action)
	}
	return lanes
}

// targetOf is what an action is done to, where others may be done to something
// else meanwhile; all the rest share one lane.
func targetOf(action plan.Action) string {
	switch act := action.(type) {
	case plan.EnsureNode:
		return act.Node
	case plan.TryExpandClaim:
		return act.Claim
	case plan.MeetNode:
		return act.Via.Node
	case plan.AssignSlots:
		return act.To.Node
	case plan.AttachReplica:
		return act.Replica.Node
	case plan.ForgetNode:
		return act.From.Node
	case plan.RewriteLog:
		return act.Server.Node
	case plan.SetConfig:
		return act.To.Node
	default:
		return ""
	}
}

// runStep performs a step's trials and, if all succeed, its actions.
func (a Applier) runStep(ctx context.Context, step plan.Step) plan.Result {
	if tried := a.runLanes(ctx, step, lanesOf(step.Trials)); tried.Err != nil {
		tried.Done = 0 // trials do nothing
		return tried
	}
	return a.runLanes(ctx, step, lanesOf(step.Actions))
}

// runLanes performs actions side by side. An error ends its lane, not the others;
// of several, the result tells the one that comes first in the plan.
func (a Applier) runLanes(ctx context.Context, step plan.Step, lanes []lane) plan.Result {
	results := make([]plan.Result, len(lanes))
	var group errgroup.Group
	group.SetLimit(max(1, a.Lanes))
	for i, actions := range lanes {
		group.Go(func() error {
			results[i] = a.runLane(ctx, step, actions)
			return nil
		})
	}
	_ = group.Wait() // the errors are in the results
	result := plan.Result{Rule: step.Rule}
	for _, of := range results {
		result.Done += of.Done
		if result.Err == nil {
			result.Err, result.At = of.Err, of.At
		}
	}
	return result
}

func (a Applier) runLane(ctx context.Context, step plan.Step, actions lane) plan.Result {
	log := logr.FromContextOrDiscard(ctx).WithValues("rule", step.Track+"/"+step.Rule)
	var result plan.Result
	for _, action := range actions {
		began := time.Now()
		if err := a.do(ctx, action); err != nil {
			result.Err = fmt.Errorf("%s: %w", action, err)
			result.At = action
			log.Info("action failed", "action", action.String(), "error", err.Error(), "took", time.Since(began))
			return result
		}
		result.Done++
		log.Info("action done", "action", action.String(), "took", time.Since(began))
	}
	return result
}
