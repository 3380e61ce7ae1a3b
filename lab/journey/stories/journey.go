package stories

import (
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// Tier says when a journey is run.
type Tier string

// The tiers: Continuous on every change, together in 25 minutes on two cores;
// Long before a release.
const (
	Continuous Tier = "ci"
	Long       Tier = "long"
)

// Journey is one user's story.
type Journey struct {
	Name string
	// Story is the promise in a sentence.
	Story string
	Tier  Tier
	// Limit ends a journey that is stuck.
	Limit time.Duration
	// NeedsLab: it reaches into workers, which only the lab allows.
	NeedsLab bool
	// Workers it needs at least; 0 means one.
	Workers int
	Play    stage.Story
}

// All journeys, in the order in which they are run.
func All() []Journey {
	var all []Journey
	for _, group := range [][]Journey{creating(), surviving(), growing(), refusing(), deleting(), guarding(), operating()} {
		all = append(all, group...)
	}
	for i := range all {
		if all[i].Limit == 0 {
			all[i].Limit = 5 * time.Minute
		}
		if all[i].Tier == "" {
			all[i].Tier = Continuous
		}
	}
	return all
}

// persistent is the cluster that most stories are about.
func persistent(shards, replicas int) stage.Spec {
	return stage.Spec{Name: "orders", Shards: shards, Replicas: replicas, Size: "64Mi"}
}
