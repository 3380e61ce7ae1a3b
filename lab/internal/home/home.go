// Package home names the directories of one lab: programs, caches and the
// cluster's state all live below one root.
//
// It promises that everything the lab writes on the machine is below that root.
// It never starts a process and never deletes what it did not mark as its own.
package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// marker says that a directory was made by a lab: only a marked state
// directory is ever emptied.
const marker = ".valkey-operator-lab"

// Home is the root directory of a lab.
type Home struct{ Root string }

// Default is $LAB, or ~/.cache/valkey-operator-lab where that is unset.
func Default() (Home, error) {
	root := os.Getenv("LAB")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return Home{}, fmt.Errorf("set LAB to a directory for the lab: %w", err)
		}
		root = filepath.Join(cache, "valkey-operator-lab")
	}
	root, err := filepath.Abs(root)
	return Home{Root: root}, err
}

func (h Home) path(dir string, parts []string) string {
	return filepath.Join(append([]string{h.Root, dir}, parts...)...)
}

// Bin is the directory of the programs, or a file in it.
func (h Home) Bin(parts ...string) string { return h.path("bin", parts) }

// Cache holds what can be made again from the network.
func (h Home) Cache(parts ...string) string { return h.path("cache", parts) }

// Servers holds Valkey's programs for use without a container.
func (h Home) Servers(parts ...string) string { return h.path("servers", parts) }

// State is the cluster's: certificates, etcd, nodes, volumes, images.
func (h Home) State(parts ...string) string { return h.path("state", parts) }

// Log is the directory of the control plane's logs, or a file in it.
func (h Home) Log(parts ...string) string {
	return h.State(append([]string{"log"}, parts...)...)
}

// NodeLog is the directory of a node's logs, or a file in it.
func (h Home) NodeLog(node string, parts ...string) string {
	return h.State(append([]string{node, "var-log"}, parts...)...)
}

// Pool holds the volumes and pool.json.
func (h Home) Pool(parts ...string) string { return h.State(append([]string{"pool"}, parts...)...) }

// Images is the OCI layout that the lab's registry serves.
func (h Home) Images() string { return h.State("images") }

// Kubeconfig is the administrator's, for use on this machine.
func (h Home) Kubeconfig() string { return h.State("kubeconfig") }

// Prepare makes the state directory and marks it. A directory that holds
// anything and has no mark is refused: it may be someone's.
func (h Home) Prepare() error {
	entries, err := os.ReadDir(h.State())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(h.State(marker)); err == nil {
		return nil
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty and was not made by a lab: set LAB to a directory of its own", h.State())
	}
	if err := os.MkdirAll(h.State(), 0o755); err != nil {
		return err
	}
	return os.WriteFile(h.State(marker), []byte("This directory belongs to a lab; `lab down --purge` empties it.\n"), 0o644)
}

// Purge forgets the cluster: everything in the state directory but the images
// and the record of what they are made of.
func (h Home) Purge() error {
	entries, err := os.ReadDir(h.State())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(h.State(marker)); err != nil {
		return fmt.Errorf("%s was not made by a lab; nothing was deleted", h.State())
	}
	keep := map[string]bool{marker: true, "images": true, "images.pins": true, "lock": true}
	for _, e := range entries {
		if keep[e.Name()] {
			continue
		}
		if err := os.RemoveAll(h.State(e.Name())); err != nil {
			return err
		}
	}
	return nil
}
