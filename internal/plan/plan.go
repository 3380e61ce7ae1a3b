// Package plan holds what all decisions share: verdicts, plans, outcomes and
// the vocabulary of actions. The decisions themselves are in plan/cluster and
// plan/node: pure functions from a spec and a snapshot to a plan. Nothing here
// reads, writes, waits, or asks for the time.
package plan

import (
	"fmt"
	"time"
)

// Hold says how a rule found the world.
type Hold int

// The three holds.
const (
	// Settled: the wished-for truth holds, or its actions make it hold.
	Settled Hold = iota
	// Wait: the world needs time.
	Wait
	// Blocked: a person must act; the reason and note say what.
	Blocked
)

// String is the hold in one word.
func (h Hold) String() string {
	switch h {
	case Settled:
		return "settled"
	case Wait:
		return "wait"
	case Blocked:
		return "blocked"
	default:
		return fmt.Sprintf("hold %d", int(h))
	}
}

// Times after which a rule may want to look again without being woken.
const (
	// LookWritten: what we have just written is seen within milliseconds; one
	// look too early costs a conflict.
	LookWritten = 20 * time.Millisecond
	// LookGossip: gossip and handshakes take tenths of a second.
	LookGossip = 200 * time.Millisecond
	// LookServer: a server starts, loads or syncs.
	LookServer = time.Second
	// LookWorld: a claim, a pod or a class changes; a watch usually wakes us first.
	LookWorld = 5 * time.Second
	// LookDrift: everything is settled; look for what no watch tells.
	LookDrift = time.Minute
)

// longWait is how long a plan stays the same before it is looked for less
// often: servers start, and take over from each other, within less.
const longWait = 2 * time.Minute

// Verdict is what a rule found and wants done.
type Verdict struct {
	Hold    Hold
	Reason  string   // one constant of api/v1alpha1
	Note    string   // a sentence that names the object and the remedy
	Trials  []Action // must all succeed before the first of Actions; they change nothing
	Actions []Action
	Look    time.Duration // how soon to look again; 0 means when woken
}

// Rule is a wished-for truth: its name, and the function that judges it.
type Rule[I any] struct {
	Name  string
	Judge func(I) Verdict
}

// Step is the verdict of one rule, under its track's and its own name.
type Step struct {
	Track string
	Rule  string
	Verdict
}

// Plan is the verdicts of all rules that were asked, in order.
type Plan []Step

// Track is an ordered list of rules: the first that is not settled, or that
// wants something done, ends it. Tracks do not wait for each other.
type Track[I any] struct {
	Name  string
	Rules []Rule[I]
}

// Make asks the rules of all tracks.
func Make[I any](tracks []Track[I], in I) Plan {
	var made Plan
	for _, track := range tracks {
		for _, rule := range track.Rules {
			verdict := rule.Judge(in)
			made = append(made, Step{Track: track.Name, Rule: rule.Name, Verdict: verdict})
			if verdict.Hold != Settled || len(verdict.Actions) > 0 {
				break
			}
		}
	}
	return made
}

// Settled says whether the plan wants nothing done and waits for nothing.
func (p Plan) Settled() bool {
	for _, step := range p {
		if step.Hold != Settled || len(step.Actions) > 0 {
			return false
		}
	}
	return true
}

// Step returns the verdict of a rule, and whether it was asked.
func (p Plan) Step(rule string) (Step, bool) {
	for _, step := range p {
		if step.Rule == rule {
			return step, true
		}
	}
	return Step{}, false
}

// Actions are all actions of the plan, in order, without its trials.
func (p Plan) Actions() []Action {
	var actions []Action
	for _, step := range p {
		actions = append(actions, step.Actions...)
	}
	return actions
}

// Outcome is what became of a plan: one entry a step that had actions.
type Outcome []Result

// Result is what became of a step's actions.
type Result struct {
	Rule string
	Done int    // how many of its actions were carried out
	Err  error  // what stopped it
	At   Action // the action that failed
}

// Of is the result of a rule's actions, and whether it had any.
func (o Outcome) Of(rule string) (Result, bool) {
	for _, result := range o {
		if result.Rule == rule {
			return result, true
		}
	}
	return Result{}, false
}

// Next is how soon to look again, if nothing wakes us before, at a plan that
// has been the same for some time. What has waited for long does not pass
// within a moment of its own: it is looked at each LookWorld at most.
func (p Plan) Next(same time.Duration) time.Duration {
	next := LookDrift
	for _, step := range p {
		if step.Look > 0 && step.Look < next {
			next = step.Look
		}
	}
	if same > longWait {
		next = max(next, LookWorld)
	}
	return next
}
