package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// Emptiness tells whether a server that starts on the files would hold no key.
// A server with an append-only log reads the log alone, one without it the dump
// alone, and each starts with nothing when its own files are missing, whatever
// else lies there. Files that are damaged or cannot be read leave it unknown:
// it is for the server to judge them. When in doubt, files count as data.
func Emptiness(data string, appendOnly bool) protocol.Answer {
	if appendOnly {
		return logEmptiness(filepath.Join(data, LogDirectory))
	}
	return dumpEmptiness(filepath.Join(data, DumpFile))
}

func logEmptiness(directory string) protocol.Answer {
	text, err := os.ReadFile(filepath.Join(directory, LogFile+".manifest"))
	if errors.Is(err, fs.ErrNotExist) {
		return emptyUnlessOldLog(filepath.Dir(directory))
	}
	if err != nil {
		return ""
	}
	manifest, err := valkey.ParseAOFManifest(string(text))
	if err != nil {
		return ""
	}
	return filesEmptiness(directory, manifest)
}

// emptyUnlessOldLog knows that a server takes over the one-file log of versions
// before 7.0.
func emptyUnlessOldLog(data string) protocol.Answer {
	old := filepath.Join(data, LogFile)
	if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		return protocol.Yes
	}
	return sizeEmptiness(old)
}

// filesEmptiness is no as soon as one file holds something, and unknown as soon
// as one is damaged.
func filesEmptiness(directory string, manifest valkey.AOFManifest) protocol.Answer {
	for _, file := range manifest.Files {
		if file.Kind == valkey.AOFHistory {
			continue
		}
		path := filepath.Join(directory, file.Name)
		empty := sizeEmptiness(path)
		if file.Kind == valkey.AOFBase && strings.HasSuffix(file.Name, ".rdb") && empty != "" {
			empty = dumpEmptiness(path)
		}
		if empty != protocol.Yes {
			return empty
		}
	}
	return protocol.Yes
}

func sizeEmptiness(path string) protocol.Answer {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return ""
	case info.Size() > 0:
		return protocol.No
	}
	return protocol.Yes
}

func dumpEmptiness(path string) protocol.Answer {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.Yes
	}
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	holds, err := valkey.RDBHoldsKeys(file)
	switch {
	case err != nil:
		return ""
	case holds:
		return protocol.No
	}
	return protocol.Yes
}
