//go:build apiserver

package apitest

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

// The one pod that was seen is deleted; one that took its place is not.
func TestAPodIsDeletedByItsUID(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "valkey"}}},
	}
	if err := admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := w.hands(plan.DeletePod{Pod: "pod", UID: "another"}); !errors.Is(err, apply.ErrStale) {
		t.Errorf("deleting another pod of this name gives %v", err)
	}
	if get(w, "pod", &corev1.Pod{}).UID != pod.UID {
		t.Error("the pod is another one")
	}
	w.must(plan.DeletePod{Pod: "pod", UID: string(pod.UID)})
	if err := w.hands(plan.DeletePod{Pod: "pod", UID: string(pod.UID)}); err != nil && !errors.Is(err, apply.ErrStale) {
		t.Errorf("deleting it again gives %v", err)
	}
}

// A template rests on the node that was seen: one that has changed since is decided
// about anew.
func TestATemplateRestsOnTheNodeThatWasSeen(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	cluster := build.Cluster{Namespace: w.namespace, Name: "prod", UID: "uid", ID: "id-1", Spec: single(), AgentImage: agentImage}
	template := func(image, version string) plan.Action {
		cluster.Spec.Image = image
		fields := build.Node(cluster, build.NodeSpec(cluster, 0, 0))
		fields.SetResourceVersion(version)
		return plan.EnsureNode{Node: "prod-0-0", Manager: name.FieldManager, Fields: fields}
	}
	w.must(template("valkey/valkey:9.1.2", ""))
	first := get(w, "prod-0-0", &v1alpha1.ValkeyNode{}).ResourceVersion
	w.must(template("valkey/valkey:9.1.3", first))
	if err := w.hands(template("valkey/valkey:9.1.4", first)); !errors.Is(err, apply.ErrStale) {
		t.Errorf("a template for a node that has changed since gives %v", err)
	}
	if image := get(w, "prod-0-0", &v1alpha1.ValkeyNode{}).Spec.Template.Image; image != "valkey/valkey:9.1.3" {
		t.Errorf("its image is %s", image)
	}
}
