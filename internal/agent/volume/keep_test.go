package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"valkey.io/valkey-operator/internal/agent/volume"
)

// An agent that ends right after it restored a table must not have the next one
// believe that the server wrote it.
func TestARestoredTableIsKnownAsSuch(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 40)
	table := id + " 127.0.0.1:6379@16379 myself,master - 0 0 5 connected 0-16383\nvars currentEpoch 5 lastVoteEpoch 0\n"
	data := lay(t, map[string]string{volume.TableFile: table, ".valkey-operator/identity": "x"})
	if _, err := volume.KeepTable(data); err != nil || volume.IsRestored(data) {
		t.Fatalf("%v; a table that its server wrote is taken for a copy", err)
	}
	must(t, os.WriteFile(filepath.Join(data, volume.TableFile), []byte("\n"), 0o600))
	if _, err := volume.RestoreTable(data); err != nil {
		t.Fatal(err)
	}
	if _, known, err := volume.Self(data); !known || !volume.IsRestored(data) {
		t.Errorf("%v; the restored table is taken for the server's own", err)
	}
	for range 2 {
		must(t, volume.ForgetRestored(data))
	}
	if volume.IsRestored(data) {
		t.Error("it is a copy for ever")
	}
}
