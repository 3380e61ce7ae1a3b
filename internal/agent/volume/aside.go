package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// asideDirectory is, with a number, where files are kept that a member goes on without.
const asideDirectory = "aside-"

// SetDataAside moves the files with a member's keys out of its server's sight,
// into a directory on the same volume, whose name it returns. Older such directories
// go, unless one has keys of a kind that the newest has not. The caller holds the lock and has no server running.
func SetDataAside(data string) (directory string, err error) {
	return setAside(data, LogDirectory, LogFile, DumpFile)
}

// SetAllAside does so with the member's place in its cluster as well. Killed at
// any point, it leaves a node table unless all data is away: a blank server
// removes keys of slots that others own.
func SetAllAside(data string) (directory string, err error) {
	return setAside(data, LogDirectory, LogFile, DumpFile, filepath.Join(ownDirectory, copyFile), TableFile)
}

func setAside(data string, names ...string) (directory string, err error) {
	directory = nextName(data, asideDirectory)
	target := filepath.Join(data, directory)
	if err := os.Mkdir(target, 0o750); err != nil {
		return "", fmt.Errorf("setting files aside: %w", err)
	}
	for _, name := range names {
		// The copy of the table and the table itself have the same name.
		to := filepath.Join(target, filepath.Base(name))
		if filepath.Dir(name) != "." {
			to += ".copy"
		}
		err := os.Rename(filepath.Join(data, name), to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("setting files aside: %w", err)
		}
		// What is away stays away, also after a crash of the machine, before the next goes.
		if err := syncDirectories(target); err != nil {
			return "", fmt.Errorf("setting files aside: %w", err)
		}
	}
	return directory, dropOlder(data, target)
}

// dropOlder removes what was set aside before, except keys that may be the only
// ones: an agent that was killed when the log was away sets the rest aside later.
func dropOlder(data, newest string) (err error) {
	for _, number := range numbered(data, asideDirectory) {
		older := filepath.Join(data, asideDirectory+strconv.Itoa(number))
		if older != newest && !hasOthers(older, newest) {
			err = errors.Join(err, os.RemoveAll(older))
		}
	}
	return err
}

// hasOthers says whether one directory has keys in a file that the other has not.
func hasOthers(one, other string) bool {
	for _, name := range []string{LogDirectory, LogFile, DumpFile} {
		_, in := os.Lstat(filepath.Join(one, name))
		_, out := os.Lstat(filepath.Join(other, name))
		if in == nil && out != nil {
			return true
		}
	}
	return false
}
