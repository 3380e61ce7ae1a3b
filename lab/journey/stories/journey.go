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

// Need is what a journey needs of the cluster.
type Need string

// What journeys need: Lab to reach into workers, Variant for an image of the
// operator that renders pods otherwise.
const (
	Lab     Need = "the lab"
	Variant Need = "--operator-image-next (on the lab: `make image-next`)"
)

// Met says whether a world has what is needed.
func (n Need) Met(w *stage.World) bool {
	switch n {
	case Lab:
		return w.Lab != ""
	case Variant:
		return w.Images.OperatorNext != ""
	}
	return true
}

// Journey is one user's story.
type Journey struct {
	Name string
	// Story is the promise in a sentence.
	Story string
	Tier  Tier
	// Limit ends a journey that is stuck.
	Limit time.Duration
	// Needs is what not every cluster has; empty means nothing special.
	Needs Need
	// Workers it needs at least; 0 means one.
	Workers int
	Play    stage.Story
}

// All journeys, in the order in which they are run.
func All() []Journey {
	var all []Journey
	for _, group := range [][]Journey{
		creating(), surviving(), growing(), sizing(), growingOffline(), growingByItself(), growingKilled(),
		rolling(), rollingBroken(), setting(), draining(),
		refusing(), limiting(), failing(), filling(), deleting(), guarding(), damaging(), operating(),
	} {
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
