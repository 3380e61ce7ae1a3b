package loopback

import (
	"os"
	"path/filepath"
	"testing"
)

// A directory stands for the volume, on a file system that is not to be
// filled: the rules leave more than it has, so the file stays empty.
func TestAVolumeIsFilledWhileARuleMatches(t *testing.T) {
	t.Parallel()
	n := &node{pool: pool(t, `{}`)}
	for id, claim := range map[string]string{"pvc-1": "prod/data-0", "pvc-2": "prod/data-1"} {
		if err := n.pool.put(id, volume{Name: id, Claim: claim}); err != nil {
			t.Fatal(err)
		}
		if err := n.pool.resize(id, 1); err != nil {
			t.Fatal(err)
		}
	}
	one, two := filepath.Join(t.TempDir(), ballast), filepath.Join(t.TempDir(), ballast)
	for _, step := range []struct {
		settings         string
		wantOne, wantTwo bool
	}{
		{`{}`, false, false},
		{`{"fill": [{"match": "prod/data-0", "leave": "7Ei"}]}`, true, false},
		{`{"fill": [{"leave": "7Ei"}]}`, true, true},
		{`{"fill": [{"match": "prod/data-1", "leave": "7Ei"}]}`, false, true},
		{`{}`, false, false},
	} {
		set(t, n.pool, step.settings)
		gotOne, gotTwo := filled(t, n, "pvc-1", one), filled(t, n, "pvc-2", two)
		if gotOne != step.wantOne || gotTwo != step.wantTwo {
			t.Errorf("with %s: %v and %v, want %v and %v", step.settings, gotOne, gotTwo, step.wantOne, step.wantTwo)
		}
	}
}

// filled acts out the rules for a volume, twice as the second look changes
// nothing, and says whether its ballast is there.
func filled(t *testing.T, n *node, id, file string) bool {
	t.Helper()
	s, _, err := n.pool.settings()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.fill(s.Fill, id, file); err != nil {
			t.Fatal(err)
		}
	}
	_, err = os.Stat(file)
	return err == nil
}
