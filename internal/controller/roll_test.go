package controller_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

const nextImage = "valkey/valkey:9.1.3"

// edit has the user change the spec.
func (w *world) edit(change func(*v1alpha1.ValkeyClusterSpec)) {
	w.t.Helper()
	cluster := w.cluster()
	change(&cluster.Spec)
	cluster.Generation++
	w.must(w.api.Update(w.t.Context(), cluster))
}

func (w *world) setImage(image string) {
	w.t.Helper()
	w.edit(func(spec *v1alpha1.ValkeyClusterSpec) { spec.Image = image })
}

// settledWorld is a world that has settled and whose keys all members have.
func settledWorld(t *testing.T, spec v1alpha1.ValkeyClusterSpec) *world {
	t.Helper()
	w := newWorld(t, spec)
	w.settle()
	w.write(60)
	w.settle()
	return w
}

// images are how many pods run each image.
func (w *world) images() map[string]int {
	images := map[string]int{}
	for _, object := range w.list(&corev1.PodList{}) {
		if pod, is := object.(*corev1.Pod); is {
			images[pod.Spec.Containers[0].Image]++
		}
	}
	return images
}

// failOvers are how often a replica was asked to take a shard over.
func (w *world) failOvers() int {
	asked := 0
	for _, write := range w.tap.log {
		if strings.HasPrefix(write, "CLUSTER FAILOVER") {
			asked++
		}
	}
	return asked
}

func TestKilledWhileRolling(t *testing.T) {
	t.Parallel()
	for what, spec := range map[string]v1alpha1.ValkeyClusterSpec{
		"three shards with volumes and replicas": persistent(3, 1),
		"two shards":                             persistent(2, 1),
		"one member":                             persistent(1, 0),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := settledWorld(t, spec)
			before := w.picture()
			w.setImage(nextImage)
			surviveKills(t, w, func(t *testing.T, end picture) {
				t.Helper()
				sameMembers(t, before, end)
			})
			if left := w.images()["valkey/valkey:9.1.2"]; left != 0 {
				t.Errorf("%d pods have the former image", left)
			}
		})
	}
}

func TestKilledWhileRollingAnEphemeralCluster(t *testing.T) {
	t.Parallel()
	w := settledWorld(t, ephemeral(3, 1))
	w.setImage(nextImage)
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		if len(end.Lost) != 0 {
			t.Errorf("keys are lost: %v", end.Lost)
		}
	})
}

// A roll takes one failover a shard.
func TestARollTakesOneFailoverAShard(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.settle()
	w.setImage(nextImage)
	w.settle()
	if asked := w.failOvers(); asked != 3 {
		t.Errorf("it asked %d times", asked)
	}
	if images := w.images(); images[nextImage] != 6 {
		t.Errorf("images: %v", images)
	}
}

// An image that does not exist takes one member away and no more, and the user's
// next word mends that.
func TestKilledWhileABrokenImageIsMended(t *testing.T) {
	t.Parallel()
	for what, mended := range map[string]string{"set back": "valkey/valkey:9.1.2", "mended": nextImage} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := formed(t, true)
			before := w.picture()
			w.setImage(brokenImage)
			for range 60 {
				w.pass()
				w.tick()
			}
			if images := w.images(); images[brokenImage] != 1 || images["valkey/valkey:9.1.2"] != 5 {
				t.Fatalf("images: %v", images)
			}
			status := w.cluster().Status
			if status.State != v1alpha1.StateDegraded || !strings.Contains(status.Message, "ImagePullBackOff") {
				t.Errorf("it says %s: %s", status.State, status.Message)
			}
			w.setImage(mended)
			surviveKills(t, w, func(t *testing.T, end picture) {
				t.Helper()
				sameMembers(t, before, end)
			})
			if images := w.images(); images[mended] != 6 {
				t.Errorf("images: %v", images)
			}
		})
	}
}

// A roll and a growth of volumes that are in use never take two members of a shard.
func TestKilledWhileRollingAndGrowingOffline(t *testing.T) {
	t.Parallel()
	w := settledWorld(t, persistent(2, 1))
	before := w.picture()
	w.setImage(nextImage)
	w.growsOffline("3Gi")
	surviveKills(t, w, func(t *testing.T, end picture) {
		t.Helper()
		sameMembers(t, before, end)
		allHave(t, end, "3Gi")
	})
}

// Members without volume and replica keep their keys until a person gives them up.
func TestNobodyLosesTheOnlyCopyUnasked(t *testing.T) {
	t.Parallel()
	w := settledWorld(t, ephemeral(1, 0))
	w.setImage(nextImage)
	for range 30 {
		w.pass()
		w.tick()
	}
	status := w.cluster().Status
	if status.Reason != v1alpha1.ReasonDataLossOnRestart || w.images()[nextImage] != 0 {
		t.Fatalf("it says %s: %s, and runs %v", status.Reason, status.Message, w.images())
	}
	_, revision, _ := strings.Cut(status.Message, name.AnnotationAllowDataLoss+"=")
	revision, _, _ = strings.Cut(revision, ",")
	cluster := w.cluster()
	cluster.Annotations = map[string]string{name.AnnotationAllowDataLoss: revision}
	w.must(w.api.Update(t.Context(), cluster))
	w.settle()
	if w.images()[nextImage] != 1 {
		t.Errorf("it runs %v", w.images())
	}
}

// With a replica in each shard the cluster serves all the while, and says so.
func TestReadyWhileRolling(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.settle()
	w.setImage(nextImage)
	for range mostRounds {
		before := w.tap.count
		w.pass()
		status := w.cluster().Status
		for kind, want := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionTrue, v1alpha1.ConditionDegraded: metav1.ConditionFalse} {
			if told := meta.FindStatusCondition(status.Conditions, kind); told.Status != want {
				t.Fatalf("after %d s: %s is %s: %s: %s", w.ticks, kind, told.Status, told.Reason, told.Message)
			}
		}
		if status.Rollout != nil && status.Reason != v1alpha1.ReasonRollingOut {
			t.Errorf("after %d s, in a roll, it says %s: %s", w.ticks, status.Reason, status.Message)
		}
		if moved := w.tick(); !moved && w.tap.count == before && w.ready() {
			break
		}
	}
	if images := w.images(); images[nextImage] != 6 || w.cluster().Status.Rollout != nil {
		t.Errorf("images %v, rollout %+v", images, w.cluster().Status.Rollout)
	}
}

// What is no part of a pod replaces none.
func TestEditsThatRollNothing(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(*v1alpha1.ValkeyClusterSpec){
		"another size": func(spec *v1alpha1.ValkeyClusterSpec) { spec.Storage.Size = new(resource.MustParse("2Gi")) },
		"another user": func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Users = []v1alpha1.User{{Name: "app", Nopass: true, Permissions: "+@read"}}
		},
		"another fate of the volumes": func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete
		},
		"another way to grow": func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineRollingRestart
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := formed(t, true)
			w.settle()
			before := w.podUIDs()
			w.edit(edit)
			w.rounds(20)
			if diff := cmp.Diff(before, w.podUIDs()); diff != "" {
				t.Errorf("pods (-before +after):\n%s", diff)
			}
		})
	}
}

// A member whose new pod is not made is no longer excused by its roll once that takes
// too long: nobody would be told that it is missing.
func TestAMemberThatDoesNotComeBackIsMissed(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.settle()
	w.barren = true
	w.setImage(nextImage)
	w.rounds(60)
	if status := w.cluster().Status; status.State != v1alpha1.StateReconciling || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("in its course it says %s: %s", status.State, status.Message)
	}
	w.rounds(180)
	if status := w.cluster().Status; status.State != v1alpha1.StateDegraded || meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("after minutes it says %s: %s", status.State, status.Message)
	}
	if pods := len(w.list(&corev1.PodList{})); pods != 5 {
		t.Errorf("there are %d pods", pods)
	}
	w.barren = false
	w.settle()
	if images := w.images(); images[nextImage] != 6 {
		t.Errorf("images: %v", images)
	}
}

// An operator with another agent replaces no pod.
func TestAnotherAgentRollsNothing(t *testing.T) {
	t.Parallel()
	w := formed(t, true)
	w.settle()
	before := w.podUIDs()
	w.clusters.AgentImage = "valkey-operator:v2"
	w.settle()
	if diff := cmp.Diff(before, w.podUIDs()); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
}

func (w *world) podUIDs() map[string]string {
	uids := map[string]string{}
	for _, object := range w.list(&corev1.PodList{}) {
		uids[object.GetName()] = string(object.GetUID())
	}
	return uids
}
