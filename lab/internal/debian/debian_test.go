package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpstream(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct{ version, want string }{
		"a plain version":               {"9.1.2-1", "9.1.2"},
		"a repacked source":             {"8.1.1+dfsg1-3+deb13u3", "8.1.1"},
		"an epoch":                      {"5:8.1.3-1", "8.1.3"},
		"no revision":                   {"9.1.0", "9.1.0"},
		"a candidate, later to be more": {"9.1.0~rc1-1", "9.1.0~rc1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if got := upstream(c.version); got != c.want {
				t.Errorf("upstream(%q) = %q, want %q", c.version, got, c.want)
			}
		})
	}
}

func TestAnotherLineInTheSuiteIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "packages"), []byte("libc6 2.41-12\nvalkey-server 9.2.0-1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := describe(Release{"9.1", "forky"}, dir)
	if err == nil || !strings.Contains(err.Error(), "carries Valkey \"9.2.0\" now, not 9.1") {
		t.Errorf("an image must never be given the tag of another line: %v", err)
	}
	root, err := describe(Release{"9.2", "forky"}, dir)
	if err != nil || root.Version != "9.2.0" {
		t.Errorf("describe = %+v, %v", root, err)
	}
}
