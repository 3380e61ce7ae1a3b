package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"valkey.io/valkey-operator/lab/internal/debian"
	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/images"
	"valkey.io/valkey-operator/lab/internal/loopback"
	"valkey.io/valkey-operator/lab/internal/registry"
	"valkey.io/valkey-operator/lab/internal/testenv"
)

func imageCommand(h home.Home) *cobra.Command {
	archive := ""
	c := &cobra.Command{
		Use:   "image REF PATH [KEY=VALUE...] | image --from-oci ARCHIVE REF...",
		Short: "Put an image into the lab's registry",
		Long: `Put an image into the lab's registry, where every node finds it at once under
any registry's name. PATH is a root file system or one static binary; the keys
are entrypoint, cmd and env (repeat for lists), user, workdir and volume.
A new image under an old reference is pulled by imagePullPolicy Always only.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := h.Prepare(); err != nil {
				return err
			}
			digest, err := addImage(registry.Store{Dir: h.Images()}, archive, args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), args[0], digest)
			return err
		},
	}
	c.Flags().StringVar(&archive, "from-oci", "", "take the image of this OCI archive (a tar)")
	return c
}

func addImage(store registry.Store, archive string, args []string) (digest string, err error) {
	if archive != "" {
		return store.Load(archive, args...)
	}
	if len(args) < 2 {
		return "", errors.New("an image needs REF and PATH, or --from-oci ARCHIVE and REF")
	}
	config, err := registry.ParseConfig(args[2:])
	if err != nil {
		return "", err
	}
	return store.Add(args[1], config, args[0])
}

func imagesCommand(h home.Home) *cobra.Command {
	refresh := false
	c := &cobra.Command{
		Use:   "images",
		Short: "Make the lab's own images and print what they are made of",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := h.Prepare(); err != nil {
				return err
			}
			pins, err := images.Ensure(cmd.Context(), h, refresh, progress())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), pins)
			return err
		},
	}
	c.Flags().BoolVar(&refresh, "refresh", false, "ask Debian for its current Valkey")
	return c
}

func serversCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:   "servers",
		Short: "Print directories of Valkey programs that run on this machine, as LINE=DIRECTORY",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, release := range debian.Releases {
				root, err := debian.Ensure(cmd.Context(), h, release, false, progress())
				if err != nil {
					return err
				}
				dir, err := root.Servers(h)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s=%s\n", release.Line, dir)
			}
			return nil
		},
	}
}

func poolCommand(h home.Home) *cobra.Command {
	pool := loopback.Pool{Dir: h.Pool()}
	get := &cobra.Command{
		Use:   "get",
		Short: "Print the settings in force",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := pool.Describe()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", b)
			return err
		},
	}
	set := &cobra.Command{
		Use:   "set JSON|-",
		Short: "Replace the settings; {} brings the defaults back",
		Long: `Replace the settings at once for all calls that follow; - reads them from
standard input. Unknown or malformed fields are refused, and counts of faults
that act a number of times start anew. {} brings the defaults back.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b := []byte(args[0])
			if args[0] == "-" {
				var err error
				if b, err = io.ReadAll(cmd.InOrStdin()); err != nil {
					return err
				}
			}
			return pool.Set(b)
		},
	}
	c := &cobra.Command{Use: "pool", Short: "Limits and faults of the volumes"}
	c.AddCommand(get, set)
	return c
}

func testenvCommand(h home.Home) *cobra.Command {
	return &cobra.Command{
		Use:   "testenv",
		Short: "Run an API server alone, for tests, until standard input closes",
		Long: `Run etcd and an API server on free ports of 127.0.0.1. The path of a kubeconfig
is printed on standard output once the server is ready. It ends, and deletes
everything, when standard input closes or on SIGTERM. Needs no root and no lab.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := testenv.Start(cmd.Context(), h)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), server.Kubeconfig)
			closed := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				close(closed)
			}()
			select {
			case err = <-server.Ended():
			case <-closed:
			case <-cmd.Context().Done():
			}
			return errors.Join(err, server.Stop())
		},
	}
}
