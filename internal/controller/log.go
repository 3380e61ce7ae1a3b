// Package controller says when a pass runs and when to look again, and nothing
// else: what is seen, decided, done and told is the matter of the packages
// observe, plan, apply and report.
package controller

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"valkey.io/valkey-operator/internal/plan"
)

// logPlan writes one line for a pass that found something to do or to wait for.
func logPlan(ctx context.Context, made plan.Plan) {
	if made.Settled() {
		return
	}
	var steps []string
	for _, step := range made {
		if step.Hold != plan.Settled || len(step.Actions) > 0 {
			steps = append(steps, fmt.Sprintf("%s/%s %s %s %s (%d actions)",
				step.Track, step.Rule, step.Hold, step.Reason, step.Note, len(step.Actions)))
		}
	}
	ctrl.LoggerFrom(ctx).Info("plan", "steps", steps)
}
