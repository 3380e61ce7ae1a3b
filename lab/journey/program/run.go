// Package program runs journeys one after another and sums up.
//
// It promises a last line "N passed, N failed", and to name each journey that
// cannot be run on the cluster at hand. It knows nothing of what a story tells.
package program

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/journey/stories"
)

// Program is one run of journeys.
type Program struct {
	World *stage.World
	// Keep leaves a failed journey's namespace for a look at it.
	Keep bool
}

// Select finds journeys by name, or all of a tier when none is named.
func Select(tier string, names []string) ([]stories.Journey, error) {
	all, byName := stories.All(), map[string]stories.Journey{}
	var chosen []stories.Journey
	for _, j := range all {
		byName[j.Name] = j
		if len(names) == 0 && (tier == "all" || string(j.Tier) == tier) {
			chosen = append(chosen, j)
		}
	}
	for _, name := range names {
		j, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("there is no journey %q; `journey list` shows them", name)
		}
		chosen = append(chosen, j)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no tier %q; the tiers are ci, long and all", tier)
	}
	return chosen, nil
}

// result is how one journey ended.
type result struct {
	name, failure string
	took          time.Duration
}

// Run plays the journeys and returns how many failed. It stops early only
// when the context ends.
func (p Program) Run(ctx context.Context, chosen []stories.Journey) (failed int, err error) {
	possible, err := p.possible(ctx, chosen)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	var results []result
	for i, j := range possible {
		if ctx.Err() != nil {
			break
		}
		p.World.Print("\n== %d/%d %s\n   %s\n", i+1, len(possible), j.Name, j.Story)
		r := p.play(ctx, j)
		results = append(results, r)
		p.World.Print("-- %s %s in %.0f s\n", j.Name, verdict(r.failure), r.took.Seconds())
	}
	failed = summary(p.World, results, time.Since(begin))
	if len(results) < len(possible) {
		return failed, fmt.Errorf("interrupted: %d journeys were not begun", len(possible)-len(results))
	}
	return failed, nil
}

func (p Program) play(ctx context.Context, j stories.Journey) result {
	ctx, cancel := context.WithTimeout(ctx, j.Limit)
	defer cancel()
	begin := time.Now()
	failure := p.World.Play(ctx, stage.Scene{Name: j.Name, KeepFailed: p.Keep}, j.Play)
	return result{j.Name, failure, time.Since(begin)}
}

// possible drops, with a line for each, the journeys that this cluster does not allow.
func (p Program) possible(ctx context.Context, chosen []stories.Journey) ([]stories.Journey, error) {
	workers, err := p.World.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("the cluster does not answer: %w", err)
	}
	var possible []stories.Journey
	for _, j := range chosen {
		switch {
		case !j.Needs.Met(p.World):
			p.World.Print("not on this cluster: %s needs %s\n", j.Name, j.Needs)
		case j.Workers > len(workers.Items):
			p.World.Print("not on this cluster: %s needs %d workers, there are %d\n", j.Name, j.Workers, len(workers.Items))
		default:
			possible = append(possible, j)
		}
	}
	return possible, nil
}

func verdict(failure string) string {
	if failure == "" {
		return "passed"
	}
	return "FAILED"
}

func summary(w *stage.World, results []result, took time.Duration) (failed int) {
	w.Print("\n%s\n", strings.Repeat("=", 60))
	for _, r := range results {
		w.Print("%-7s %5.0f s  %s\n", verdict(r.failure), r.took.Seconds(), r.name)
		if r.failure != "" {
			failed++
			w.Print("                 %s\n", r.failure)
		}
	}
	w.Print("in %.0f s\n%d passed, %d failed\n", took.Seconds(), len(results)-failed, failed)
	return failed
}
