package volume

import (
	"os"
	"path/filepath"
	"strings"

	"valkey.io/valkey-operator/internal/valkey"
)

// Format is the format of the dump that a server would read at its start, alone
// or as the base of its log, such as REDIS0011 or VALKEY080. It is not known where
// there is none, or one that does not begin like a dump.
func Format(data string, appendOnly bool) (format string, known bool) {
	path := filepath.Join(data, DumpFile)
	if appendOnly {
		base, found := logBase(data)
		if !found {
			return "", false
		}
		path = base
	}
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = file.Close() }()
	format, err = valkey.RDBFormat(file)
	return format, err == nil
}

// logBase is the dump that the append-only log begins with.
func logBase(data string) (path string, found bool) {
	text, err := os.ReadFile(filepath.Join(data, LogDirectory, LogFile+".manifest"))
	if err != nil {
		return "", false
	}
	manifest, err := valkey.ParseAOFManifest(string(text))
	if err != nil {
		return "", false
	}
	base, has := manifest.Base()
	return filepath.Join(data, LogDirectory, base.Name), has && strings.HasSuffix(base.Name, ".rdb")
}
