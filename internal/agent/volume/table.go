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
// known when there is no table, which is no error, or a damaged one, which is.
func Self(data string) (self valkey.NodeEntry, known bool, err error) {
	text, err := os.ReadFile(filepath.Join(data, TableFile))
	if errors.Is(err, fs.ErrNotExist) {
		return valkey.NodeEntry{}, false, nil
	}
	if err != nil {
		return valkey.NodeEntry{}, false, fmt.Errorf("reading the node table: %w", err)
	}
	table, err := valkey.ParseNodeTable(string(text))
	if err != nil {
		return valkey.NodeEntry{}, false, err
	}
	self, known = table.Myself()
	return self, known, nil
}
