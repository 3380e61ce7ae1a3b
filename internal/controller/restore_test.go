package controller_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// A status that is lost in the course of a roll, as in a restore, lets nobody forget
// that there is something to lose: still one member of a shard goes at a time, and
// not all shards at once.
func TestALostStatusDoesNotHurryARoll(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		spec v1alpha1.ValkeyClusterSpec
		most int // members of the cluster that may be away at a time
	}{
		"with two replicas": {persistent(1, 2), 1},
		"without replicas":  {persistent(5, 0), 2},
	} {
		for after := range 4 {
			t.Run(fmt.Sprintf("%s, after %d rounds", what, after), func(t *testing.T) {
				t.Parallel()
				w := settledWorld(t, row.spec)
				w.setImage(nextImage)
				w.rounds(after)
				cluster := w.cluster()
				cluster.Status = v1alpha1.ValkeyClusterStatus{}
				w.must(w.api.Status().Update(t.Context(), cluster))
				members := int(row.spec.Shards * (row.spec.Replicas + 1))
				if away := members - w.fewestRunning(60); away > row.most {
					t.Errorf("%d members were away at once", away)
				}
				w.settle()
				if images := w.images(); images[nextImage] != members {
					t.Errorf("images: %v", images)
				}
			})
		}
	}
}

// fewestRunning is how many pods ran at least in each of some rounds.
func (w *world) fewestRunning(rounds int) int {
	w.t.Helper()
	fewest := w.running()
	for range rounds {
		w.rounds(1)
		fewest = min(fewest, w.running())
	}
	return fewest
}

// running are how many pods run. One whose link is new may not be ready.
func (w *world) running() int {
	w.t.Helper()
	running := 0
	for _, object := range w.list(&corev1.PodList{}) {
		if pod, is := object.(*corev1.Pod); is && pod.Status.PodIP != "" && pod.DeletionTimestamp == nil {
			running++
		}
	}
	return running
}
