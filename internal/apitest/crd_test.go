//go:build apiserver

package apitest

import (
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// That they are installed at all means that their rules are within the server's
// budget for them.
func TestCRDsAreStructuralAndServed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"valkeyclusters.valkey.io", "valkeynodes.valkey.io"} {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, &crd); err != nil {
			t.Fatal(err)
		}
		for _, condition := range crd.Status.Conditions {
			good := apiextensionsv1.ConditionTrue
			if condition.Type == apiextensionsv1.NonStructuralSchema || condition.Type == apiextensionsv1.Terminating {
				good = apiextensionsv1.ConditionFalse
			}
			if condition.Status != good {
				t.Errorf("%s: %s is %s: %s", name, condition.Type, condition.Status, condition.Message)
			}
		}
	}
}

func TestObjectsAreAcceptedOrRefused(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	for what, row := range map[string]struct{ name, spec, refusal string }{
		"a small cluster":              {name: "good", spec: `{"shards":1}`},
		"a cluster with volumes":       {name: "good", spec: `{"shards":3,"storage":{"enabled":true,"size":"1Gi"}}`},
		"no shards":                    {name: "bad", spec: `{"shards":0}`, refusal: "spec.shards"},
		"volumes without a size":       {name: "bad", spec: `{"shards":1,"storage":{"enabled":true}}`, refusal: "spec.storage.size is required when spec.storage.enabled is true"},
		"a name that Services lack":    {name: "1st", spec: `{"shards":1}`, refusal: "metadata.name must begin with a lower-case letter"},
		"a setting of the operator":    {name: "bad", spec: `{"shards":1,"config":{"port":"7000"}}`, refusal: "this setting belongs to the operator"},
		"a field that nobody has seen": {name: "bad", spec: `{"shards":1,"shardz":3}`, refusal: `unknown field "spec.shardz"`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON([]byte(`{"apiVersion":"valkey.io/v1alpha1","kind":"ValkeyCluster","spec":` + row.spec + `}`)); err != nil {
				t.Fatal(err)
			}
			object.SetNamespace(w.namespace)
			object.SetName(row.name)
			wantRefusal(t, admin.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")), row.refusal)
		})
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	files, err := filepath.Glob(shipped("samples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no samples: %v", err)
	}
	for _, file := range files {
		samples, err := readManifests(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range samples {
			sample.SetNamespace(w.namespace)
			if err := admin.Create(t.Context(), sample, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// wantRefusal asserts that a write was refused in words that hold some text,
// or accepted if the text is empty.
func wantRefusal(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("refused: %v", err)
	case text != "" && err == nil:
		t.Errorf("accepted, want a refusal that says %q", text)
	case text != "" && !strings.Contains(err.Error(), text):
		t.Errorf("refused for another reason than %q: %v", text, err)
	}
}
