package arch

// What a package may import is what keeps its promise: a planner that cannot
// reach the network cannot ask it. Standard packages are banned as direct
// imports, Kubernetes ones wherever they come in.
type rule struct {
	// packages of this module that the rule is about; /... includes those below.
	packages string
	// ours are the packages of this module that may be imported directly.
	ours []string
	// direct are packages that must not be imported directly.
	direct []string
	// closure are beginnings of packages that must not come in at all.
	closure []string
	// outside, if not empty, are the only beginnings of packages outside this
	// module and the standard library that may be imported directly.
	outside []string
	// calls are functions that must not be called.
	calls []string
}

var (
	kubernetes = []string{"k8s.io/", "sigs.k8s.io/"}
	// These talk to an API server.
	clients = []string{"sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes/typed", "k8s.io/client-go/dynamic", "k8s.io/client-go/informers"}
	// These are data: types and apply configurations.
	nouns = []string{"k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/client-go/applyconfigurations/", "k8s.io/utils/"}
	// Whoever decides sees facts and nothing else: no world to ask, no clock,
	// no dice, nobody to tell.
	world = []string{
		"context", "net", "net/http", "os", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog",
		"github.com/go-logr/logr", "k8s.io/klog/v2",
	}
	clock = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After"}
)

var rules = []rule{
	{
		packages: "api/v1alpha1",
		outside:  []string{"k8s.io/apimachinery/", "k8s.io/api/"},
	},
	{
		packages: "internal/valkey",
		closure:  kubernetes,
	},
	{
		packages: "internal/valkey/valkeytest",
		ours:     []string{"internal/valkey"},
		closure:  kubernetes,
	},
	{
		packages: "internal/agent/...",
		ours:     []string{"internal/agent/...", "internal/valkey"},
		closure:  kubernetes,
	},
	{
		packages: "internal/name",
		ours:     []string{"internal/agent/protocol"},
		closure:  kubernetes,
	},
	{
		packages: "internal/state",
		ours:     []string{"api/v1alpha1", "internal/agent/protocol", "internal/name", "internal/valkey"},
		direct:   world,
		closure:  clients,
		outside:  nouns,
		calls:    clock,
	},
	{
		packages: "internal/build",
		ours:     []string{"api/v1alpha1", "internal/agent/protocol", "internal/name", "internal/state", "internal/valkey"},
		direct:   world,
		closure:  clients,
		outside:  nouns,
		calls:    clock,
	},
	{
		packages: "internal/plan/...",
		ours: []string{
			"api/v1alpha1", "internal/agent/protocol", "internal/build", "internal/name", "internal/plan", "internal/plan/volume",
			"internal/state", "internal/valkey",
		},
		direct:  world,
		closure: clients,
		outside: nouns,
		calls:   clock,
	},
	{
		packages: "internal/report",
		ours:     []string{"api/v1alpha1", "internal/build", "internal/name", "internal/plan/...", "internal/state"},
		direct:   world,
		closure:  clients,
		outside:  nouns,
		calls:    clock,
	},
	{
		packages: "internal/observe",
		ours:     []string{"api/v1alpha1", "internal/agent/protocol", "internal/name", "internal/state", "internal/valkey"},
	},
	{
		packages: "internal/apply",
		ours:     []string{"api/v1alpha1", "internal/agent/protocol", "internal/name", "internal/plan", "internal/state", "internal/valkey"},
	},
	{
		packages: "internal/controller",
		ours: []string{
			"api/v1alpha1", "internal/apply", "internal/build", "internal/name", "internal/observe", "internal/plan/...",
			"internal/report", "internal/state", "internal/valkey",
		},
		// It may pass a dialler on; which slots belong where is none of its business.
		calls: []string{"valkey.ShardSlots", "valkey.ParseSlots", "valkey.ParseNodeTable", "valkey.KeySlot"},
	},
	{
		packages: "internal/arch",
	},
	{
		packages: "internal/apitest",
	},
	{
		packages: "cmd/manager",
		ours:     []string{"api/v1alpha1", "internal/..."},
	},
	{
		packages: "cmd/agent",
		ours:     []string{"internal/agent/...", "internal/valkey"},
		closure:  kubernetes,
	},
}

// clientFile is the one file that may import the Valkey client library.
const (
	clientFile    = "internal/valkey/dial.go"
	clientLibrary = "github.com/valkey-io/valkey-go"
)
