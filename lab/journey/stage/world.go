package stage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Images that the journeys use.
type Images struct {
	Operator string
	// OperatorNext is an operator that renders pods otherwise, to upgrade to;
	// empty where there is none.
	OperatorNext string
	Ledger       string
	// Valkey and ValkeyOld are the newest and the oldest line tested; empty
	// means the operator's default.
	Valkey    string
	ValkeyOld string
	// ValkeySame is another reference of the newest, to roll to.
	ValkeySame string
}

// World is the Kubernetes cluster that all journeys share.
type World struct {
	Typed   kubernetes.Interface
	Dynamic dynamic.Interface
	Images  Images
	// StorageClass of the volumes; empty means the cluster's default.
	StorageClass string
	// Lab is the lab's program where the cluster is the lab, else empty. Only
	// through it can a journey reach into a worker.
	Lab string
	// Source is the directory of the operator's source, with config/ below it.
	Source     string
	Out        io.Writer
	kubeconfig string
	kubectl    string
}

// Connection says which cluster to use.
type Connection struct {
	Kubeconfig string
	// LabKubeconfig and LabBin are the lab's own; Lab is set when Kubeconfig is the lab's.
	LabKubeconfig string
	LabBin        string
}

// Connect makes the clients and finds kubectl. It does not ask the cluster yet.
func Connect(c Connection) (*World, error) {
	if _, err := os.Stat(c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("there is no cluster to use: %w (run `make lab-up`, or set KUBECONFIG)", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	config.Timeout = 0 // watches stay open; each call has a context
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	w := &World{Typed: typed, Dynamic: dynamicClient, Out: os.Stdout, kubeconfig: c.Kubeconfig}
	if same(c.Kubeconfig, c.LabKubeconfig) {
		w.Lab = filepath.Join(c.LabBin, "lab")
	}
	w.kubectl, err = findKubectl(c.LabBin)
	return w, err
}

func same(a, b string) bool {
	one, errOne := filepath.Abs(a)
	other, errOther := filepath.Abs(b)
	return errOne == nil && errOther == nil && one == other
}

func findKubectl(bin string) (string, error) {
	own := filepath.Join(bin, "kubectl")
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return "", errors.New("kubectl is neither in the lab's bin nor in PATH: run lab/build.sh or install it")
	}
	return path, nil
}

// Print writes to the narration. Nothing can be done about one that cannot be written.
func (w *World) Print(format string, args ...any) { _, _ = fmt.Fprintf(w.Out, format, args...) }

// seconds formats a duration for a narration.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
