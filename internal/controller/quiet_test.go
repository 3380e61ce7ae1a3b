package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// A world in which something is wrong for long is looked at again and again, and
// nothing is written but what there is to say.
func TestATroubledWorldIsQuiet(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		trouble func(w *world)
		kind    string
		reason  string
		rounds  int // until it is told; 0 for one minute
	}{
		"disks are full, and nothing may grow by itself": {
			func(w *world) { w.filled = map[int]int64{}; w.fill(0, 100); w.fill(1, 100); w.fill(2, 100) },
			v1alpha1.ConditionStorageReady, v1alpha1.ReasonDiskFull, 0,
		},
		"the class allows no growth": {
			func(w *world) {
				class := &storagev1.StorageClass{}
				w.must(w.api.Get(w.t.Context(), client.ObjectKey{Name: className}, class))
				class.AllowVolumeExpansion = new(false)
				w.must(w.api.Update(w.t.Context(), class))
				w.resize("3Gi")
			},
			v1alpha1.ConditionStorageReady, v1alpha1.ReasonStorageClassNotExpandable, 0,
		},
		"the driver cannot give the size": {
			func(w *world) { w.most = resource.MustParse("2Gi"); w.resize("3Gi") },
			v1alpha1.ConditionStorageReady, v1alpha1.ReasonExpansionInfeasible, 0,
		},
		"a full disk for which the driver cannot give the size": {
			func(w *world) {
				w.filled = map[int]int64{}
				w.fill(1, 100)
				w.most = resource.MustParse("2Gi")
				w.resize("3Gi")
			},
			v1alpha1.ConditionStorageReady, v1alpha1.ReasonDiskFull, 0,
		},
		"the driver grows no volume in use, and nobody may be stopped": {
			func(w *world) { w.offline = true; w.resize("3Gi") },
			v1alpha1.ConditionStorageReady, v1alpha1.ReasonOfflineExpansionRequired, 0,
		},
		"a member was stopped, and the driver did nothing": {
			func(w *world) { w.asleep = true; w.growsOffline("3Gi") },
			v1alpha1.ConditionStorageReady, v1alpha1.ReasonExpansionStalled, 450,
		},
		"volumes at their largest size are full": {
			func(w *world) {
				w.filled = map[int]int64{}
				w.automate(func(auto *v1alpha1.AutoExpansion) {
					*auto = v1alpha1.AutoExpansion{Mode: v1alpha1.AutoExpansionAuto, MaxSize: new(resource.MustParse("1Gi"))}
				})
				w.fill(0, 90)
				w.fill(1, 100)
			},
			v1alpha1.ConditionAutoExpansion, v1alpha1.ReasonAutoAtMaximum, 0,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := formed(t, true)
			row.trouble(w)
			w.rounds(max(60, row.rounds))
			if told := meta.FindStatusCondition(w.cluster().Status.Conditions, row.kind); told.Reason != row.reason {
				t.Errorf("it says %s: %s", told.Reason, told.Message)
			}
			if pods := len(w.list(&corev1.PodList{})); pods != 6 {
				t.Errorf("there are %d pods", pods)
			}
			before := w.tap.count
			w.rounds(50)
			if wrote := w.tap.count - before; wrote != 0 {
				t.Errorf("it wrote %d times in 50 passes: %q", wrote, w.tap.last(min(wrote, 6)))
			}
		})
	}
}

// rounds lets the operator and the world take turns.
func (w *world) rounds(count int) {
	w.t.Helper()
	for range count {
		w.pass()
		w.checkClaims()
		w.tick()
	}
}
