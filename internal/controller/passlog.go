// Package controller says when a pass runs and when to look again, and nothing
// else: what is seen, decided, done and told is the matter of the packages
// observe, plan, apply and report.
package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"valkey.io/valkey-operator/internal/plan"
)

// passLog writes one line for a pass whose plan has something to do or says
// something new; a pass that waits for the same as the one before is told at
// debug level only. It remembers the last pass of each object for that.
type passLog struct {
	last sync.Map // client.ObjectKey to its last pass
}

// pass is what a plan wanted and waited for, and since when.
type pass struct {
	text  string
	since time.Time
}

// write returns how long the plan has been the same by now, as far as this
// process knows.
func (l *passLog) write(ctx context.Context, key client.ObjectKey, p plan.Plan, now time.Time) time.Duration {
	var steps []string
	acts := false
	for _, step := range p {
		if step.Hold == plan.Settled && len(step.Actions) == 0 {
			continue
		}
		acts = acts || len(step.Actions) > 0
		steps = append(steps, fmt.Sprintf("%s/%s %s %s: %s (%d actions)",
			step.Track, step.Rule, step.Hold, step.Reason, step.Note, len(step.Actions)))
	}
	last := pass{text: fmt.Sprint(steps), since: now}
	stored, _ := l.last.Load(key)
	before, known := stored.(pass)
	if known && before.text == last.text {
		last.since = before.since
	}
	l.last.Store(key, last)
	log := ctrl.LoggerFrom(ctx)
	if !acts && (known && before.text == last.text || !known && len(steps) == 0) {
		log = log.V(1)
	}
	log.Info("pass", "plan", steps)
	return now.Sub(last.since)
}

// forget drops what is remembered of an object that is gone.
func (l *passLog) forget(key client.ObjectKey) { l.last.Delete(key) }

// whenGone has an object that is deleted forgotten. It lets everything through,
// and must be the first predicate, since the first no ends the asking.
func whenGone(forget func(client.ObjectKey)) predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(gone event.DeleteEvent) bool {
		forget(client.ObjectKeyFromObject(gone.Object))
		return true
	}}
}
