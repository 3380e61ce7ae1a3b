package controller

import (
	"maps"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// settings remembers, by cluster, what running servers were given of settings and
// what they refused last. Forgetting it, as a restart does, costs giving them once
// more.
type settings struct {
	mutex sync.Mutex
	of    map[client.ObjectKey]*adjustments
}

// adjustments are what is remembered of one cluster.
type adjustments struct {
	given    map[string]state.GivenSettings  // by node
	refusals map[string]state.SettingRefusal // by node
}

// tell puts into a snapshot what is remembered.
func (s *settings) tell(key client.ObjectKey, snapshot *state.Cluster) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known := s.of[key]; known != nil {
		snapshot.Given, snapshot.SettingRefusals = maps.Clone(known.given), maps.Clone(known.refusals)
	}
}

// keep remembers what a plan gave. Of a step that failed in part, nobody knows
// who has got what: all of its servers are asked again.
func (s *settings) keep(key client.ObjectKey, snapshot state.Cluster, made plan.Plan, outcome plan.Outcome) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, rule := range []string{cluster.RuleSettingsAccepted, cluster.RuleSettingsGiven} {
		step, _ := made.Step(rule)
		if !succeeded(outcome, rule) {
			continue
		}
		for _, action := range step.Actions {
			if gave, is := action.(plan.SetConfig); is {
				s.open(key).accept(gave)
			}
		}
	}
	if refusal, refused := cluster.SettingRefusalIn(outcome); refused {
		refusal.At = snapshot.Now
		s.open(key).refusals[refusal.Node] = refusal
	}
}

// accept remembers settings that a server took.
func (a *adjustments) accept(gave plan.SetConfig) {
	a.given[gave.To.Node] = state.GivenSettings{RunID: gave.Run, Settings: gave.Settings}
	delete(a.refusals, gave.To.Node)
}

func (s *settings) open(key client.ObjectKey) *adjustments {
	if s.of == nil {
		s.of = map[client.ObjectKey]*adjustments{}
	}
	if s.of[key] == nil {
		s.of[key] = &adjustments{given: map[string]state.GivenSettings{}, refusals: map[string]state.SettingRefusal{}}
	}
	return s.of[key]
}

func (s *settings) forget(key client.ObjectKey) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.of, key)
}
