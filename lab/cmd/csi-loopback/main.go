// csi-loopback serves one half of the lab's CSI driver: the controller or a
// node.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"valkey.io/valkey-operator/lab/internal/loopback"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "csi-loopback ends")
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var dir, socket string
	root := &cobra.Command{Use: "csi-loopback", Short: "A CSI driver on sparse files", SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&dir, "pool", "", "directory of the volumes and of pool.json")
	root.PersistentFlags().StringVar(&socket, "socket", "", "socket to serve CSI on")

	var kubeconfig string
	controller := &cobra.Command{Use: "controller", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return loopback.ServeController(cmd.Context(), loopback.Pool{Dir: dir}, socket, kubeconfig)
	}}
	controller.Flags().StringVar(&kubeconfig, "kubeconfig", "", "provision claims through this kubeconfig")

	var name, registrations string
	node := &cobra.Command{Use: "node", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return loopback.ServeNode(cmd.Context(), loopback.Pool{Dir: dir}, name, socket, registrations)
	}}
	node.Flags().StringVar(&name, "name", "", "the node's name")
	node.Flags().StringVar(&registrations, "registration-dir", "", "the kubelet's plugins_registry")
	root.AddCommand(controller, node)
	return root
}
