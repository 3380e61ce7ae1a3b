package cluster

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"

	"valkey.io/valkey-operator/lab/internal/cgroup"
	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/images"
	"valkey.io/valkey-operator/lab/internal/supervise"
)

//go:embed config
var configFiles embed.FS

// nodeConfig is what the files in config/ are filled in with.
type nodeConfig struct {
	Name, IP, Pods    string
	Hub, AllPods, DNS string
	Dir, State, Bin   string
	Cgroup            string
	Crt, Key, CA      string
	PauseImage        string
}

// NodeInit is a node's first process: it makes the node's file system and
// keeps its programs running until ctx ends.
func NodeInit(ctx context.Context, h home.Home, name string) error {
	n, err := nodeNumber(name)
	if err != nil {
		return err
	}
	dir := h.State(name)
	// Nothing is mounted before the mounts are cut off from the machine's.
	if err := enter(name); err != nil {
		return err
	}
	if err := errors.Join(fakeSysctls(dir), nodeMounts(dir)); err != nil {
		return err
	}
	if err := waitAtGate(3); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	if err := writeNodeConfig(h, n); err != nil {
		return err
	}
	s := supervise.Supervisor{Bin: h.Bin(), LogDir: h.NodeLog(name), Services: nodeServices(ctx, h, n)}
	s.Run(ctx)
	return nil
}

// fakeSysctls lets the kubelet read that three settings are as it wants them:
// it would set them for the whole machine.
func fakeSysctls(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "sysctl"), 0o755); err != nil {
		return err
	}
	for file, value := range map[string]string{"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"} {
		fake := filepath.Join(dir, "sysctl", filepath.Base(file))
		if err := os.WriteFile(fake, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := bind(fake, "/proc/sys/"+file); err != nil {
			return err
		}
	}
	return nil
}

// nodeMounts gives the node the usual paths for itself: /run is lost at a
// restart as on a real machine, /var/lib and /var/log stay.
func nodeMounts(dir string) error {
	sub := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"var-lib", "var-log", "cgroup"} {
		if err := os.MkdirAll(sub(d), 0o755); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		// This namespace's /sys, with the machine's cgroups kept below it.
		func() error {
			return mount("/sys/fs/cgroup", sub("cgroup"), "", syscall.MS_BIND|syscall.MS_REC, "")
		},
		func() error { return mount("sysfs", "/sys", "sysfs", 0, "") },
		func() error {
			return mount(sub("cgroup"), "/sys/fs/cgroup", "", syscall.MS_BIND|syscall.MS_REC, "")
		},
		func() error { return syscall.Unmount(sub("cgroup"), syscall.MNT_DETACH) },
		func() error { return mount("tmpfs", "/run", "tmpfs", 0, "mode=755") },
		func() error { return bind(sub("var-lib"), "/var/lib") },
		func() error { return bind(sub("var-log"), "/var/log") },
		// Containers with mount propagation need shared mounts to start from.
		func() error { return mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, d := range []string{"/run/lock", "/run/csi", "/var/lib/kubelet/plugins_registry"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func writeNodeConfig(h home.Home, n int) error {
	name, store := nodeName(n), pkiStore(h)
	c := nodeConfig{
		Name: name, IP: nodeIP(n), Pods: podsOf(n),
		Hub: hubIP, AllPods: podCIDR, DNS: dnsServiceIP,
		Dir: h.State(name), State: h.State(), Bin: h.Bin(),
		Cgroup: string(cgroup.For(h.State()).Child(name)),
		Crt:    store.Crt(servingPair(name)), Key: store.Key(servingPair(name)), CA: store.Crt(caRequest.Name),
		PauseImage: images.Pause,
	}
	templates, err := template.ParseFS(configFiles, "config/*")
	if err != nil {
		return err
	}
	for file, in := range map[string]string{
		"containerd.toml": ".", "kubelet.yaml": ".", "kube-proxy.yaml": ".",
		"hosts.toml": "certs.d/_default", "lab.conflist": "cni",
	} {
		path := h.State(name, in, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		var text strings.Builder
		if err := templates.ExecuteTemplate(&text, file, c); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func nodeServices(ctx context.Context, h home.Home, n int) []supervise.Service {
	name := nodeName(n)
	return []supervise.Service{
		{
			Name: "containerd", Args: []string{"containerd", "--config=" + h.State(name, "containerd.toml")},
			Ready: listens(ctx, "/run/containerd/containerd.sock"),
		},
		{
			Name: "csi-node", Args: []string{
				"csi-loopback", "node", "--name=" + name, "--pool=" + h.Pool(),
				"--socket=/run/csi/csi.sock", "--registration-dir=/var/lib/kubelet/plugins_registry",
			},
			Ready: listens(ctx, "/run/csi/csi.sock"),
		},
		{Name: "kube-proxy", Args: []string{"kube-proxy", "--config=" + h.State(name, "kube-proxy.yaml")}, Ready: func() bool { return servicesReachable(ctx) }},
		{Name: "kubelet", Args: []string{
			"kubelet", "--config=" + h.State(name, "kubelet.yaml"),
			"--kubeconfig=" + h.State(name, "kubelet.kubeconfig"), "--hostname-override=" + name, "--node-ip=" + nodeIP(n),
			fmt.Sprintf("--node-labels=topology.kubernetes.io/zone=z%d", n),
		}},
	}
}

// servicesReachable holds the kubelet back on a node that has pods to bring
// back: they expect to reach services at once. A new node has none, and its
// proxy in turn waits for the kubelet to register the node. The proxy's own
// health answer comes before its first rules, hence the look at the rules.
func servicesReachable(ctx context.Context) bool {
	if pods, _ := filepath.Glob("/var/lib/kubelet/pods/*"); len(pods) == 0 {
		return true
	}
	out, err := exec.CommandContext(ctx, "nft", "list", "map", "ip", "kube-proxy", "service-ips").Output()
	return err == nil && strings.Contains(string(out), apiServiceIP+" ")
}

// listens asks whether a socket has a server: its file may be left from before.
func listens(ctx context.Context, path string) func() bool {
	return func() bool {
		c, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}
}
