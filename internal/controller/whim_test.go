package controller_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// whims are what a person, a restore or a crash may do to a cluster at any moment of
// a growth.
var whims = []func(w *world, dice *rand.Rand){
	func(w *world, dice *rand.Rand) { w.resize(fmt.Sprintf("%dMi", 1024+dice.IntN(6)*700)) },
	func(w *world, dice *rand.Rand) { w.offline = dice.IntN(2) == 0 },
	func(w *world, dice *rand.Rand) {
		cluster := w.cluster()
		cluster.Spec.Storage.Expansion.OfflinePolicy = []v1alpha1.OfflinePolicy{v1alpha1.OfflineManual, v1alpha1.OfflineRollingRestart}[dice.IntN(2)]
		cluster.Spec.Storage.Expansion.MaxParallel = int32(dice.IntN(3))
		cluster.Generation++
		w.must(w.api.Update(w.t.Context(), cluster))
	},
	func(w *world, dice *rand.Rand) {
		w.automate(func(auto *v1alpha1.AutoExpansion) {
			*auto = v1alpha1.AutoExpansion{
				Mode:    []v1alpha1.AutoExpansionMode{v1alpha1.AutoExpansionOff, v1alpha1.AutoExpansionRecommend, v1alpha1.AutoExpansionAuto}[dice.IntN(3)],
				MaxSize: new(resource.MustParse(fmt.Sprintf("%dGi", 1+dice.IntN(8)))), Cooldown: metav1.Duration{Duration: time.Minute},
			}
		})
	},
	func(w *world, dice *rand.Rand) { w.fill(dice.IntN(3), int64(dice.IntN(300))) },
	func(w *world, _ *rand.Rand) { w.startOperator() },
	func(w *world, _ *rand.Rand) { // the status is lost, as in a restore
		cluster := w.cluster()
		cluster.Status = v1alpha1.ValkeyClusterStatus{}
		w.must(w.api.Status().Update(w.t.Context(), cluster))
	},
	func(w *world, dice *rand.Rand) { w.most = resource.MustParse(fmt.Sprintf("%dGi", 3+dice.IntN(4))) },
	func(w *world, dice *rand.Rand) { // a pod is deleted
		victim := dice.IntN(6)
		pods := w.list(&corev1.PodList{})
		if len(pods) == 6 {
			w.endPods(func(pod *corev1.Pod) bool { return pod.Name == pods[victim].GetName() })
		}
	},
}

// Whatever happens in the course of growths: no key is lost, no claim asks for less
// than it has, and once it ends everybody runs and has what is asked for.
func TestGrowthsAmidWhims(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dice := rand.New(rand.NewPCG(seed, 1))
			w := formed(t, true)
			w.filled = map[int]int64{}
			for range 25 {
				whims[dice.IntN(len(whims))](w, dice)
				w.rounds(1 + dice.IntN(15))
			}
			w.endWhims()
			w.settle()
			end := w.picture()
			allHave(t, end, "9Gi")
			if len(end.Lost) > 0 {
				t.Errorf("lost %d keys", len(end.Lost))
			}
			if stopped := w.stopped(); len(stopped) > 0 {
				t.Errorf("stopped are %v", stopped)
			}
		})
	}
}

// endWhims has the world do whatever is asked for, and the user ask for more than
// anybody did before.
func (w *world) endWhims() {
	w.t.Helper()
	w.most, w.filled = resource.Quantity{}, map[int]int64{}
	cluster := w.cluster()
	cluster.Spec.Storage.Size = new(resource.MustParse("9Gi"))
	cluster.Spec.Storage.AutoExpansion = nil
	cluster.Spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineRollingRestart
	cluster.Generation++
	w.must(w.api.Update(w.t.Context(), cluster))
}

// stopped are the nodes that the operator keeps stopped.
func (w *world) stopped() []string {
	var names []string
	for _, object := range w.list(&v1alpha1.ValkeyNodeList{}) {
		if node, is := object.(*v1alpha1.ValkeyNode); is && node.Spec.Stopped {
			names = append(names, node.Name)
		}
	}
	return names
}
