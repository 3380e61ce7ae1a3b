package cluster

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/registry"
	"valkey.io/valkey-operator/lab/internal/supervise"
)

// Descriptors that the launcher hands to the hub.
const (
	hubPortalFD = 3 + iota // listens where the machine reaches the API server
	hubLockFD              // listens on the machine-wide lock's name
	hubGateFD
)

// HubInit is the control plane's first process: it keeps its programs running
// until ctx ends, serves the image registry to the nodes and passes
// connections from the machine to the API server.
func HubInit(ctx context.Context, h home.Home) error {
	if err := enter("hub"); err != nil {
		return err
	}
	if err := waitAtGate(hubGateFD); err != nil {
		return err
	}
	portal, err := inherited(hubPortalFD)
	if err != nil {
		return err
	}
	lock, err := inherited(hubLockFD)
	if err != nil {
		return err
	}
	images, err := new(net.ListenConfig).Listen(ctx, "tcp", hubIP+":5000")
	if err != nil {
		return err
	}
	go forward(ctx, portal, hubIP+":6443")
	go answerClaims(lock, h)
	server := http.Server{Handler: registry.Store{Dir: h.Images()}.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(images) }()
	s := supervise.Supervisor{Bin: h.Bin(), LogDir: h.Log(), Services: hubServices(ctx, h)}
	s.Run(ctx)
	return nil
}

// inherited is the listener that came with a descriptor. The descriptor itself
// is closed: it would be passed on to every program that is started here.
func inherited(fd uintptr) (net.Listener, error) {
	f := os.NewFile(fd, "listener")
	defer f.Close()
	return net.FileListener(f)
}

// forward passes every connection on, both ways, until the listener closes.
func forward(ctx context.Context, l net.Listener, to string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go pipe(ctx, c, to)
	}
}

func pipe(ctx context.Context, c net.Conn, to string) {
	defer c.Close()
	up, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		_, _ = io.Copy(up, c)
		if half, ok := up.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(c, up)
}

// answersOK asks a URL of this host, whose certificate is not looked at: the
// question is only whether the server is up.
func answersOK(ctx context.Context, url string) func() bool {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing is sent and nothing believed
	}}
	return func() bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		r, err := client.Do(request)
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}
}

func hubServices(ctx context.Context, h home.Home) []supervise.Service {
	socket := h.State("hub", "csi.sock")
	csi := []string{
		"--csi-address=" + socket, "--kubeconfig=" + h.State("csi.kubeconfig"),
		"--retry-interval-max=30s",
	} // five minutes by default
	return []supervise.Service{
		{Name: "etcd", Args: etcdArgs(h), Ready: answersOK(ctx, "http://127.0.0.1:2379/health")},
		{Name: "kube-apiserver", Args: apiserverArgs(h), Ready: answersOK(ctx, "https://127.0.0.1:6443/readyz")},
		{Name: "kube-controller-manager", Args: controllerManagerArgs(h)},
		{Name: "kube-scheduler", Args: []string{
			"kube-scheduler", "--kubeconfig=" + h.State("scheduler.kubeconfig"),
			"--authentication-kubeconfig=" + h.State("scheduler.kubeconfig"),
			"--authorization-kubeconfig=" + h.State("scheduler.kubeconfig"),
			"--bind-address=127.0.0.1", "--leader-elect=false",
		}},
		{Name: "csi-controller", Args: []string{
			"csi-loopback", "controller", "--pool=" + h.Pool(), "--socket=" + socket,
			"--kubeconfig=" + h.State("csi.kubeconfig"),
		}, Ready: listens(ctx, socket)},
		// As storage vendors ship it: its own defaults, ten volumes at a time and five
		// requests a second, would be all that a growth of many volumes measures.
		{Name: "csi-resizer", Args: append([]string{"csi-resizer", "--workers=100", "--kube-api-qps=50", "--kube-api-burst=100"}, csi...)},
		{Name: "csi-attacher", Args: append([]string{"csi-attacher"}, csi...)},
	}
}

func etcdArgs(h home.Home) []string {
	return []string{
		"etcd", "--name=lab", "--data-dir=" + h.State("hub", "etcd"),
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=lab=http://127.0.0.1:2380",
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

func apiserverArgs(h home.Home) []string {
	store := pkiStore(h)
	return []string{
		"kube-apiserver",
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0", "--advertise-address=" + hubIP, "--secure-port=6443",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + store.Crt("ca"),
		"--tls-cert-file=" + store.Crt("apiserver"), "--tls-private-key-file=" + store.Key("apiserver"),
		"--kubelet-client-certificate=" + store.Crt("apiserver-kubelet"),
		"--kubelet-client-key=" + store.Key("apiserver-kubelet"),
		"--kubelet-certificate-authority=" + store.Crt("ca"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + h.State("pki", "sa.pub"),
		"--service-account-signing-key-file=" + store.Key("sa"),
		"--requestheader-client-ca-file=" + store.Crt("front-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + store.Crt("front"), "--proxy-client-key-file=" + store.Key("front"),
		// The hub has no kube-proxy: reach webhooks and aggregated APIs by endpoint.
		"--enable-aggregator-routing=true",
		// A lost node's pods are evicted after seconds, not five minutes.
		"--default-not-ready-toleration-seconds=20", "--default-unreachable-toleration-seconds=20",
	}
}

func controllerManagerArgs(h home.Home) []string {
	store := pkiStore(h)
	return []string{
		"kube-controller-manager",
		"--kubeconfig=" + h.State("kcm.kubeconfig"),
		"--authentication-kubeconfig=" + h.State("kcm.kubeconfig"),
		"--authorization-kubeconfig=" + h.State("kcm.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false", "--use-service-account-credentials",
		"--service-account-private-key-file=" + store.Key("sa"), "--root-ca-file=" + store.Crt("ca"),
		"--cluster-signing-cert-file=" + store.Crt("ca"), "--cluster-signing-key-file=" + store.Key("ca"),
		// A silent node is NotReady after 16 s, not 50.
		"--node-monitor-grace-period=16s", "--node-monitor-period=2s",
	}
}
