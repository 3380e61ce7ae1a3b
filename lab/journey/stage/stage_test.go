package stage

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"valkey.io/valkey-operator/lab/ledger"
)

// play plays a story without a cluster and returns what it wrote.
func play(t *testing.T, scene Scene, story Story) (w *World, failure, out string) {
	t.Helper()
	var b strings.Builder
	w = &World{Typed: fake.NewClientset(), Out: &b, kubectl: "false"}
	failure = w.Play(t.Context(), scene, story)
	return w, failure, b.String()
}

func TestAStoryThatIsToldToTheEndPassesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w, failure, out := play(t, Scene{Name: "good"}, func(s *Stage) {
		_, err := s.Typed.CoreV1().Namespaces().Get(s.Context(), "journey-good", metav1.GetOptions{})
		s.NoError(err, "looking for the namespace")
		s.Say("a step")
	})
	if failure != "" || !strings.Contains(out, "a step") {
		t.Errorf("failure %q, wrote %q", failure, out)
	}
	if _, err := w.Typed.CoreV1().Namespaces().Get(t.Context(), "journey-good", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is still there: %v", err)
	}
}

func TestAFailureEndsTheStoryAndCleansUpLastFirst(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *Stage){
		"an expectation": func(s *Stage) { s.Expect(false, "%d is not %d", 1, 2) },
		"an error":       func(s *Stage) { s.NoError(errors.New("1 is not 2"), "adding") },
		"a wait":         func(s *Stage) { s.Await("2", time.Millisecond, func() (bool, string) { return false, "1 is not 2" }) },
		"a broken story": func(*Stage) { panic("1 is not 2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var undone []string
			w, failure, _ := play(t, Scene{Name: "bad"}, func(s *Stage) {
				s.Cleanup(func(context.Context) error { undone = append(undone, "first"); return nil })
				s.Cleanup(func(context.Context) error { undone = append(undone, "second"); return errors.New("no") })
				fail(s)
				undone = append(undone, "the story went on")
			})
			if !strings.Contains(failure, "1 is not 2") {
				t.Errorf("the failure is %q", failure)
			}
			if diff := cmp.Diff([]string{"second", "first"}, undone); diff != "" {
				t.Error(diff)
			}
			if _, err := w.Typed.CoreV1().Namespaces().Get(t.Context(), "journey-bad", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the namespace is still there: %v", err)
			}
		})
	}
}

func TestANamespaceIsKeptWhereThatIsWantedAndAllElseIsUndone(t *testing.T) {
	t.Parallel()
	good, bad := func(*Stage) {}, func(s *Stage) { s.Fail("it broke") }
	for name, c := range map[string]struct {
		scene Scene
		story Story
		kept  bool
	}{
		"always":                     {Scene{Keep: true}, good, true},
		"after a failure":            {Scene{KeepFailed: true}, bad, true},
		"unless all went as told":    {Scene{KeepFailed: true}, good, false},
		"unless nobody asked for it": {Scene{}, bad, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undone := false
			w, _, _ := play(t, c.scene, func(s *Stage) {
				s.Cleanup(func(context.Context) error { undone = true; return nil })
				c.story(s)
			})
			_, err := w.Typed.CoreV1().Namespaces().Get(t.Context(), "journey-", metav1.GetOptions{})
			if kept := err == nil; kept != c.kept || !undone {
				t.Errorf("the namespace was kept: %v, the rest was undone: %v", kept, undone)
			}
		})
	}
}

func TestCleaningUpBadlyFailsTheJourney(t *testing.T) {
	t.Parallel()
	_, failure, _ := play(t, Scene{Name: "dirty"}, func(s *Stage) {
		s.Cleanup(func(context.Context) error { return errors.New("left over") })
	})
	if !strings.Contains(failure, "left over") {
		t.Errorf("the failure is %q", failure)
	}
}

func TestANamespaceOfSomebodyElseIsNotTouched(t *testing.T) {
	t.Parallel()
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	w := &World{Typed: fake.NewClientset(theirs), Out: io.Discard, kubectl: "false"}
	failure := w.Play(t.Context(), Scene{Name: "x", Namespace: "theirs"}, func(s *Stage) { s.Fail("it was entered") })
	if !strings.Contains(failure, "not a journey's") {
		t.Errorf("the failure is %q", failure)
	}
	if _, err := w.Typed.CoreV1().Namespaces().Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestMembersOfAWholeClusterAgree(t *testing.T) {
	t.Parallel()
	whole := func() Members {
		return Members{
			"0-0": {Server: ledger.Node{ID: "a", Role: "primary", Slots: 8192, Known: 4, State: "ok"}},
			"0-1": {Server: ledger.Node{ID: "b", Role: "replica", PrimaryID: "a", Known: 4, State: "ok"}},
			"1-0": {Server: ledger.Node{ID: "c", Role: "replica", PrimaryID: "d", Known: 4, State: "ok"}},
			"1-1": {Server: ledger.Node{ID: "d", Role: "primary", Slots: 8192, Known: 4, State: "ok"}},
		}
	}
	if problem := whole().problem(4, 2); problem != "" {
		t.Fatalf("a whole cluster has the problem %q", problem)
	}
	if m := whole(); m.Primary(1) != "1-1" || m.Replica(1) != "1-0" {
		t.Errorf("shard 1 has primary %q and replica %q", m.Primary(1), m.Replica(1))
	}
	for want, spoil := range map[string]func(n *ledger.Node){
		"does not answer":            func(n *ledger.Node) { n.Error = "refused" },
		"cluster_state fail":         func(n *ledger.Node) { n.State = "fail" },
		"knows 5 members of 4":       func(n *ledger.Node) { n.Known = 5 },
		"an id that is not a member": func(n *ledger.Node) { n.Role, n.PrimaryID, n.Slots = "replica", "z", 0 },
		"own 16383 slots":            func(n *ledger.Node) { n.Slots-- },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			members := whole()
			m := members["0-0"]
			spoil(&m.Server)
			members["0-0"] = m
			if problem := members.problem(4, 2); !strings.Contains(problem, want) {
				t.Errorf("the problem is %q", problem)
			}
		})
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	w := &World{Images: Images{Valkey: "valkey/valkey:9.1"}, StorageClass: "fast"}
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"ephemeral": {
			Spec{Name: "a", Shards: 1},
			"spec:\n  shards: 1\n  replicas: 0\n  image: valkey/valkey:9.1\n",
		},
		"persistent with everything": {
			Spec{
				Name: "a", Shards: 3, Replicas: 1, Size: "64Mi", Class: "slow", WorkloadType: "Deployment", Image: "i",
				More: "  volumePermissions: true\n", MoreStorage: "    retention: {whenDeleted: Delete}\n",
			},
			"spec:\n  shards: 3\n  replicas: 1\n  image: i\n  workloadType: Deployment\n  storage:\n    enabled: true\n" +
				"    size: 64Mi\n    storageClassName: slow\n    retention: {whenDeleted: Delete}\n  volumePermissions: true\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := "apiVersion: valkey.io/v1alpha1\nkind: ValkeyCluster\nmetadata:\n  name: a\n" + c.want
			if diff := cmp.Diff(want, w.Manifest(c.spec)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLiveWritesALogLineForEachChange(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	live := NewLive(&b)
	for _, line := range []string{"one", "one", "two"} {
		live.Show([]string{"block"}, line)
	}
	if got := strings.Fields(b.String()); !cmp.Equal(got, []string{"one", "two"}) {
		t.Errorf("wrote %q", got)
	}
	if Bar(0.5) != strings.Repeat("█", 10)+strings.Repeat("░", 10) || Bar(2) != strings.Repeat("█", 20) {
		t.Errorf("bars %q and %q", Bar(0.5), Bar(2))
	}
}

func TestLiveRewritesItsBlockOnATerminal(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	live := &Live{out: &b, terminal: true}
	live.Show([]string{"a", "b"}, "")
	live.Show([]string{"c", "d"}, "")
	want := "\033[2K           a\n\033[2K           b\n\033[2A\033[2K           c\n\033[2K           d\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
