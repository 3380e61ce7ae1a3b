package cluster

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"valkey.io/valkey-operator/lab/internal/cgroup"
	"valkey.io/valkey-operator/lab/internal/preflight"
	"valkey.io/valkey-operator/lab/internal/process"
	"valkey.io/valkey-operator/lab/internal/wait"
)

//go:embed manifests
var manifestFiles embed.FS

// readyLimit bounds each wait of Up: seconds on an idle machine, a minute on one
// that compiles or tests with all its cores.
const readyLimit = 5 * time.Minute

// Up starts what does not run yet and returns when nodes and DNS are ready.
func (c Cluster) Up(ctx context.Context, o Options) error {
	if o.Nodes < 1 || o.Nodes > maxNodes {
		return fmt.Errorf("a lab has 1 to %d nodes, not %d", maxNodes, o.Nodes)
	}
	if err := c.prepare(); err != nil {
		return err
	}
	release, err := serialize(c.Home)
	if err != nil {
		return err
	}
	defer release()
	if err := c.neighborBounds().raise(neighbors); err != nil {
		c.Say("clusters of more than about thirty pods will not find each other: %v", err)
	}
	if err := c.startHub(ctx, o.Port); err != nil {
		return err
	}
	var numbers []int
	for n := 1; n <= o.Nodes; n++ {
		numbers = append(numbers, n)
		if err := c.startNode(ctx, n); err != nil {
			return err
		}
	}
	return c.waitReady(ctx, numbers)
}

func (c Cluster) prepare() error {
	if err := c.Home.Prepare(); err != nil {
		return err
	}
	for _, d := range []string{c.Home.Pool(), c.Home.Log()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (c Cluster) waitReady(ctx context.Context, nodes []int) error {
	ready := func() bool { return c.kubectl(ctx, "", "get", "--raw=/readyz") == nil }
	if !wait.Until(ctx, readyLimit, ready) {
		return fmt.Errorf("the API server is not ready after %v: read %s", readyLimit, c.Home.Log("kube-apiserver.log"))
	}
	c.Say("API server ready")
	if err := c.waitNodes(ctx, nodes); err != nil {
		return err
	}
	c.Say("nodes ready")
	// Only now: discovery waits for aggregated APIs, which may run on the nodes.
	if err := c.applyManifests(ctx); err != nil {
		return err
	}
	dns := func() bool {
		return c.kubectl(ctx, "", "-n", "kube-system", "rollout", "status", "deploy/coredns", "--timeout=5s") == nil
	}
	if !wait.Until(ctx, readyLimit, dns) {
		return fmt.Errorf("CoreDNS is not ready after %v: read %s and %s", readyLimit, c.Home.Log("kubectl.log"), c.Home.NodeLog("nN", "containerd.log"))
	}
	c.Say("DNS ready")
	return nil
}

func (c Cluster) applyManifests(ctx context.Context) error {
	var all strings.Builder
	for _, file := range []string{"storage.yaml", "coredns.yaml"} {
		b, err := manifestFiles.ReadFile("manifests/" + file)
		if err != nil {
			return err
		}
		all.Write(b)
		all.WriteString("\n---\n")
	}
	apply := func() bool {
		return c.kubectl(ctx, all.String(), "apply", "--server-side", "--force-conflicts", "-f-") == nil
	}
	if !wait.Until(ctx, readyLimit, apply) {
		return fmt.Errorf("the lab's own manifests do not apply: read %s", c.Home.Log("kubectl.log"))
	}
	return nil
}

// kubectl runs one command as the administrator; the answer to a failed one is
// kept in kubectl.log.
func (c Cluster) kubectl(ctx context.Context, stdin string, args ...string) error {
	cmd := exec.CommandContext(ctx, c.Home.Bin("kubectl"), append([]string{"--kubeconfig", c.Home.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		_ = os.WriteFile(c.Home.Log("kubectl.log"), out, 0o644)
	}
	return err
}

func (c Cluster) waitNodes(ctx context.Context, nodes []int) error {
	for _, n := range nodes {
		name := nodeName(n)
		ready := func() bool {
			// The node's own answer first: after a restart its status is an old one.
			return c.kubectl(ctx, "", "get", "--raw=/api/v1/nodes/"+name+"/proxy/healthz") == nil &&
				c.kubectl(ctx, "", "wait", "--for=condition=Ready", "node/"+name, "--timeout=1s") == nil &&
				c.kubectl(ctx, "", "get", "csinode", name, "-o", "jsonpath={.spec.drivers[0].name}") == nil
		}
		if !wait.Until(ctx, readyLimit, ready) {
			return fmt.Errorf("node %s is not ready after %v: read %s and %s",
				name, readyLimit, c.Home.NodeLog(name, "kubelet.log"), c.Home.NodeLog(name, "containerd.log"))
		}
	}
	return nil
}

// Check says in a sentence why Up cannot start this lab now, before anything
// that takes long is done for it.
func (c Cluster) Check(ctx context.Context, port int) error {
	if err := preflight.This().Check(); err != nil {
		return err
	}
	if c.record("hub").Pid() != 0 {
		return nil
	}
	lock, err := claim(ctx, lockName)
	if err != nil {
		return err
	}
	lock.Close()
	portal, err := openPortal(ctx, port)
	if err != nil {
		return err
	}
	portal.Close()
	return preflight.ProbeNetwork()
}

func (c Cluster) startHub(ctx context.Context, port int) error {
	if c.record("hub").Pid() != 0 {
		return nil
	}
	// Nodes that outlived their hub have lost its bridge.
	if err := c.stopNodes(ctx, 0); err != nil {
		return err
	}
	c.Say("starting the control plane")
	lock, err := claim(ctx, lockName)
	if err != nil {
		return err
	}
	defer lock.Close()
	portal, err := openPortal(ctx, port)
	if err != nil {
		return err
	}
	defer portal.Close()
	if err := ensureAccess(c.Home, port); err != nil {
		return err
	}
	return c.launch(ctx, "hub", []*os.File{portal, lock}, []string{"hub-init"}, wireHub)
}

// launch starts a first process and lets it run once its network is wired up.
// One whose network cannot be made is ended again.
func (c Cluster) launch(ctx context.Context, name string, files []*os.File, args []string, wire func(pid int) error) error {
	l := process.Launch{
		Record: c.record(name),
		Log:    c.Home.Log(name + "-init.log"),
		Files:  files,
		Args:   append([]string{c.Home.Bin("lab")}, args...),
		Env:    []string{"PATH=" + os.Getenv("PATH"), "LAB=" + c.Home.Root},
	}
	pid, open, err := l.Start()
	if err != nil {
		return fmt.Errorf("%s does not start: %w", name, err)
	}
	defer open()
	if err := wire(pid); err != nil {
		_ = l.Record.End(ctx, 0)
		return fmt.Errorf("%s: %w; read %s", name, err, l.Log)
	}
	return nil
}

func (c Cluster) startNode(ctx context.Context, n int) error {
	name, hub := nodeName(n), c.record("hub").Pid()
	if hub == 0 {
		return ErrDown
	}
	if c.record(name).Pid() != 0 {
		return nil
	}
	c.Say("starting node %s", name)
	group := cgroup.For(c.Home.State()).Child(name)
	group.Remove()
	if err := group.Make(); err != nil {
		return err
	}
	if err := ensureNodeAccess(c.Home, n); err != nil {
		return err
	}
	peers := map[int]int{}
	for _, peer := range c.nodes() {
		if peer != n {
			peers[peer] = c.record(nodeName(peer)).Pid()
		}
	}
	wire := func(pid int) error { return wireNode(hub, pid, n, peers) }
	return c.launch(ctx, name, nil, []string{"node-init", name}, wire)
}
