package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"valkey.io/valkey-operator/internal/agent/volume"
)

// An agent that was killed after it had moved the keys sets the node table aside
// at the next start: the keys, which may be the only ones, stay.
func TestKeysThatWereSetAsideOutliveTheRest(t *testing.T) {
	t.Parallel()
	data := lay(t, map[string]string{index: manifest, volume.TableFile: "\n", "aside-1/dump.rdb": "older"})
	must(t, os.Mkdir(filepath.Join(data, "aside-2"), 0o750))
	must(t, os.Rename(filepath.Join(data, volume.LogDirectory), filepath.Join(data, "aside-2", volume.LogDirectory)))
	if directory, err := volume.SetAllAside(data); err != nil || directory != "aside-3" {
		t.Fatalf("%q, %v", directory, err)
	}
	files := list(t, data)
	if _, kept := files["aside-2/"+index]; !kept {
		t.Errorf("the log is gone: %v", files)
	}
	must(t, os.Mkdir(filepath.Join(data, volume.LogDirectory), 0o750))
	must(t, os.WriteFile(filepath.Join(data, volume.DumpFile), nil, 0o600))
	if _, err := volume.SetAllAside(data); err != nil {
		t.Fatal(err)
	}
	if older, _ := filepath.Glob(filepath.Join(data, "aside-[123]")); len(older) > 0 {
		t.Errorf("%v stay though a newer one has all", older)
	}
}
