package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// neighbors are the machine's bounds of how many addresses its network
// namespaces know the hardware of, all together. Each pod of a cluster of sixty
// knows fifty-nine, which is more than the kernel's 1024: connections between pods
// then stay without an answer. 32768 is enough for a hundred and eighty that all
// know each other.
var neighbors = map[string]int{"gc_thresh1": 8192, "gc_thresh2": 16384, "gc_thresh3": 32768}

// bounds are settings of the kernel that are raised while a lab is up.
type bounds struct {
	dir    string // of the settings
	record string // file of their former values
}

func (c Cluster) neighborBounds() bounds {
	return bounds{dir: "/proc/sys/net/ipv4/neigh/default", record: c.Home.State("neighbors.json")}
}

// raise makes the bounds at least what is wanted, and records what they were. A
// record of an earlier lab, which did not come to restore them, is kept.
func (b bounds) raise(wanted map[string]int) error {
	former := map[string]int{}
	for name := range wanted {
		value, err := b.read(name)
		if err != nil {
			return err
		}
		former[name] = value
	}
	if _, err := os.Stat(b.record); errors.Is(err, fs.ErrNotExist) {
		text, err := json.Marshal(former)
		if err != nil {
			return err
		}
		if err := os.WriteFile(b.record, text, 0o644); err != nil {
			return err
		}
	}
	for name, value := range wanted {
		if err := b.write(name, max(value, former[name])); err != nil {
			return err
		}
	}
	return nil
}

// restore puts the recorded values back; without a record there is nothing to do.
func (b bounds) restore() error {
	text, err := os.ReadFile(b.record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var former map[string]int
	if err := json.Unmarshal(text, &former); err != nil {
		return fmt.Errorf("%s: %w", b.record, err)
	}
	for name, value := range former {
		if err := b.write(name, value); err != nil {
			return err
		}
	}
	return os.Remove(b.record)
}

func (b bounds) read(name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func (b bounds) write(name string, value int) error {
	return os.WriteFile(filepath.Join(b.dir, name), []byte(strconv.Itoa(value)+"\n"), 0o644)
}
