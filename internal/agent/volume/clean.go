package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// leftovers are what saves that were cut short leave behind: servers never
// remove those of an earlier process, and each is as large as the dataset.
var leftovers = []string{
	"temp-*.rdb",
	"temp-rewriteaof-*",
	LogDirectory + "/temp-*.rdb",
	LogDirectory + "/temp-rewriteaof-*",
	// A full disk leaves these two, small as they are.
	LogDirectory + "/temp-" + LogFile + ".manifest",
	TableFile + ".tmp-*",
	// The agent's own, which are replaced in one step.
	TableFile + ".[0-9]*",
	ownDirectory + "/" + copyFile + ".[0-9]*",
	ownDirectory + "/" + restoredFile + ".[0-9]*",
}

// Clean removes the left-overs of saves that were cut short and returns their
// names. The caller holds the lock and has no server running.
func Clean(data string) (removed []string, err error) {
	for _, pattern := range leftovers {
		paths, globErr := filepath.Glob(filepath.Join(data, pattern))
		err = errors.Join(err, globErr)
		for _, path := range paths {
			if removeErr := os.Remove(path); removeErr != nil {
				err = errors.Join(err, removeErr)
				continue
			}
			removed = append(removed, filepath.Base(path))
		}
	}
	return removed, err
}

// RemoveDump removes the dump that a replica's sync leaves behind even without
// persistence. A member that promises to keep nothing must not come back with
// the keys of some earlier day. The caller holds the lock and has no server running.
func RemoveDump(data string) error {
	err := os.Remove(filepath.Join(data, DumpFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
