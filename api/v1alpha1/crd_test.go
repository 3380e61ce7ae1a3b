package v1alpha1_test

import (
	"context"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// The oldest Kubernetes that the rules promise to work on.
var oldest = version.MajorMinor(1, 25)

// The API server's own check of a CRD: structure, names, and the budgets for
// the estimated cost of rules, each and all together.
func TestCRDsInstall(t *testing.T) {
	t.Parallel()
	for name, k := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), k.crd)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
		})
	}
}

// kubectl apply keeps a copy of the object in an annotation, and annotations
// may take 256 KiB in all.
func TestCRDsFitIntoAnAnnotation(t *testing.T) {
	t.Parallel()
	for name, k := range kinds(t) {
		content, err := yaml.YAMLToJSON(k.file)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > 256<<10 {
			t.Errorf("%s: the CRD takes %d bytes, kubectl apply allows %d: shorten it", name, len(content), 256<<10)
		}
	}
}

// Every rule compiles with what the API server of the oldest supported
// Kubernetes knows, and stays within the budget of one rule.
func TestRulesCompileOnOldestKubernetes(t *testing.T) {
	t.Parallel()
	for name, k := range kinds(t) {
		compiled := 0
		walk(k.structural, "", true, func(path string, at *schema.Structural, isRoot bool) {
			compiled += len(at.XValidations)
			compileRules(t, name+path, at, isRoot)
		})
		if compiled == 0 {
			t.Errorf("%s: no rule found", name)
		}
	}
}

func compileRules(t *testing.T, path string, at *schema.Structural, isRoot bool) {
	t.Helper()
	base := environment.MustBaseEnvSet(oldest)
	results, err := cel.Compile(at, model.SchemaDeclType(at, isRoot), celconfig.PerCallLimit, base, cel.NewExpressionsEnvLoader())
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	for i, result := range results {
		rule := at.XValidations[i].Rule
		if result.Error != nil {
			t.Errorf("%s: rule %q does not compile on Kubernetes %v: %v", path, rule, oldest, result.Error)
		}
		if most := uint64(apiextensionsvalidation.StaticEstimatedCostLimit); result.MaxCost > most {
			t.Errorf("%s: rule %q costs %d, at most %d is allowed", path, rule, result.MaxCost, most)
		}
	}
}

// A rule with what a newer Kubernetes brought does not pass the test above.
func TestOldestKubernetesRefusesNewerRules(t *testing.T) {
	t.Parallel()
	newer := &schema.Structural{Generic: schema.Generic{Type: "string"}}
	newer.XValidations = apiextensionsv1.ValidationRules{{Rule: "quantity(self).isGreaterThan(quantity('0'))"}}
	results, err := cel.Compile(newer, model.SchemaDeclType(newer, false), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(oldest), cel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Error == nil {
		t.Fatalf("quantity() compiled on Kubernetes %v, which does not have it", oldest)
	}
}

// Whatever a user may write or read has a description: kubectl explain teaches.
// Kubernetes' own types bring theirs.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	for name, k := range kinds(t) {
		seen := 0
		walk(k.structural, "", true, func(path string, at *schema.Structural, _ bool) {
			if strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "{}") || path == ".metadata" {
				return
			}
			seen++
			if strings.TrimSpace(at.Description) == "" {
				t.Errorf("%s%s has no description", name, path)
			}
		})
		if seen < 20 {
			t.Errorf("%s: only %d fields found", name, seen)
		}
	}
}

// A message is all that a user sees of a rule: it names the field and says
// what to do.
func TestEveryRuleHasAMessage(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, k := range kinds(t) {
		walk(k.structural, "", true, func(path string, at *schema.Structural, _ bool) {
			for _, rule := range at.XValidations {
				if rule.Message == "" {
					t.Errorf("%s%s: rule %q has no message", name, path, rule.Rule)
				}
				seen[rule.Message] = rule.Rule
			}
		})
	}
	if diff := cmp.Diff(sortedKeys(rules), sortedKeys(seen)); diff != "" {
		t.Errorf("the messages of the rules (+) are not the keys of the table of rules (-):\n%s", diff)
	}
}

// walk visits a schema and everything below it.
func walk(at *schema.Structural, path string, isRoot bool, visit func(path string, at *schema.Structural, isRoot bool)) {
	visit(path, at, isRoot)
	if at.Items != nil {
		walk(at.Items, path+"[]", false, visit)
	}
	if at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil {
		walk(at.AdditionalProperties.Structural, path+"{}", false, visit)
	}
	for name, property := range at.Properties {
		walk(&property, path+"."+name, false, visit)
	}
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
