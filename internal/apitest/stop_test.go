//go:build apiserver

package apitest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

// hands perform one action in a world's namespace.
func (w *world) hands(action plan.Action) error {
	w.t.Helper()
	outcome := apply.Applier{Client: admin, Namespace: w.namespace}.Run(w.t.Context(), plan.Plan{{Verdict: plan.Verdict{Actions: []plan.Action{action}}}})
	return outcome[0].Err
}

func (w *world) must(action plan.Action) {
	w.t.Helper()
	if err := w.hands(action); err != nil {
		w.t.Fatal(err)
	}
}

// Whether a node is stopped has a manager of its own: no other half takes it away,
// and it rests on the node that was seen.
func TestAStopHasAManagerOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	cluster := build.Cluster{Namespace: w.namespace, Name: "prod", UID: "uid", ID: "id-1", Spec: single(), AgentImage: agentImage}
	node := func() *v1alpha1.ValkeyNode { return get(w, "prod-0-0", &v1alpha1.ValkeyNode{}) }
	template := plan.EnsureNode{Node: "prod-0-0", Manager: name.FieldManager, Fields: build.Node(cluster, build.NodeSpec(cluster, 0, 0))}
	size := plan.EnsureNode{
		Node: "prod-0-0", Manager: name.FieldManagerStorage, Fields: build.NodeStorageHalf(cluster, 0, 0, *cluster.Spec.Storage.Size),
	}
	stop := func(stop build.Stop) plan.Action {
		return plan.EnsureNode{Node: "prod-0-0", Manager: name.FieldManagerStop, Fields: build.NodeStop(cluster, stop)}
	}
	w.must(template)
	first := node().ResourceVersion
	w.must(size)
	if err := w.hands(stop(build.Stop{Version: first, Stopped: true})); !errors.Is(err, apply.ErrStale) {
		t.Errorf("a stop of a node that has changed since gives %v", err)
	}
	w.must(stop(build.Stop{Version: node().ResourceVersion, Stopped: true}))
	w.must(template)
	w.must(size)
	if !node().Spec.Stopped {
		t.Error("another half took the stop away")
	}
	w.must(stop(build.Stop{Version: node().ResourceVersion, InVain: "20Gi"}))
	if after := node(); after.Spec.Stopped || after.Annotations[name.AnnotationStoppedInVain] != "20Gi" {
		t.Errorf("stopped %t, in vain for %q", after.Spec.Stopped, after.Annotations[name.AnnotationStoppedInVain])
	}
	w.must(stop(build.Stop{Version: node().ResourceVersion}))
	after := node()
	if _, noted := after.Annotations[name.AnnotationStoppedInVain]; noted || after.Spec.Storage.Size == nil {
		t.Errorf("annotations %v, size %v", after.Annotations, after.Spec.Storage.Size)
	}
}

// A scale and its mark come and go in one write, whoever applies the template
// meanwhile.
func TestAScaleIsMarked(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	cluster := build.Cluster{Namespace: w.namespace, Name: "prod", UID: "uid", ID: "id-1", Spec: single(), AgentImage: agentImage}
	member := build.Member{Namespace: w.namespace, Name: "prod-0-0", UID: "uid", ClusterUID: "uid", Shape: "1x0", Spec: build.NodeSpec(cluster, 0, 0)}
	set := func() *appsv1.StatefulSet { return get(w, name.Workload("prod-0-0"), &appsv1.StatefulSet{}) }
	ensure := func() {
		w.must(plan.Ensure{Kind: "StatefulSet", Name: name.Workload("prod-0-0"), Config: build.Workload(member), Manager: name.FieldManager})
	}
	scale := func(replicas int32) {
		member.Spec.Stopped = replicas == 0
		w.must(plan.ScaleWorkload{Kind: v1alpha1.WorkloadStatefulSet, Name: name.Workload("prod-0-0"), Version: set().ResourceVersion, Replicas: replicas})
	}
	type seen struct {
		Replicas int32
		Stopped  string
	}
	var got []seen
	look := func() { got = append(got, seen{*set().Spec.Replicas, set().Annotations[name.AnnotationStopped]}) }
	for _, step := range []func(){ensure, func() { scale(0) }, ensure, func() { scale(1) }, ensure} {
		step()
		look()
	}
	off := seen{0, v1alpha1.ReasonVolumeExpanding}
	if diff := cmp.Diff([]seen{{1, ""}, off, off, {1, ""}, {1, ""}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
