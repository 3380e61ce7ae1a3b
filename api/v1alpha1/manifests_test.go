package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// expectation is the line of a refused document that says what the refusal
// must speak of.
var expectation = regexp.MustCompile(`(?m)^# refused: (.+)$`)

func TestManifestsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t, filepath.Join("testdata", "refused", "*.yaml")) {
		t.Run(document.GetName(), func(t *testing.T) {
			t.Parallel()
			want := expectation.FindStringSubmatch(document.text)
			if want == nil {
				t.Fatal("the document lacks its line '# refused: …'")
			}
			wantRefusal(t, kinds(t)[document.GetKind()].create(document.Unstructured), want[1])
		})
	}
}

func TestManifestsThatAreAccepted(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t, filepath.Join("testdata", "accepted", "*.yaml")) {
		t.Run(document.GetName(), func(t *testing.T) {
			t.Parallel()
			wantAccepted(t, kinds(t)[document.GetKind()].create(document.Unstructured))
		})
	}
}

// What the documentation tells people to apply works.
func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t, filepath.Join("..", "..", "config", "samples", "*.yaml")) {
		t.Run(document.GetName(), func(t *testing.T) {
			t.Parallel()
			wantAccepted(t, kinds(t)[document.GetKind()].create(document.Unstructured))
		})
	}
}

// document is one object of a file of manifests.
type document struct {
	*unstructured.Unstructured
	text string
}

func documents(t *testing.T, pattern string) []document {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s (%v)", pattern, err)
	}
	var found []document
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(content), "\n---\n") {
			object := parse(t, text)
			object.SetNamespace("default")
			found = append(found, document{Unstructured: object, text: text})
		}
	}
	return found
}
