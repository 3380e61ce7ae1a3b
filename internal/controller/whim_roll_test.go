package controller_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// rollWhims are what a person, a restore or a crash may do at any moment of a roll.
var rollWhims = []func(w *world, dice *rand.Rand){
	func(w *world, dice *rand.Rand) {
		w.setImage([]string{"valkey/valkey:9.1.2", nextImage, "valkey/valkey:9.1.4", brokenImage, "valkey/valkey:8.1.1"}[dice.IntN(5)])
	},
	func(w *world, dice *rand.Rand) {
		w.configure([]config{
			{"maxmemory": "1000", "tcp-backlog": "128"},
			{"maxmemory": "2000", "tcp-backlog": "128"},
			{"maxmemory": "much"},
			{"tcp-backlog": "64"},
			{"tcp-backlog": badBacklog},
			{"maxmemry": "1"},
			nil,
		}[dice.IntN(7)])
	},
	func(w *world, dice *rand.Rand) { w.resize(fmt.Sprintf("%dMi", 1024+dice.IntN(6)*700)) },
	func(w *world, dice *rand.Rand) {
		w.offline = dice.IntN(2) == 0
		w.edit(func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineRollingRestart
		})
	},
	func(w *world, _ *rand.Rand) { w.startOperator() },
	func(w *world, _ *rand.Rand) { // the status is lost, as in a restore
		cluster := w.cluster()
		cluster.Status = v1alpha1.ValkeyClusterStatus{}
		w.must(w.api.Status().Update(w.t.Context(), cluster))
	},
	func(w *world, dice *rand.Rand) { w.barren = dice.IntN(3) == 0 },
	func(w *world, dice *rand.Rand) { w.nodesFirst = dice.IntN(2) == 0 },
	func(w *world, dice *rand.Rand) { // a pod is deleted
		victim := dice.IntN(6)
		pods := w.list(&corev1.PodList{})
		if len(pods) == 6 {
			w.endPods(func(pod *corev1.Pod) bool { return pod.Name == pods[victim].GetName() })
		}
	},
}

// Whatever happens in the course of rolls: no key is lost, and once it ends everybody
// runs what is asked for.
func TestRollsAmidWhims(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dice := rand.New(rand.NewPCG(seed, 2))
			w := formed(t, true)
			for range 25 {
				rollWhims[dice.IntN(len(rollWhims))](w, dice)
				w.rounds(1 + dice.IntN(20))
			}
			w.barren = false
			w.edit(func(spec *v1alpha1.ValkeyClusterSpec) {
				spec.Image, spec.Config = "valkey/valkey:9.1.5", config{"maxmemory": "3000", "tcp-backlog": "256"}
			})
			w.endWhims()
			w.settle()
			end := w.picture()
			if len(end.Lost) > 0 {
				t.Errorf("lost %d keys", len(end.Lost))
			}
			if images := w.images(); images["valkey/valkey:9.1.5"] != 6 {
				t.Errorf("images: %v", images)
			}
			everybodyHas(t, end, "maxmemory 3000, maxmemory-policy noeviction, tcp-backlog 256", "maxmemory 3000, tcp-backlog 256")
		})
	}
}
