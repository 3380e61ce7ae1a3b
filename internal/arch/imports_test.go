package arch

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "valkey.io/valkey-operator/"

// root is the top directory of the module, seen from this package.
var root = filepath.Join("..", "..")

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports, Deps   []string
	Standard        bool
}

// name is the path below this module.
func (p listed) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// packages are those of this module by name; standard are the standard
// library's that they need.
type tree struct {
	packages map[string]listed
	standard map[string]bool
}

var list = sync.OnceValues(func() (tree, error) {
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,Deps,Standard", "./...")
	command.Dir = root
	output, err := command.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return tree{}, errors.New(string(failed.Stderr))
	}
	if err != nil {
		return tree{}, err
	}
	found := tree{packages: map[string]listed{}, standard: map[string]bool{}}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return tree{}, err
		}
		if strings.HasPrefix(p.ImportPath, module) {
			found.packages[p.name()] = p
		}
		found.standard[p.ImportPath] = p.Standard
	}
})

func packages(t *testing.T) tree {
	t.Helper()
	found, err := list()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestImports(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, rule := range rules {
		t.Run(rule.packages, func(t *testing.T) {
			t.Parallel()
			for _, p := range matching(t, all, rule.packages) {
				for _, complaint := range rule.complaints(p, all.standard) {
					t.Errorf("%s %s", p.name(), complaint)
				}
			}
		})
	}
}

// complaints says what a package imports or calls against the rule.
func (r rule) complaints(p listed, standard map[string]bool) []string {
	var found []string
	for _, imported := range p.Imports {
		ours, isOurs := strings.CutPrefix(imported, module)
		switch {
		case isOurs && !matchesAny(ours, r.ours):
			found = append(found, "must not import "+ours)
		case slices.Contains(r.direct, imported):
			found = append(found, "must not import "+imported)
		case !isOurs && !standard[imported] && len(r.outside) > 0 && !hasAnyPrefix(imported, r.outside):
			found = append(found, "must not import "+imported)
		}
	}
	for _, needed := range p.Deps {
		if hasAnyPrefix(needed, r.closure) {
			found = append(found, "must not need "+needed+", not even through others")
		}
	}
	return append(found, r.forbiddenCalls(p)...)
}

func (r rule) forbiddenCalls(p listed) []string {
	if len(r.calls) == 0 {
		return nil
	}
	var found []string
	for _, file := range p.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return []string{err.Error()}
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if used, ok := selector(node); ok && slices.Contains(r.calls, used) {
				found = append(found, "must not use "+used+" ("+file+")")
			}
			return true
		})
	}
	return found
}

// selector is the text of an expression such as time.Now.
func selector(node ast.Node) (text string, ok bool) {
	expression, ok := node.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	of, ok := expression.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return of.Name + "." + expression.Sel.Name, true
}

// Every package has one rule, so that a new one is thought about; and every
// rule speaks of packages that exist, so that none outlives them.
func TestRulesFitTheTree(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for name := range all.packages {
		count := 0
		for _, rule := range rules {
			if matches(name, rule.packages) {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d rules speak of %s, want one: add it to the table", count, name)
		}
	}
	for _, rule := range rules {
		for _, pattern := range append([]string{rule.packages}, rule.ours...) {
			matching(t, all, pattern)
		}
	}
}

// The client library shows its types in one file and nowhere else.
func TestOneFileKnowsTheClientLibrary(t *testing.T) {
	t.Parallel()
	importers := map[string]bool{}
	for name, p := range packages(t).packages {
		for _, file := range p.GoFiles {
			for _, imported := range importsOf(t, filepath.Join(p.Dir, file)) {
				if strings.HasPrefix(imported, clientLibrary) {
					importers[path.Join(name, file)] = true
				}
			}
		}
	}
	if len(importers) != 1 || !importers[clientFile] {
		t.Errorf("%v import %s, want %s alone", importers, clientLibrary, clientFile)
	}
}

// The lab can only behave like a user: it may know the API and no more.
func TestLabKnowsOnlyTheAPI(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir(filepath.Join(root, "lab"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		files++
		for _, imported := range importsOf(t, file) {
			ours, isOurs := strings.CutPrefix(imported, module)
			if isOurs && !matchesAny(ours, []string{"lab/...", "api/v1alpha1"}) {
				t.Errorf("%s must not import %s", file, ours)
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Fatalf("read %d files of the lab: %v", files, err)
	}
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, imported)
	}
	return imports
}

// matching are the packages that a pattern means: at least one, or the test
// fails.
func matching(t *testing.T, all tree, pattern string) []listed {
	t.Helper()
	var found []listed
	for name, p := range all.packages {
		if matches(name, pattern) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		t.Errorf("the rules speak of %s, which does not exist", pattern)
	}
	return found
}

func matches(name, pattern string) bool {
	below, hasBelow := strings.CutSuffix(pattern, "/...")
	return name == below || hasBelow && strings.HasPrefix(name, below+"/")
}

func matchesAny(name string, patterns []string) bool {
	for _, pattern := range patterns {
		if matches(name, pattern) {
			return true
		}
	}
	return false
}

func hasAnyPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
