package controller

import (
	"maps"
	"sync"
	"time"

	"valkey.io/valkey-operator/internal/plan"
	nodeplan "valkey.io/valkey-operator/internal/plan/node"
	"valkey.io/valkey-operator/internal/state"
)

// refusals remembers, by the node's UID, what the API server refused last. It
// saves asking for the same again at each look; forgetting it, as a restart
// does, costs one request.
type refusals struct {
	mutex sync.Mutex
	last  map[string]state.Refusal
}

// refusalMemory is how long a refusal is kept at most; what a plan does with
// one is the plan's matter and takes less.
const refusalMemory = time.Hour

func (r *refusals) of(uid string) *state.Refusal {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	refusal, known := r.last[uid]
	if !known {
		return nil
	}
	return &refusal
}

// keep remembers a refusal among an outcome, or forgets an older one when the
// claim was changed after all.
func (r *refusals) keep(snapshot state.Node, outcome plan.Outcome) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if refused, is := nodeplan.RefusalIn(outcome); is {
		if r.last == nil {
			r.last = map[string]state.Refusal{}
		}
		maps.DeleteFunc(r.last, func(_ string, old state.Refusal) bool {
			return snapshot.Now.Sub(old.At) > refusalMemory
		})
		refused.At = snapshot.Now
		r.last[snapshot.UID] = refused
		return
	}
	for _, rule := range []string{nodeplan.RuleClaimExists, nodeplan.RuleClaimLargeEnough} {
		if result, acted := outcome.Of(rule); acted && result.Err == nil {
			delete(r.last, snapshot.UID)
		}
	}
}
