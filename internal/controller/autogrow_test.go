package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
)

// tellDisk has an agent tell twice how full its volume is, if it is filled.
func (w *world) tellDisk(ctx context.Context, facts *protocol.Facts) {
	used, filled := w.filled[facts.Shard]
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: namespace, Name: name.Claim(name.Node(clusterName, facts.Shard, facts.Node))}
	if !filled || w.api.Get(ctx, key, claim) != nil {
		return
	}
	total := claim.Status.Capacity.Storage().Value()
	disk := protocol.Disk{TotalBytes: total, AvailableBytes: max(0, total-used), SampledAt: w.now()}
	before := disk
	before.SampledAt = disk.SampledAt.Add(-protocol.SampleInterval)
	facts.Disk, facts.DiskBefore = &disk, &before
	facts.Files = &protocol.Files{Log: true, WriteFailed: disk.AvailableBytes == 0}
}

// automatic is a world that has settled and whose volumes may grow by themselves.
func automatic(t *testing.T) *world {
	t.Helper()
	w := formed(t, true)
	w.filled = map[int]int64{0: 1 << 20, 1: 1 << 20, 2: 1 << 20}
	w.automate(func(auto *v1alpha1.AutoExpansion) {
		*auto = v1alpha1.AutoExpansion{
			Mode: v1alpha1.AutoExpansionAuto, MaxSize: new(resource.MustParse("10Gi")), ThresholdPercent: 80, EmergencyPercent: 95,
			Increment: "20%", Cooldown: metav1.Duration{Duration: time.Hour},
		}
	})
	w.settle()
	return w
}

// automate has the user change how volumes grow by themselves.
func (w *world) automate(change func(*v1alpha1.AutoExpansion)) {
	w.t.Helper()
	cluster := w.cluster()
	if cluster.Spec.Storage.AutoExpansion == nil {
		cluster.Spec.Storage.AutoExpansion = &v1alpha1.AutoExpansion{}
	}
	change(cluster.Spec.Storage.AutoExpansion)
	cluster.Generation++
	w.must(w.api.Update(w.t.Context(), cluster))
}

func (w *world) fill(shard int, percentOfGi int64) { w.filled[shard] = percentOfGi << 30 / 100 }

// sizesBy are what the members of each shard have and ask for.
func (p picture) sizesBy() map[string]string {
	sizes := map[string]string{}
	for node, m := range p.Members {
		sizes[node] = fmt.Sprintf("%s of %s", m.Capacity, m.Size)
	}
	return sizes
}

// One shard fills up: its volumes grow, by one step, and the others stay.
func TestKilledWhileGrowingByItself(t *testing.T) {
	t.Parallel()
	w := automatic(t)
	before := w.picture()
	w.fill(1, 90)
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		sameMembers(t, before, end)
		want := before.sizesBy()
		want["prod-1-0"], want["prod-1-1"] = "2Gi of 2Gi", "2Gi of 2Gi"
		if diff := cmp.Diff(want, end.sizesBy()); diff != "" {
			t.Errorf("sizes (-want +got):\n%s", diff)
		}
	})
}

// The same shard is about to be full a moment later: it grows once more, and then
// not before the cooldown is over.
func TestKilledInAnEmergency(t *testing.T) {
	t.Parallel()
	w := automatic(t)
	w.fill(1, 90)
	w.settle()
	w.fill(1, 194)
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		if got := end.sizesBy()["prod-1-0"]; got != "3Gi of 3Gi" {
			t.Errorf("it has %s", got)
		}
	})
	w.fill(1, 299)
	for range 30 {
		w.pass()
		w.tick()
	}
	told := meta.FindStatusCondition(w.cluster().Status.Conditions, v1alpha1.ConditionAutoExpansion)
	if told.Reason != v1alpha1.ReasonAutoCooldown {
		t.Errorf("a second time it says %s: %s", told.Reason, told.Message)
	}
	if got := w.picture().sizesBy()["prod-1-0"]; got != "3Gi of 3Gi" {
		t.Errorf("a second time it gets %s", got)
	}
}

// What automatic growth asks for cannot be had: it says so and asks for no more,
// and a smaller largest size gives all volumes of the shard that.
func TestAnInfeasibleGrowthByItselfIsTakenBack(t *testing.T) {
	t.Parallel()
	w := automatic(t)
	w.most = resource.MustParse("3Gi")
	w.automate(func(auto *v1alpha1.AutoExpansion) { auto.Increment = "5Gi" })
	w.fill(1, 90)
	for range 60 {
		w.pass()
		w.tick()
	}
	conditions := w.cluster().Status.Conditions
	for kind, reason := range map[string]string{v1alpha1.ConditionAutoExpansion: v1alpha1.ReasonAutoCeiling, v1alpha1.ConditionStorageReady: v1alpha1.ReasonExpansionInfeasible} {
		if told := meta.FindStatusCondition(conditions, kind); told.Status != metav1.ConditionFalse || told.Reason != reason {
			t.Errorf("%s is %s %s: %s", kind, told.Status, told.Reason, told.Message)
		}
	}
	w.automate(func(auto *v1alpha1.AutoExpansion) { auto.MaxSize = new(resource.MustParse("3Gi")) })
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		for _, node := range []string{"prod-1-0", "prod-1-1"} {
			if got := end.sizesBy()[node]; got != "3Gi of 3Gi" {
				t.Errorf("node %s has %s", node, got)
			}
		}
	})
}

// What was taken back does not come back: neither when automatic growth is turned off,
// nor with a larger largest size, while no volume is full.
func TestAGrowthByItselfThatWasTakenBackStaysSo(t *testing.T) {
	t.Parallel()
	for what, then := range map[string]func(auto *v1alpha1.AutoExpansion){
		"it is turned off":           func(auto *v1alpha1.AutoExpansion) { *auto = v1alpha1.AutoExpansion{Mode: v1alpha1.AutoExpansionOff} },
		"the largest size is raised": func(auto *v1alpha1.AutoExpansion) { auto.MaxSize = new(resource.MustParse("10Gi")) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := automatic(t)
			w.most = resource.MustParse("3Gi")
			w.automate(func(auto *v1alpha1.AutoExpansion) { auto.Increment = "5Gi" })
			w.fill(1, 90)
			for range 60 {
				w.pass()
				w.tick()
			}
			w.automate(func(auto *v1alpha1.AutoExpansion) { auto.MaxSize = new(resource.MustParse("3Gi")) })
			w.settle()
			w.automate(then)
			w.settle()
			if got := w.picture().sizesBy()["prod-1-0"]; got != "3Gi of 3Gi" {
				t.Errorf("it has %s", got)
			}
		})
	}
}

// Full disks grow although no server takes writes, and the spec stays as it was.
func TestFullDisksGrowByThemselves(t *testing.T) {
	t.Parallel()
	w := automatic(t)
	for shard := range 3 {
		w.fill(shard, 100)
	}
	w.pass()
	told := meta.FindStatusCondition(w.cluster().Status.Conditions, v1alpha1.ConditionStorageReady)
	if told.Status != metav1.ConditionFalse || told.Reason != v1alpha1.ReasonDiskFull {
		t.Errorf("with full disks it says %s %s: %s", told.Status, told.Reason, told.Message)
	}
	w.settle()
	for node, sizes := range w.picture().sizesBy() {
		if sizes != "2Gi of 2Gi" {
			t.Errorf("node %s has %s", node, sizes)
		}
	}
	cluster := w.cluster()
	if size := cluster.Spec.Storage.Size.String(); size != "1Gi" {
		t.Errorf("the spec has %s", size)
	}
	if armed := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAutoExpansion); armed.Reason != v1alpha1.ReasonAutoArmed {
		t.Errorf("it ends %s: %s", armed.Reason, armed.Message)
	}
}

// While volumes fill up further, nothing is written but what there is to say.
func TestAnArmedWorldIsQuiet(t *testing.T) {
	t.Parallel()
	w := automatic(t)
	w.startOperator()
	for percent := range int64(79) {
		w.fill(2, percent)
		w.passCluster()
		w.tick()
	}
	if w.tap.count != 0 {
		t.Errorf("it wrote %q", w.tap.log)
	}
}
