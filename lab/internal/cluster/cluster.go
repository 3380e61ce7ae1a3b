// Package cluster starts and stops a Kubernetes cluster whose control plane
// ("hub") and nodes are processes in namespaces of their own, joined by a
// bridge inside the hub's network namespace.
//
// Each step can be repeated: what runs already is left alone. It adds nothing
// to the machine's own network, and nothing outside the lab's home directory
// outlives Down.
package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"valkey.io/valkey-operator/lab/internal/cgroup"
	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/process"
	"valkey.io/valkey-operator/lab/internal/wait"
)

// stopGrace is how long the hub or a node may take to end in order: a few
// seconds for each of its programs.
const stopGrace = 40 * time.Second

// Cluster is the lab's cluster in a home directory.
type Cluster struct {
	Home home.Home
	// Say prints a line of progress.
	Say func(format string, args ...any)
}

// Options of Up.
type Options struct {
	Nodes int
	Port  int // where 127.0.0.1 reaches the API server
}

func (c Cluster) record(name string) process.Record {
	return process.Record(c.Home.State(name, "pid"))
}

// nodes are the numbers of the nodes that were ever started, in order.
func (c Cluster) nodes() []int {
	files, _ := filepath.Glob(c.Home.State("n*", "pid"))
	var numbers []int
	for _, f := range files {
		if n, err := nodeNumber(filepath.Base(filepath.Dir(f))); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// NodeStart starts a node, again or for the first time, and waits until it is
// Ready.
func (c Cluster) NodeStart(ctx context.Context, name string) error {
	n, err := nodeNumber(name)
	if err != nil {
		return err
	}
	release, err := serialize(c.Home)
	if err != nil {
		return err
	}
	defer release()
	if err := c.startNode(ctx, n); err != nil {
		return err
	}
	return c.waitNodes(ctx, []int{n})
}

// NodeStop ends a node: its programs in order, or as a power cut would.
func (c Cluster) NodeStop(ctx context.Context, name string, powerCut bool) error {
	n, err := nodeNumber(name)
	if err != nil {
		return err
	}
	release, err := serialize(c.Home)
	if err != nil {
		return err
	}
	defer release()
	grace := stopGrace
	if powerCut {
		grace = 0
	}
	return c.stopNode(ctx, n, grace)
}

func (c Cluster) stopNode(ctx context.Context, n int, grace time.Duration) error {
	name := nodeName(n)
	if err := c.record(name).End(ctx, grace); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	group := cgroup.For(c.Home.State()).Child(name)
	if !wait.Until(ctx, 20*time.Second, group.Remove) {
		return fmt.Errorf("node %s: processes still live in its cgroup %s", name, group)
	}
	return nil
}

// Down stops everything in order and checks that nothing is left. The state
// stays for the next Up.
func (c Cluster) Down(ctx context.Context) error {
	if _, err := os.Stat(c.Home.State()); err != nil {
		return nil
	}
	release, err := serialize(c.Home)
	if err != nil {
		return err
	}
	defer release()
	if err := c.stopNodes(ctx, stopGrace); err != nil {
		return err
	}
	if err := c.record("hub").End(ctx, stopGrace); err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if err := c.neighborBounds().restore(); err != nil {
		return fmt.Errorf("restoring the machine's settings: %w", err)
	}
	return c.checkGone(ctx)
}

// stopNodes stops all nodes at the same time.
func (c Cluster) stopNodes(ctx context.Context, grace time.Duration) error {
	nodes := c.nodes()
	results := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { results <- c.stopNode(ctx, n, grace) }()
	}
	var first error
	for range nodes {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (c Cluster) checkGone(ctx context.Context) error {
	group := cgroup.For(c.Home.State())
	var left []string
	gone := func() bool {
		group.Remove()
		left = c.leftovers()
		return len(left) == 0
	}
	if !wait.Until(ctx, 20*time.Second, gone) {
		return fmt.Errorf("the lab has ended, but these are left: %v", left)
	}
	return nil
}
