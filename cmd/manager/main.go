// manager is the operator: it runs the controllers of ValkeyCluster and
// ValkeyNode. This file holds flags, wiring and start; it makes no decision.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"valkey.io/valkey-operator/internal/controller"
)

// version is set when the program is built.
var version = "dev"

const (
	// requestsPerSecond and requestBurst bound the load on the API server; the
	// server's own priority and fairness is the finer instrument.
	requestsPerSecond = 200
	requestBurst      = 400
)

type options struct {
	agentImage    string
	namespace     string
	metricsAddr   string
	probeAddr     string
	leaderElect   bool
	leaderElectNS string
	workers       int
	logLevel      slog.Level
}

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:          "manager",
		Short:        "Runs Valkey clusters on Kubernetes",
		Version:      version,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.agentImage, "agent-image", os.Getenv("OPERATOR_IMAGE"), "image that members copy their agent from: the operator's own (default: $OPERATOR_IMAGE)")
	flags.StringVar(&o.namespace, "namespace", "", "look after this namespace only (default: all)")
	flags.StringVar(&o.metricsAddr, "metrics-bind-address", ":8080", "address of the metrics, 0 for none")
	flags.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "let one of several managers work")
	flags.StringVar(&o.leaderElectNS, "leader-elect-namespace", "", "namespace of the lease (default: the manager's own)")
	flags.IntVar(&o.workers, "workers", 8, "clusters, and members, worked on at a time")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "DEBUG, INFO, WARN or ERROR")
	return cmd
}

func run(cmd *cobra.Command, o options) error {
	if o.agentImage == "" {
		return fmt.Errorf("--agent-image (or $OPERATOR_IMAGE) is required: members copy their agent from that image; set it to the operator's own image")
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel})))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	manager, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := controller.NewClusterReconciler(manager, o.agentImage).SetupWithManager(cmd.Context(), manager, o.workers); err != nil {
		return fmt.Errorf("setting up the cluster controller: %w", err)
	}
	if err := controller.NewNodeReconciler(manager).SetupWithManager(cmd.Context(), manager, o.workers); err != nil {
		return fmt.Errorf("setting up the node controller: %w", err)
	}
	return manager.Start(cmd.Context())
}

func newManager(config *rest.Config, o options) (ctrl.Manager, error) {
	config.QPS, config.Burst = requestsPerSecond, requestBurst
	settings, err := controller.ManagerOptions(o.namespace)
	if err != nil {
		return nil, err
	}
	settings.Metrics = server.Options{BindAddress: o.metricsAddr}
	settings.HealthProbeBindAddress = o.probeAddr
	settings.LeaderElection = o.leaderElect
	settings.LeaderElectionID = "valkey-operator.valkey.io"
	settings.LeaderElectionNamespace = o.leaderElectNS
	settings.LeaderElectionReleaseOnCancel = true
	manager, err := ctrl.NewManager(config, settings)
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{manager.AddHealthzCheck, manager.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("adding health checks: %w", err)
		}
	}
	return manager, nil
}
