// lab runs a real Kubernetes cluster on one machine, from programs built out
// of Go modules and images made of Debian packages.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"valkey.io/valkey-operator/lab/internal/cluster"
	"valkey.io/valkey-operator/lab/internal/home"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	h, err := home.Default()
	if err == nil {
		err = command(h).ExecuteContext(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func command(h home.Home) *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "A real Kubernetes cluster on one machine",
		Long: `A real Kubernetes cluster on one machine, without Docker.

Everything lies below $LAB (~/.cache/valkey-operator-lab where that is unset).`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		upCommand(h), downCommand(h), statusCommand(h), envCommand(h),
		nodeCommand(h, "node-start", "Start a node, again or for the first time", cluster.Cluster.NodeStart),
		nodeCommand(h, "node-stop", "Stop a node's programs in order", stopNode(false)),
		nodeCommand(h, "node-kill", "A node's power cut: all of it is killed at once", stopNode(true)),
		execCommand(h), imageCommand(h), imagesCommand(h), poolCommand(h), serversCommand(h), testenvCommand(h),
		footprintCommand(h), hubInitCommand(h), nodeInitCommand(h))
	return root
}

// theCluster reports its progress on stderr, with seconds since the start.
func theCluster(h home.Home) cluster.Cluster {
	return cluster.Cluster{Home: h, Say: progress()}
}

func progress() func(format string, args ...any) {
	start := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}
