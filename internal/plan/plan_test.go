package plan_test

import (
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/plan"
)

func TestNext(t *testing.T) {
	t.Parallel()
	looks := func(looks ...time.Duration) plan.Plan {
		var made plan.Plan
		for _, look := range looks {
			made = append(made, plan.Step{Verdict: plan.Verdict{Look: look}})
		}
		return made
	}
	const aWhile, long = 2 * time.Minute, 2*time.Minute + time.Second
	for what, row := range map[string]struct {
		plan plan.Plan
		same time.Duration
		want time.Duration
	}{
		"an empty plan":                          {looks(), 0, plan.LookDrift},
		"nobody wants to look":                   {looks(0, 0), 0, plan.LookDrift},
		"the most impatient step counts":         {looks(plan.LookWorld, plan.LookGossip, 0), 0, plan.LookGossip},
		"waited for a while":                     {looks(plan.LookServer), aWhile, plan.LookServer},
		"waited for long":                        {looks(plan.LookServer), long, plan.LookWorld},
		"waited for long, and patient by itself": {looks(30 * time.Second), long, 30 * time.Second},
		"settled for long":                       {looks(0), long, plan.LookDrift},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if got := row.plan.Next(row.same); got != row.want {
				t.Errorf("the next look is after %s, want %s", got, row.want)
			}
		})
	}
}
