package controller

import (
	"maps"
	"sync"
	"time"

	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	nodeplan "valkey.io/valkey-operator/internal/plan/node"
	"valkey.io/valkey-operator/internal/state"
)

// refusals remembers, by the UID of a node or cluster, what the API server
// refused last. It saves asking for the same again at each look; forgetting it,
// as a restart does, costs one request.
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

// keepNode remembers a refusal among an outcome, or forgets an older one when
// the claim was changed after all.
func (r *refusals) keepNode(snapshot state.Node, outcome plan.Outcome) {
	if refused, is := nodeplan.RefusalIn(outcome); is {
		r.remember(snapshot.UID, refused, snapshot.Now)
	} else if succeeded(outcome, nodeplan.RuleClaimExists) || succeeded(outcome, nodeplan.RuleClaimLargeEnough) {
		r.forget(snapshot.UID)
	}
}

// keepCluster remembers a trial's refusal among an outcome, or forgets an older
// one when a growth began after all.
func (r *refusals) keepCluster(snapshot state.Cluster, outcome plan.Outcome) {
	if refused, is := cluster.RefusalIn(outcome); is {
		r.remember(snapshot.UID, refused, snapshot.Now)
	} else if succeeded(outcome, cluster.RuleSizesCurrent) {
		r.forget(snapshot.UID)
	}
}

func succeeded(outcome plan.Outcome, rule string) bool {
	result, acted := outcome.Of(rule)
	return acted && result.Err == nil
}

func (r *refusals) remember(uid string, refused state.Refusal, now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.last == nil {
		r.last = map[string]state.Refusal{}
	}
	maps.DeleteFunc(r.last, func(_ string, old state.Refusal) bool { return now.Sub(old.At) > refusalMemory })
	refused.At = now
	r.last[uid] = refused
}

func (r *refusals) forget(uid string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.last, uid)
}
