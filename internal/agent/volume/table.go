package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"valkey.io/valkey-operator/internal/valkey"
)

// Self is the member's own entry in the node table on the volume. It is not
// known when there is no table, which is no error, or a damaged one, which is: not
// even the lines of it that can be read are believed.
func Self(data string) (self valkey.NodeEntry, known bool, err error) {
	text, err := os.ReadFile(filepath.Join(data, TableFile))
	if errors.Is(err, fs.ErrNotExist) {
		return valkey.NodeEntry{}, false, nil
	}
	if err != nil {
		return valkey.NodeEntry{}, false, fmt.Errorf("reading the node table: %w", err)
	}
	_, self, err = valkey.ParseNodesConf(string(text))
	return self, err == nil, err
}

// HealTable mends the one thing in the node table that makes versions before
// 8.1.2 refuse it (see valkey.HealShardIDs), and says how many entries it was. The
// caller holds the lock and has no server running.
func HealTable(data string) (changed int, err error) {
	path := filepath.Join(data, TableFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the node table: %w", err)
	}
	healed, changed := valkey.HealShardIDs(string(text))
	if changed == 0 {
		return 0, nil
	}
	if err := writeDurably(path, []byte(healed)); err != nil {
		return 0, fmt.Errorf("mending the node table: %w", err)
	}
	return changed, nil
}
