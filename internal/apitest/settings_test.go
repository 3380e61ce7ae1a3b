//go:build apiserver

package apitest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
)

// configMap is the ConfigMap of cluster prod.
func (w *world) configMap() *corev1.ConfigMap {
	w.t.Helper()
	return get(w, name.Service("prod"), &corev1.ConfigMap{})
}

// A file of settings that is not wanted any more goes from the ConfigMap, and one
// that is stays as it is.
func TestFilesOfSettingsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	cluster := build.Cluster{Namespace: w.namespace, Name: "prod", UID: "uid", ID: "id-1", Spec: single(), AgentImage: agentImage}
	former, next := "# From spec.config:\nhz 10\n", "# From spec.config:\nhz 20\n"
	for _, files := range []map[string]string{
		{"valkey.conf": former},
		{"valkey.conf": former, "valkey-0123.conf": next},
		{"valkey-0123.conf": next},
	} {
		w.must(plan.Ensure{Kind: "ConfigMap", Name: name.Service("prod"), Config: build.ConfigMap(cluster, maps.Clone(files)), Manager: name.FieldManager})
		got := w.configMap().Data
		delete(got, name.KeyMembers)
		if diff := cmp.Diff(files, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
}

// A live edit reaches the servers and then the file, and no workload; one that
// they refuse reaches neither, and is told in their words.
func TestEditsOfLiveSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := persistent()
	spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": "1000"}
	w.operate(server)
	cluster := w.settledCluster(spec)
	workloads := w.templateRevisions()
	w.patch(cluster, `{"spec":{"config":{"maxmemory":"2000","maxmemory-policy":"allkeys-lru"}}}`)
	settings := "maxmemory 2000\nmaxmemory-policy allkeys-lru\n"
	await(t, "everybody has the settings", func() error { return w.everybodyHas(settings) })
	w.awaitSettled(cluster)
	w.patch(cluster, `{"spec":{"config":{"maxmemry":"1"}}}`)
	await(t, "the refusal is told", func() error {
		cluster = get(w, "prod", &v1alpha1.ValkeyCluster{})
		return conditionIs(cluster.Status.Conditions, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonConfigRefused)
	})
	if !strings.Contains(cluster.Status.Message, "'maxmemry'") {
		t.Errorf("it says: %s", cluster.Status.Message)
	}
	if err := w.everybodyHas(settings); err != nil {
		t.Error(err)
	}
	w.patch(cluster, `{"spec":{"config":{"maxmemry":null}}}`)
	w.awaitSettled(cluster)
	if diff := cmp.Diff(workloads, w.templateRevisions()); diff != "" {
		t.Errorf("workloads (-before +after):\n%s", diff)
	}
}

// everybodyHas complains unless all servers, and the one file, have settings.
func (w *world) everybodyHas(settings string) error {
	for file, content := range w.configMap().Data {
		if file != name.KeyMembers && !strings.HasSuffix(content, "# From spec.config:\n"+settings) {
			return fmt.Errorf("file %s is\n%s", file, content)
		}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for address := range w.pods {
		conn, err := w.servers.Connect(w.t.Context(), valkey.Target{Address: name.ClientAddress(address)})
		if err != nil {
			return err
		}
		for line := range strings.Lines(settings) {
			setting, want, _ := valkey.ParseSettingLine(line)
			got, _, err := conn.ConfigGet(w.t.Context(), setting)
			if err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("%s of the server at %s is %q, want %q", setting, address, got, want)
			}
		}
	}
	return nil
}

// templateRevisions are the revisions of the nodes' templates, in order.
func (w *world) templateRevisions() []string {
	w.t.Helper()
	var nodes v1alpha1.ValkeyNodeList
	if err := admin.List(w.t.Context(), &nodes, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var revisions []string
	for _, node := range nodes.Items {
		revisions = append(revisions, node.Name+" "+node.Spec.Template.Revision)
	}
	slices.Sort(revisions)
	return revisions
}
