// Package cgroup makes and removes the control groups below which a lab node's
// pods run, in every mounted hierarchy.
//
// It touches only paths below the root it is given; a kubelet ends whatever it
// does not know below its own root, so two labs never share one.
package cgroup

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Group is a path below every hierarchy's mount point, such as /lab-1a2b/n1.
type Group string

// For is the group of a lab, told from other labs by its state directory.
func For(state string) Group {
	h := fnv.New32a()
	h.Write([]byte(state))
	return Group(fmt.Sprintf("/lab-%08x", h.Sum32()))
}

// Child is a group inside this one.
func (g Group) Child(name string) Group { return g + "/" + Group(name) }

// Mounts are the hierarchies: one for each v1 controller, and the v2 one, where
// runc makes groups too.
func Mounts() ([]string, error) {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var mounts []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && (f[2] == "cgroup" || f[2] == "cgroup2") {
			mounts = append(mounts, f[1])
		}
	}
	return mounts, nil
}

// Make makes the group in every hierarchy.
func (g Group) Make() error {
	mounts, err := Mounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if err := os.MkdirAll(filepath.Join(m, string(g)), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Dirs lists the directories of the group and all below it, deepest first.
func (g Group) Dirs() ([]string, error) {
	mounts, err := Mounts()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, m := range mounts {
		// Groups vanish while they are walked: that is what is wanted.
		err := filepath.WalkDir(filepath.Join(m, string(g)), func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Reverse(dirs)
	return dirs, nil
}

// Remove removes the group and all below it. It reports false while something
// still lives there: after a namespace's first process is gone the others may
// still be on their way out, so the caller asks again.
func (g Group) Remove() bool {
	dirs, err := g.Dirs()
	if err != nil {
		return false
	}
	gone := true
	for _, d := range dirs {
		if err := syscall.Rmdir(d); err != nil && !errors.Is(err, syscall.ENOENT) {
			gone = false
		}
	}
	return gone
}
