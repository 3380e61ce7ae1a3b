package home

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPrepareRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	h := Home{Root: t.TempDir()}
	write(t, h.State("someones.txt"))
	if err := h.Prepare(); err == nil {
		t.Error("a directory with someone's files must be refused")
	}
	if err := h.Purge(); err == nil {
		t.Error("and never be emptied")
	}
	if _, err := os.Stat(h.State("someones.txt")); err != nil {
		t.Error(err)
	}
}

func TestPurgeKeepsTheImages(t *testing.T) {
	t.Parallel()
	h := Home{Root: t.TempDir()}
	for range 2 {
		if err := h.Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"images/index.json", "images.pins", "n1/pid", "pool/pvc-1.img", "kubeconfig"} {
		write(t, h.State(file))
	}
	if err := h.Purge(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(h.State())
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{marker, "images", "images.pins"}, left); diff != "" {
		t.Error(diff)
	}
}
