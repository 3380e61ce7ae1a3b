package loopback

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

func TestANodeThatCannotRegisterSaysWhy(t *testing.T) {
	t.Parallel()
	p, dir := pool(t, `{}`), t.TempDir()
	err := ServeNode(t.Context(), p, "n1", filepath.Join(dir, "csi.sock"), filepath.Join(dir, "nowhere"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("serving ended with %v", err)
	}
}
