package volume

import (
	"os"
	"path/filepath"

	"valkey.io/valkey-operator/internal/valkey"
)

// LogEnd is the file that the append-only log grows in, and its size in bytes.
// It is not known where there is no log, or one that cannot be read.
func LogEnd(data string) (file string, size int64, known bool) {
	text, err := os.ReadFile(filepath.Join(data, LogDirectory, LogFile+".manifest"))
	if err != nil {
		return "", 0, false
	}
	manifest, err := valkey.ParseAOFManifest(string(text))
	if err != nil {
		return "", 0, false
	}
	increments := manifest.Increments()
	if len(increments) == 0 {
		return "", 0, false
	}
	file = increments[len(increments)-1].Name
	size, known = fileSize(filepath.Join(data, LogDirectory, file))
	return file, size, known
}

func fileSize(path string) (size int64, known bool) {
	info, err := os.Stat(path) //nolint:gosec // manifests with directories in their names are refused
	if err != nil {
		return 0, false
	}
	return info.Size(), true
}
