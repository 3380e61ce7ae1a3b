package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"valkey.io/valkey-operator/internal/valkey"
)

// copyFile is the agent's copy of the last whole node table.
const copyFile = TableFile

// restoredFile says that the node table is from the copy.
const restoredFile = "table-restored"

// damagedFile is, with a number, the name under which a damaged node table is kept.
const damagedFile = TableFile + ".damaged-"

// KeepTable keeps a copy of a node table that is whole, if the copy is of
// another one. A server may be running. It is durable when it returns.
func KeepTable(data string) (kept bool, err error) {
	text, err := os.ReadFile(filepath.Join(data, TableFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the node table: %w", err)
	}
	before, _ := os.ReadFile(ownFile(data, copyFile))
	if string(before) == string(text) {
		return false, nil
	}
	if _, _, err := valkey.ParseNodesConf(string(text)); err != nil {
		return false, err
	}
	return true, writeDurably(ownFile(data, copyFile), text)
}

// RestoreTable puts the copy of the last whole node table in the place of a
// damaged one, which is kept beside; only the newest such one is. It refuses a copy that the
// damaged table shows to be older. The caller holds the lock and has no server running.
func RestoreTable(data string) (keptAs string, err error) {
	text, err := os.ReadFile(ownFile(data, copyFile))
	if err != nil {
		return "", errors.New("there is no copy of it")
	}
	table, _, err := valkey.ParseNodesConf(string(text))
	if err != nil {
		return "", fmt.Errorf("the copy of it is damaged: %w", err)
	}
	path := filepath.Join(data, TableFile)
	damaged, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the node table: %w", err)
	}
	if why := table.Disproves(string(damaged)); why != "" {
		return "", fmt.Errorf("the copy of it is older: %s", why)
	}
	restored, err := valkey.WithoutNextVote(string(text))
	if err != nil {
		return "", err
	}
	// Whoever starts after a crash at any point from here knows it too.
	if err := writeDurably(ownFile(data, restoredFile), nil); err != nil {
		return "", fmt.Errorf("noting that the node table is restored: %w", err)
	}
	// A second name for it: at no time is there no table.
	keptAs = nextName(data, damagedFile)
	if err := os.Link(path, filepath.Join(data, keptAs)); errors.Is(err, fs.ErrNotExist) {
		keptAs = ""
	} else if err != nil {
		return "", fmt.Errorf("keeping the damaged node table: %w", err)
	}
	if err := writeDurably(path, []byte(restored)); err != nil {
		return "", fmt.Errorf("restoring the node table: %w", err)
	}
	return keptAs, keepNewest(data, damagedFile)
}

// IsRestored says whether the node table is from a copy, and no server has been
// allowed to start on it since. What cannot be read is taken for one.
func IsRestored(data string) bool {
	_, err := os.Lstat(ownFile(data, restoredFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// ForgetRestored notes that the node table may be believed like any other.
func ForgetRestored(data string) error {
	err := os.Remove(ownFile(data, restoredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// numbered are the numbers n of what is kept under the names prefix<n>.
func numbered(data, prefix string) []int {
	paths, _ := filepath.Glob(filepath.Join(data, prefix+"*"))
	var numbers []int
	for _, path := range paths {
		number, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), prefix))
		if err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

func nextName(data, prefix string) string { return prefix + strconv.Itoa(newest(data, prefix)+1) }

func newest(data, prefix string) (highest int) {
	for _, number := range numbered(data, prefix) {
		highest = max(highest, number)
	}
	return highest
}

// keepNewest removes all that is kept under a prefix, except the newest.
func keepNewest(data, prefix string) (err error) {
	last := newest(data, prefix)
	for _, number := range numbered(data, prefix) {
		if number != last {
			err = errors.Join(err, os.RemoveAll(filepath.Join(data, prefix+strconv.Itoa(number))))
		}
	}
	return err
}
