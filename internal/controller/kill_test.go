package controller_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/internal/name"
)

// moment is a world right before or right after something was written.
type moment struct {
	what  string
	world *world
}

// moments lets a world settle and returns it as it was around each write.
// Right before a write it is what it was right after the last one, unless the
// world moved in between.
func moments(w *world) []moment {
	w.t.Helper()
	var found []moment
	ticks := -1
	w.tap.watch = func(when, what string) {
		if when == "before" && w.ticks == ticks {
			return
		}
		ticks = w.ticks
		what = fmt.Sprintf("%s write %d, %s", when, w.tap.count, what)
		found = append(found, moment{what, w.fork(w.t)})
	}
	w.settle()
	w.tap.watch = nil
	return found
}

// surviveKills lets the operator be killed around each of its writes, and
// expects the same end each time as without: the same sizes, slots and objects,
// every member of its own shard, and whatever else is to stay the same.
func surviveKills(t *testing.T, w *world, same func(t *testing.T, end picture)) {
	t.Helper()
	all := moments(w)
	want := w.picture()
	same(t, want)
	if len(all) < 2 {
		t.Fatalf("the operator wrote %d times: nothing to be killed at", len(all))
	}
	t.Logf("killed at %d moments", len(all))
	for _, at := range all {
		t.Run(at.what, func(t *testing.T) {
			t.Parallel()
			killed := at.world.fork(t)
			killed.nodesFirst = true // half a cluster's work is what they must bear
			killed.settle()
			end := killed.picture()
			if diff := cmp.Diff(want.shape(), end.shape()); diff != "" {
				t.Errorf("another end than without a kill (-want +got):\n%s", diff)
			}
			same(t, end)
		})
	}
}

// formedWorlds are worlds of 3x1 that have settled and hold keys.
var formedWorlds = struct {
	sync.Mutex
	persistent, ephemeral *world
}{}

func formed(t *testing.T, withStorage bool) *world {
	t.Helper()
	formedWorlds.Lock()
	defer formedWorlds.Unlock()
	kept, spec := &formedWorlds.persistent, persistent(3, 1)
	if !withStorage {
		kept, spec = &formedWorlds.ephemeral, ephemeral(3, 1)
	}
	if *kept == nil {
		w := newWorld(t, spec)
		w.settle()
		w.write(60)
		*kept = w
	}
	return (*kept).fork(t)
}

func TestKilledWhileCreating(t *testing.T) {
	t.Parallel()
	surviveKills(t, newWorld(t, persistent(3, 1)), func(t *testing.T, end picture) {
		t.Helper()
		if end.Status != "Ready Healthy true 3/3" {
			t.Errorf("it ends %s", end.Status)
		}
		want := map[string]int{"ValkeyNode": 6, "PersistentVolumeClaim": 6, "Pod": 6, "Secret": 2, "Service": 2}
		if diff := cmp.Diff(want, end.Objects); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

func TestKilledWhileCreatingAnEphemeralCluster(t *testing.T) {
	t.Parallel()
	surviveKills(t, newWorld(t, ephemeral(2, 1)), func(*testing.T, picture) {})
}

func TestKilledAfterAllPodsWereLost(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	before := w.picture()
	w.endPods(func(*corev1.Pod) bool { return true })
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		sameMembers(t, before, end)
	})
}

func TestKilledWhileGrowing(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	before := w.picture()
	w.resize("3Gi")
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		sameMembers(t, before, end)
		allHave(t, end, "3Gi")
	})
}

// The driver cannot give the size, so that one volume asks for it in vain; the
// user asks for less, and then all volumes have that.
func TestKilledWhileAnInfeasibleGrowthIsLowered(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	before := w.picture()
	w.most, w.instead = resource.MustParse("5Gi"), "3Gi"
	w.resize("10Ti")
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		sameMembers(t, before, end)
		allHave(t, end, "3Gi")
	})
}

// The user takes the growth back in full: the one volume that asked for it cannot
// go back to just what it had, and the others were never touched.
func TestKilledWhileAnInfeasibleGrowthIsTakenBack(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	before := w.picture()
	w.most, w.instead = resource.MustParse("5Gi"), "1Gi"
	w.resize("10Ti")
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		sameMembers(t, before, end)
		sizes := map[string]int{}
		for _, m := range end.Members {
			sizes[m.Size+" of "+m.Capacity]++
		}
		if diff := cmp.Diff(map[string]int{"1Gi of 1Gi": 5, "2Gi of 2Gi": 1}, sizes); diff != "" {
			t.Errorf("sizes (-want +got):\n%s", diff)
		}
	})
}

func TestKilledWhileReplacingAnEphemeralPrimary(t *testing.T) {
	t.Parallel()
	w := formed(t, false)
	w.endPods(func(pod *corev1.Pod) bool { return nodeOfPod(pod) == name.Node(clusterName, 1, 0) })
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		if len(end.Lost) != 0 {
			t.Errorf("keys are lost: %v", end.Lost)
		}
	})
}

// sameMembers expects the members to have the ids and claims that they had, and
// all keys to be there.
func sameMembers(t *testing.T, before, end picture) {
	t.Helper()
	for node, m := range before.Members {
		now := end.Members[node]
		if now.ID != m.ID || now.Claim != m.Claim {
			t.Errorf("node %s had id %s and claim %s, now %s and %s", node, m.ID, m.Claim, now.ID, now.Claim)
		}
	}
	if len(end.Lost) != 0 {
		t.Errorf("keys are lost: %v", end.Lost)
	}
}

// allHave expects every volume to have a size, and its claim to ask for no more.
func allHave(t *testing.T, end picture, size string) {
	t.Helper()
	for node, m := range end.Members {
		if m.Size != size || m.Capacity != size {
			t.Errorf("node %s has %s and asks for %s", node, m.Capacity, m.Size)
		}
	}
}

// resize has the user ask for another size.
func (w *world) resize(size string) {
	w.t.Helper()
	cluster := w.cluster()
	cluster.Spec.Storage.Size = new(resource.MustParse(size))
	cluster.Generation++
	w.must(w.api.Update(w.t.Context(), cluster))
}

// A settled world is left alone, whatever is looked at again.
func TestNothingIsWrittenWhenSettled(t *testing.T) {
	t.Parallel()
	for what, w := range map[string]*world{
		"a persistent cluster": formed(t, true),
		"an ephemeral cluster": formed(t, false),
		"one shard alone":      newWorld(t, persistent(1, 0)),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w.t = t
			w.settle()
			w.startOperator()
			for range 5 {
				w.pass()
				w.tick()
			}
			if w.tap.count != 0 {
				t.Errorf("it wrote %q", w.tap.log)
			}
		})
	}
}

// A primary loses its volume while everything restarts: its replica never sees
// it again, so that no server would ever elect it.
func TestKilledAfterAllPodsAndAPrimarysVolumeWereLost(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.endPods(func(*corev1.Pod) bool { return true })
	lost := &corev1.PersistentVolumeClaim{}
	lost.Namespace, lost.Name = namespace, name.Claim(name.Node(clusterName, 1, 0))
	w.must(w.api.Delete(t.Context(), lost))
	delete(w.sizes, lost.Name)
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		if len(end.Lost) != 0 {
			t.Errorf("keys are lost: %v", end.Lost)
		}
	})
}
