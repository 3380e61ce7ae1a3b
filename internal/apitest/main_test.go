//go:build apiserver

package apitest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/controller"
)

// The API server of this package, and a client that may do everything there.
var (
	server *rest.Config
	admin  client.WithWatch
	scheme *runtime.Scheme
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(withServer(m.Run))
}

// withServer runs something with an API server that ends with it.
func withServer(run func() int) int {
	command := exec.Command(labProgram(), "testenv")
	command.Stderr = os.Stderr
	kubeconfig, stop, err := startServer(command)
	if err != nil {
		fmt.Fprintf(os.Stderr, "the API server does not start: %v; `make lab-build` builds it\n", err)
		return 1
	}
	defer stop()
	if err := connect(kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

func labProgram() string {
	home := os.Getenv("LAB")
	if home == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "lab"
		}
		home = filepath.Join(cache, "valkey-operator-lab")
	}
	return filepath.Join(home, "bin", "lab")
}

// startServer returns the path of a kubeconfig once the server is ready. The
// server ends when its input is closed, hence also when this process dies.
func startServer(command *exec.Cmd) (kubeconfig string, stop func(), err error) {
	input, err := command.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = input.Close()
		_ = command.Wait()
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, errors.New("it printed no kubeconfig")
	}
	return strings.TrimSpace(line), stop, nil
}

func connect(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the tests wait for nothing but the server
	settings, err := controller.ManagerOptions("")
	if err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(settings.Scheme); err != nil {
		return err
	}
	server, scheme = config, settings.Scheme
	if admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return errors.Join(installCRDs(), makeClasses(context.Background()))
}

// installCRDs applies the CRDs and waits until their kinds are served.
func installCRDs() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	files, err := filepath.Glob(shipped("crd", "valkey.io_*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("found no CRDs: %w", err)
	}
	for _, file := range files {
		crds, err := readManifests(file)
		if err != nil {
			return err
		}
		for _, crd := range crds {
			if err := install(ctx, crd); err != nil {
				return fmt.Errorf("installing %s: %w", file, err)
			}
			if err := established(ctx, crd.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

// install applies a manifest as `kubectl apply --server-side` does.
func install(ctx context.Context, object *unstructured.Unstructured) error {
	configuration := client.ApplyConfigurationFromUnstructured(object)
	return admin.Apply(ctx, configuration, client.FieldOwner("installer"), client.ForceOwnership)
}

func established(ctx context.Context, name string) error {
	for {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := admin.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
			return fmt.Errorf("waiting for %s: %w", name, err)
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return mapped(ctx, &crd)
			}
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("waiting for %s to be established: %w", name, err)
		}
	}
}

// mapped waits until discovery names the kind.
func mapped(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	kind := unstructured.UnstructuredList{}
	kind.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	kind.SetKind(crd.Spec.Names.ListKind)
	for {
		err := admin.List(ctx, &kind)
		if err == nil || !meta.IsNoMatchError(err) {
			return err
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", crd.Name, err)
		}
	}
}

// shipped is a path below config/.
func shipped(elements ...string) string {
	return filepath.Join(append([]string{"..", "..", "config"}, elements...)...)
}

// readManifests reads all objects of a YAML file.
func readManifests(file string) ([]*unstructured.Unstructured, error) {
	open, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = open.Close() }()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(open, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
