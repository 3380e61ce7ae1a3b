package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// kind answers for one kind as an API server would that has the generated CRD
// installed: unknown fields, defaults, schema, list keys and rules.
type kind struct {
	file       []byte
	crd        *apiextensions.CustomResourceDefinition
	structural *schema.Structural
	strategy   interface {
		Validate(context.Context, runtime.Object) field.ErrorList
		ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList
	}
}

// Reading a CRD compiles its rules, which takes a moment: once for all tests.
var (
	clusters = sync.OnceValues(func() (kind, error) { return readKind("valkey.io_valkeyclusters.yaml", "ValkeyCluster") })
	nodes    = sync.OnceValues(func() (kind, error) { return readKind("valkey.io_valkeynodes.yaml", "ValkeyNode") })
)

// kinds are both kinds by name.
func kinds(t *testing.T) map[string]kind {
	t.Helper()
	return map[string]kind{"ValkeyCluster": must(t, clusters), "ValkeyNode": must(t, nodes)}
}

func must(t *testing.T, read func() (kind, error)) kind {
	t.Helper()
	k, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func readKind(file, name string) (kind, error) {
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", file))
	if err != nil {
		return kind{}, err
	}
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &external); err != nil {
		return kind{}, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	k := kind{file: content, crd: new(apiextensions.CustomResourceDefinition)}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, k.crd, nil); err != nil {
		return kind{}, err
	}
	openAPI := k.crd.Spec.Validation.OpenAPIV3Schema
	if k.structural, err = schema.NewStructural(openAPI); err != nil {
		return kind{}, err
	}
	validator, _, err := validation.NewSchemaValidator(openAPI)
	if err != nil {
		return kind{}, err
	}
	k.strategy = customresource.NewStrategy(nil, true, v1alpha1.GroupVersion.WithKind(name), validator, nil, k.structural, nil, nil, nil)
	return k, nil
}

// admit fills in defaults as the API server does, and returns what it refuses.
func (k kind) admit(object *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	known := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object.Object, k.structural, true, known) {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	defaulting.Default(object.Object, k.structural)
	return errs
}

func (k kind) create(object *unstructured.Unstructured) field.ErrorList {
	errs := k.admit(object)
	return append(errs, k.strategy.Validate(context.Background(), object)...)
}

// update expects that old was created before, hence has its defaults.
func (k kind) update(object, old *unstructured.Unstructured) field.ErrorList {
	errs := k.admit(object)
	return append(errs, k.strategy.ValidateUpdate(context.Background(), object, old)...)
}

// parse reads one object; it fails the test when the text is no YAML.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &object.Object); err != nil { // whole numbers become integers
		t.Fatal(err)
	}
	return object
}

// object is an object of this group with a spec in YAML.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	parsed := parse(t, "spec: "+spec)
	parsed.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	parsed.SetName(name)
	parsed.SetNamespace("default")
	parsed.SetUID("6f0b4a3e-8c43-4f4e-9a52-0d8f3a3b7c11")
	parsed.SetResourceVersion("1")
	return parsed
}

// wantRefusal asserts that the write was refused in words that hold want.
func wantRefusal(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	if len(errs) == 0 {
		t.Fatalf("accepted, want a refusal that says %q", want)
	}
	if !strings.Contains(errs.ToAggregate().Error(), want) {
		t.Fatalf("refused for another reason than %q: %v", want, errs.ToAggregate())
	}
}

func wantAccepted(t *testing.T, errs field.ErrorList) {
	t.Helper()
	if len(errs) > 0 {
		t.Fatalf("refused: %v", errs.ToAggregate())
	}
}
