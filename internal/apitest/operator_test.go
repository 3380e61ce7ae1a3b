//go:build apiserver

package apitest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"valkey.io/valkey-operator/internal/controller"
)

// agentImage is the image that the operator's pods are given; none is pulled.
const agentImage = "valkey.io/valkey-operator:test"

// operator is a running manager with both controllers, as cmd/manager runs
// them, but for the servers and agents, which are a world's.
type operator struct {
	clusters *controller.ClusterReconciler
	nodes    *controller.NodeReconciler
	requests *requests
	stop     func()
}

// operate runs an operator of a world's namespace as somebody, until it is
// stopped or the test ends.
func (w *world) operate(as *rest.Config) *operator {
	w.t.Helper()
	settings, err := controller.ManagerOptions(w.namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.operateWith(as, settings)
}

func (w *world) operateWith(as *rest.Config, settings ctrl.Options) *operator {
	w.t.Helper()
	recorded := &requests{}
	config := rest.CopyConfig(as)
	config.Wrap(recorded.wrap)
	settings.Metrics = metricsserver.Options{BindAddress: "0"}
	settings.Controller.SkipNameValidation = new(true) // one process runs many
	manager, err := ctrl.NewManager(config, settings)
	if err != nil {
		w.t.Fatalf("building the manager: %v", err)
	}
	o := &operator{
		clusters: controller.NewClusterReconciler(manager, agentImage),
		nodes:    controller.NewNodeReconciler(manager),
		requests: recorded,
	}
	o.clusters.Dial, o.clusters.Observer.Dial, o.clusters.Observer.Ask = w.dial, w.dial, w.ask
	o.nodes.Observer.Ask = w.ask
	ctx, cancel := context.WithCancel(context.Background())
	if err := o.clusters.SetupWithManager(ctx, manager, 2); err != nil {
		w.t.Fatalf("setting up the cluster controller: %v", err)
	}
	if err := o.nodes.SetupWithManager(ctx, manager, 4); err != nil {
		w.t.Fatalf("setting up the node controller: %v", err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := manager.Start(ctx); err != nil {
			w.t.Errorf("the manager ended: %v", err)
		}
	})
	o.stop = func() {
		cancel()
		ended.Wait()
	}
	w.t.Cleanup(o.stop)
	return o
}

// requests records what is asked of the API server.
type requests struct {
	mutex sync.Mutex
	made  []request
}

type request struct {
	method, path string
	status       int
}

func (r request) String() string { return fmt.Sprintf("%s %s: %d", r.method, r.path, r.status) }

// reading requests change nothing.
func (r request) reading() bool { return r.method == http.MethodGet }

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(asked *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(asked)
		made := request{method: asked.Method, path: asked.URL.Path}
		if answer != nil {
			made.status = answer.StatusCode
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.made = append(r.made, made)
		return answer, err
	})
}

// roundTripper is a function that makes requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(asked *http.Request) (*http.Response, error) { return f(asked) }

// forget drops what was recorded.
func (r *requests) forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.made = nil
}

// writes are the requests that were more than reading.
func (r *requests) writes() []string {
	return r.which(func(made request) bool { return !made.reading() })
}

// forbidden are the requests that the API server refused for want of a right.
func (r *requests) forbidden() []string {
	return r.which(func(made request) bool {
		return made.status == http.StatusForbidden || made.status == http.StatusUnauthorized
	})
}

func (r *requests) which(wanted func(request) bool) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var found []string
	for _, made := range r.made {
		if wanted(made) {
			found = append(found, made.String())
		}
	}
	return found
}

// count is how many requests were recorded whose text holds a part.
func (r *requests) count(part string) int {
	return len(slices.DeleteFunc(r.which(func(request) bool { return true }), func(text string) bool {
		return !strings.Contains(text, part)
	}))
}
