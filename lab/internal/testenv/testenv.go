// Package testenv runs an API server with its etcd and nothing else on this
// machine's loopback, for tests that need Kubernetes' API and no cluster: no
// pod ever runs, no controller reacts.
//
// Everything is below one temporary directory, which is deleted at the end.
package testenv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/pki"
	"valkey.io/valkey-operator/lab/internal/wait"
)

// readyLimit is generous: a machine that compiles beside it takes ten times
// the two seconds that a start usually takes.
const readyLimit = 5 * time.Minute

// Server is a running API server.
type Server struct {
	Kubeconfig string // of a user who may do everything
	dir        string
	programs   []program
	ended      chan error // programs that end, in that order
}

// program is one that was started; done is closed when it has ended.
type program struct {
	*exec.Cmd
	done chan struct{}
}

// Start starts etcd and the API server and returns when /readyz says yes. On
// an error nothing is left; else the caller calls Stop. The programs end with
// this process, however it ends.
func Start(ctx context.Context, h home.Home) (*Server, error) {
	dir, err := os.MkdirTemp("", "lab-testenv-")
	if err != nil {
		return nil, err
	}
	s := &Server{Kubeconfig: filepath.Join(dir, "kubeconfig"), dir: dir, ended: make(chan error, 2)}
	if err := s.start(ctx, h); err != nil {
		return nil, errors.Join(err, s.explain(), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, h home.Home) error {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	url := func(i int) string { return "http://127.0.0.1:" + ports[i] }
	store := pki.Store{Dir: filepath.Join(s.dir, "pki")}
	server := "https://127.0.0.1:" + ports[2]
	if err := s.access(store, server); err != nil {
		return err
	}
	err = s.run(h, "etcd", "--name=test", "--data-dir="+filepath.Join(s.dir, "etcd"),
		"--listen-client-urls="+url(0), "--advertise-client-urls="+url(0),
		"--listen-peer-urls="+url(1), "--initial-advertise-peer-urls="+url(1), "--initial-cluster=test="+url(1),
		"--unsafe-no-fsync", "--log-level=warn")
	if err != nil {
		return err
	}
	err = s.run(h, "kube-apiserver", "--etcd-servers="+url(0),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--secure-port="+ports[2], "--service-cluster-ip-range=10.93.0.0/24",
		"--allow-privileged=true", "--authorization-mode=RBAC",
		// Nobody makes service accounts here, and no pod ever runs.
		"--disable-admission-plugins=ServiceAccount",
		"--client-ca-file="+store.Crt("ca"), "--tls-cert-file="+store.Crt("server"), "--tls-private-key-file="+store.Key("server"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+filepath.Join(store.Dir, "sa.pub"), "--service-account-signing-key-file="+store.Key("sa"))
	if err != nil {
		return err
	}
	return s.waitReady(ctx, store, server)
}

func (s *Server) access(store pki.Store, server string) error {
	ca, err := store.Ensure(pki.Request{Name: "ca", CN: "lab-test-ca"})
	if err != nil {
		return err
	}
	for _, r := range []pki.Request{
		{Name: "server", CN: "kube-apiserver", Signer: ca, Hosts: []string{"127.0.0.1", "localhost"}},
		{Name: "admin", CN: "lab:test", Orgs: []string{"system:masters"}, Signer: ca},
		{Name: "sa", CN: "service-accounts"},
	} {
		if _, err := store.Ensure(r); err != nil {
			return err
		}
	}
	if _, err := store.PublicKey("sa"); err != nil {
		return err
	}
	return store.Write(pki.Kubeconfig{File: s.Kubeconfig, Server: server, CA: "ca", User: "admin"})
}

// run starts a program that the kernel kills when this process ends.
func (s *Server) run(h home.Home, name string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(h.Bin(name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error), make(chan struct{})
	go func() {
		// The death signal comes when the thread ends that started the program:
		// keep that thread until the program has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.ended <- ended(name, cmd.Wait())
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%s does not start (run the lab's build.sh): %w", name, err)
	}
	s.programs = append(s.programs, program{cmd, done})
	return nil
}

func ended(name string, err error) error {
	if err == nil {
		return errors.New(name + " ended")
	}
	return fmt.Errorf("%s ended: %w", name, err)
}

func (s *Server) waitReady(ctx context.Context, store pki.Store, server string) error {
	cert, err := tls.LoadX509KeyPair(store.Crt("admin"), store.Key("admin"))
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(store.Crt("ca"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
	}}
	var died error
	ready := func() bool {
		select {
		case died = <-s.ended:
			return true
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
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
	if !wait.Until(ctx, readyLimit, ready) {
		return fmt.Errorf("the API server is not ready after %v", readyLimit)
	}
	return died
}

// explain gives the end of the API server's log, since the directory goes.
func (s *Server) explain() error {
	b, err := os.ReadFile(filepath.Join(s.dir, "kube-apiserver.log"))
	if err != nil {
		return nil //nolint:nilerr // without a log there is nothing to explain
	}
	return fmt.Errorf("the end of its log:\n%s", b[max(0, len(b)-2000):])
}

// Ended yields an error when one of the programs ends by itself.
func (s *Server) Ended() <-chan error { return s.ended }

// Stop ends the programs and deletes all they wrote.
func (s *Server) Stop() error {
	for _, p := range slices.Backward(s.programs) {
		_ = p.Process.Kill() // its state is thrown away
		<-p.done
	}
	return os.RemoveAll(s.dir)
}

// freePorts are ports of 127.0.0.1 that nobody listens on.
func freePorts(ctx context.Context, n int) (ports []string, err error) {
	var listeners []net.Listener
	defer func() { // only now, so that no port comes twice
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
	}()
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
