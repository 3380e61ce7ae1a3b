package controller

import (
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/plan"
)

// failOvers remembers, by cluster and shard, when a replica was last asked to take
// over from a primary that is well. Writes stop during each try, so that the next
// must not come at once; forgetting it, as a restart does, costs one try more.
type failOvers struct {
	mutex sync.Mutex
	asked map[client.ObjectKey]map[int]time.Time
}

func (f *failOvers) of(cluster client.ObjectKey) map[int]time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return maps.Clone(f.asked[cluster])
}

// keep remembers what a plan asked, whatever became of it.
func (f *failOvers) keep(cluster client.ObjectKey, now time.Time, made plan.Plan) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, action := range made.Actions() {
		asked, is := action.(plan.FailOver)
		if !is {
			continue
		}
		if f.asked == nil {
			f.asked = map[client.ObjectKey]map[int]time.Time{}
		}
		if f.asked[cluster] == nil {
			f.asked[cluster] = map[int]time.Time{}
		}
		f.asked[cluster][asked.Shard] = now
	}
}

func (f *failOvers) forget(cluster client.ObjectKey) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.asked, cluster)
}
