package controller

import (
	"maps"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// births remembers, by the UID of a cluster, the shards whose slots nobody can
// own: this process made the cluster's identity, before any member existed, and
// has given those slots to nobody since. Forgetting it, as a restart does, costs
// waiting until every member answers.
type births struct {
	mutex sync.Mutex
	of    map[string]birth
}

type birth struct {
	cluster client.ObjectKey
	unowned map[int]bool
}

func (b *births) unowned(uid string) map[int]bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return maps.Clone(b.of[uid].unowned)
}

// keep remembers an identity that was made, and slots that were given out or may
// have been.
func (b *births) keep(snapshot state.Cluster, shards int, made plan.Plan, outcome plan.Outcome) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	recorded, acted := outcome.Of(cluster.RuleIdentityRecorded)
	for _, action := range made.Actions() {
		identity, is := action.(plan.RecordIdentity)
		if is && acted && recorded.Err == nil && identity.ClusterID == snapshot.FreshID {
			b.born(snapshot, shards)
		}
		if given, is := action.(plan.AssignSlots); is {
			delete(b.of[snapshot.UID].unowned, given.Shard)
		}
	}
	if snapshot.Status.Formed {
		delete(b.of, snapshot.UID)
	}
}

func (b *births) born(snapshot state.Cluster, shards int) {
	if b.of == nil {
		b.of = map[string]birth{}
	}
	unowned := map[int]bool{}
	for shard := range shards {
		unowned[shard] = true
	}
	b.of[snapshot.UID] = birth{client.ObjectKey{Namespace: snapshot.Namespace, Name: snapshot.Name}, unowned}
}

func (b *births) forget(key client.ObjectKey) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	maps.DeleteFunc(b.of, func(_ string, of birth) bool { return of.cluster == key })
}
