package stage

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// version is a cluster whose condition Ready has a status.
func version(number, ready string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
		"metadata": map[string]any{"namespace": "journey-follow", "name": "orders", "resourceVersion": number},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Because"}}},
	}}
}

// follow plays a story that follows a cluster through versions whose Ready is as given.
func follow(t *testing.T, story func(f *Follower), ready ...string) (failure string) {
	t.Helper()
	clusters := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{contract.Clusters: "ValkeyClusterList"}, version("1", "True"))
	w := &World{Out: &strings.Builder{}, kubectl: "false", Typed: fake.NewClientset(), Dynamic: clusters}
	return w.Play(t.Context(), Scene{Name: "follow"}, func(s *Stage) {
		f := s.Cluster(Spec{Name: "orders"}).Follow()
		for i, status := range ready {
			_, err := clusters.Resource(contract.Clusters).Namespace(s.Namespace).
				Update(s.Context(), version(string(rune('2'+i)), status), metav1.UpdateOptions{})
			s.NoError(err, "writing a version")
		}
		story(f)
	})
}

func TestAFollowerHasEveryVersion(t *testing.T) {
	t.Parallel()
	failure := follow(t, func(f *Follower) {
		versions := f.Stop()
		if len(versions) != 4 {
			t.Errorf("%d versions of 4", len(versions))
		}
		if !Ever(versions, "Ready", metav1.ConditionFalse, "Because") || Ever(versions, "Ready", metav1.ConditionFalse, "Otherwise") {
			t.Error("one version was not Ready, because")
		}
	}, "True", "False", "True")
	if failure != "" {
		t.Error(failure)
	}
}

func TestAMomentUnreadyEndsTheJourney(t *testing.T) {
	t.Parallel()
	failure := follow(t, func(f *Follower) { f.AlwaysReady(f.Stop()) }, "True", "False", "True")
	if !strings.Contains(failure, "in version 3 of 4") {
		t.Errorf("the failure is %q", failure)
	}
	if failure := follow(t, func(f *Follower) { f.AlwaysReady(f.Stop()) }, "True"); failure != "" {
		t.Errorf("it failed: %s", failure)
	}
}
