package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Identity says whose data a volume holds.
type Identity struct {
	ClusterID string `json:"clusterID"`
	Shard     int    `json:"shard"`
	Node      int    `json:"node"`
}

func (i Identity) String() string {
	return fmt.Sprintf("shard %d node %d of cluster %s", i.Shard, i.Node, i.ClusterID)
}

// marker is the identity as it stands on the volume.
type marker struct {
	Version int `json:"version"`
	Identity
}

const (
	markerVersion = 1
	markerFile    = "identity.json"
)

// ForeignError means that the volume's data is not the member's.
type ForeignError struct{ Why string }

func (e *ForeignError) Error() string { return e.Why }

// Claim makes sure that the volume is the member's: a blank one is marked, a
// marked one is compared. It returns a *ForeignError for another member's volume
// and for data that no marker stands beside, and touches nothing then.
// Any other error means that the volume could not be read or written.
func Claim(data string, member Identity) error {
	text, err := os.ReadFile(ownFile(data, markerFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return mark(data, member)
	case err != nil:
		return fmt.Errorf("reading the volume's marker: %w", err)
	}
	var found marker
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("the volume's marker is damaged: %w", err)
	}
	if found.Identity != member {
		return &ForeignError{fmt.Sprintf("the volume belongs to %s, this is %s", found.Identity, member)}
	}
	return nil
}

func mark(data string, member Identity) error {
	stranger, err := firstStranger(data)
	if err != nil {
		return err
	}
	if stranger != "" {
		return &ForeignError{fmt.Sprintf("the volume holds data (%s) but no marker that says whose it is", stranger)}
	}
	text, err := json.Marshal(marker{Version: markerVersion, Identity: member})
	if err != nil {
		return fmt.Errorf("writing the volume's marker: %w", err)
	}
	if err := writeDurably(ownFile(data, markerFile), text); err != nil {
		return fmt.Errorf("writing the volume's marker: %w", err)
	}
	return nil
}

// firstStranger is an entry of a volume that is not blank, or empty. What file
// systems and storage systems keep at their root (lost+found, hidden snapshot
// directories) is no data.
func firstStranger(data string) (string, error) {
	entries, err := os.ReadDir(data)
	if err != nil {
		return "", fmt.Errorf("reading the volume: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" && !strings.HasPrefix(entry.Name(), ".") {
			return entry.Name(), nil
		}
	}
	return "", nil
}

// writeDurably replaces a file so that after a crash either the old or the
// whole new content is there.
func writeDurably(path string, content []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err = os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDirectories(filepath.Dir(path))
}

// syncDirectories makes the entry of a new file durable, and that of its directory.
func syncDirectories(directory string) error {
	for _, path := range []string{directory, filepath.Dir(directory)} {
		opened, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(opened.Sync(), opened.Close()); err != nil {
			return err
		}
	}
	return nil
}
