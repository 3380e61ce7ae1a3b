package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// heading is a heading of the runbook that is one word: a reason.
var heading = regexp.MustCompile(`(?m)^### ([A-Za-z]+)$`)

// A reason that somebody sees on an object or in an event is explained once.
func TestEveryReasonIsInTheRunbook(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]int{}
	for _, match := range heading.FindAllStringSubmatch(string(content), -1) {
		explained[match[1]]++
	}
	known := map[string]bool{}
	for constant, reason := range reasons(t) {
		known[reason] = true
		if explained[reason] != 1 {
			t.Errorf("docs/runbook.md has %d headings %q (%s), want one", explained[reason], reason, constant)
		}
	}
	for reason := range explained {
		if !known[reason] {
			t.Errorf("docs/runbook.md explains %q, which is no reason", reason)
		}
	}
}

// A reason that nothing gives is a promise that nobody keeps.
func TestEveryReasonIsGiven(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for name, p := range packages(t).packages {
		if name == "api/v1alpha1" {
			continue
		}
		for _, file := range p.GoFiles {
			ast.Inspect(parse(t, filepath.Join(p.Dir, file)), func(node ast.Node) bool {
				if used, ok := selector(node); ok {
					given[strings.TrimPrefix(used, "v1alpha1.")] = true
				}
				return true
			})
		}
	}
	for constant := range reasons(t) {
		if !given[constant] {
			t.Errorf("nothing gives the reason %s: use it or remove it", constant)
		}
	}
}

// reasons are the constants of the API for reasons of conditions and events,
// with their texts.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(parse(t, filepath.Join(root, "api", "v1alpha1", "reasons.go")), func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || strings.HasPrefix(spec.Names[0].Name, "Condition") {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found[spec.Names[0].Name] = text
		return true
	})
	if len(found) == 0 {
		t.Fatal("no reasons found in api/v1alpha1/reasons.go")
	}
	return found
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
