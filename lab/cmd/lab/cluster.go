package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"valkey.io/valkey-operator/lab/internal/cluster"
	"valkey.io/valkey-operator/lab/internal/footprint"
	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/images"
)

func upCommand(h home.Home) *cobra.Command {
	o := cluster.Options{}
	c := &cobra.Command{
		Use:   "up",
		Short: "Start what does not run yet, and wait until it is ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab := theCluster(h)
			if err := lab.Check(cmd.Context(), o.Port); err != nil {
				return err
			}
			if err := h.Prepare(); err != nil {
				return err
			}
			if _, err := images.Ensure(cmd.Context(), h, false, lab.Say); err != nil {
				return err
			}
			if err := lab.Up(cmd.Context(), o); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "         ready; for this shell: eval \"$(%s env)\"\n", h.Bin("lab"))
			return nil
		},
	}
	c.Flags().IntVar(&o.Nodes, "nodes", 1, "number of nodes; more than run already are added")
	c.Flags().IntVar(&o.Port, "port", 6443, "port of 127.0.0.1 for the API server")
	return c
}

func downCommand(h home.Home) *cobra.Command {
	purge := false
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop everything and check that nothing is left; the state stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab := theCluster(h)
			lab.Say("stopping")
			if err := lab.Down(cmd.Context()); err != nil {
				return err
			}
			lab.Say("down, nothing is left running")
			if purge {
				return h.Purge()
			}
			return nil
		},
	}
	c.Flags().BoolVar(&purge, "purge", false, "also forget the cluster: all state but the images")
	return c
}

func statusCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say what runs; fails where the lab is down",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := theCluster(h).Status()
			fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func envCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: `Print a shell's settings: eval "$(lab env)"`,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "export LAB=%s KUBECONFIG=%s PATH=%s:\"$PATH\"\n",
				quote(h.Root), quote(h.Kubeconfig()), quote(h.Bin()))
			return err
		},
	}
}

func nodeCommand(h home.Home, name, short string, do func(cluster.Cluster, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return do(theCluster(h), cmd.Context(), args[0])
		},
	}
}

func stopNode(powerCut bool) func(cluster.Cluster, context.Context, string) error {
	return func(c cluster.Cluster, ctx context.Context, name string) error {
		return c.NodeStop(ctx, name, powerCut)
	}
}

func execCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:   "exec hub|NODE -- COMMAND...",
		Short: "Run a command inside the hub or a node",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return theCluster(h).Exec(args[0], args[1:])
		},
	}
}

func footprintCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:   "footprint",
		Short: "List what a lab could leave behind on this machine, to compare before and after",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			for _, line := range footprint.Machine(h.Bin()) {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
		},
	}
}

func hubInitCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:    "hub-init",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return cluster.HubInit(cmd.Context(), h) },
	}
}

func nodeInitCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:    "node-init NAME",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return cluster.NodeInit(cmd.Context(), h, args[0]) },
	}
}
