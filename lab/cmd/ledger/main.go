// Command ledger keeps an account of what a Valkey cluster acknowledged. It
// prints one line of JSON on stdout; progress goes to stderr. User and
// password come from VALKEY_USERNAME and VALKEY_PASSWORD.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/valkey-io/valkey-go"

	"valkey.io/valkey-operator/lab/ledger"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "ledger",
		Short:         "An account of what a Valkey cluster acknowledged",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	t := &ledger.Target{Username: os.Getenv("VALKEY_USERNAME"), Password: os.Getenv("VALKEY_PASSWORD")}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&t.Addresses, "addr", []string{"127.0.0.1:6379"}, "addresses to ask first")
	flags.BoolVar(&t.TLS, "tls", false, "use TLS")
	flags.StringVar(&t.CA, "ca", "", "file of the certificate authority")
	flags.BoolVar(&t.Insecure, "insecure", false, "do not verify the server's certificate")
	root.AddCommand(runCommand(t), loadCommand(t), verifyCommand(t), fillCommand(t), nodesCommand(t), sleepCommand(), stopCommand())
	return root
}

// with connects, calls do and prints what it returns.
func with(cmd *cobra.Command, t *ledger.Target, do func(valkey.Client) (any, error)) error {
	client, err := t.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	result, err := do(client)
	if err != nil {
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
}

func runCommand(t *ledger.Target) *cobra.Command {
	r, length := ledger.DefaultRun(), time.Duration(0)
	c := &cobra.Command{
		Use:   "run",
		Short: "Write through all slots until SIGTERM or --for, read back, report",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, t, func(client valkey.Client) (any, error) {
				ctx := cmd.Context()
				if length > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, length)
					defer cancel()
				}
				return r.Record(ctx, client, func() { fmt.Fprintln(os.Stderr, "writing") })
			})
		},
	}
	flags := c.Flags()
	flags.IntVar(&r.Rate, "rate", r.Rate, "writes a second, all writers together")
	flags.IntVar(&r.Writers, "writers", r.Writers, "writers; each has one request in flight")
	flags.IntVar(&r.Keys, "keys", r.Keys, "keys, spread evenly over the slots")
	flags.IntVar(&r.Size, "size", r.Size, "bytes of padding in a value")
	flags.DurationVar(&r.Timeout, "timeout", r.Timeout, "of one write")
	flags.StringVar(&r.Prefix, "prefix", r.Prefix, "of every key")
	flags.IntVar(&r.Replicas, "replicas", r.Replicas, "replicas that must have a write before it counts (WAIT)")
	flags.DurationVar(&length, "for", 0, "stop after this time (0: at SIGTERM)")
	return c
}

func loadCommand(t *ledger.Target) *cobra.Command {
	n := 0
	c := &cobra.Command{
		Use:   "load",
		Short: "Write --keys keys, k:0 => v:0 and so on",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, t, func(client valkey.Client) (any, error) {
				return ledger.Load(cmd.Context(), client, n, tenths(n)), nil
			})
		},
	}
	c.Flags().IntVar(&n, "keys", 100_000, "keys")
	return c
}

func verifyCommand(t *ledger.Target) *cobra.Command {
	n := 0
	c := &cobra.Command{
		Use:   "verify",
		Short: "Read back what load wrote",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, t, func(client valkey.Client) (any, error) {
				return ledger.Verify(cmd.Context(), client, n, tenths(n)), nil
			})
		},
	}
	c.Flags().IntVar(&n, "keys", 100_000, "keys")
	return c
}

// tenths writes the share done to stderr, at each tenth: "progress 30".
func tenths(n int) ledger.Progress {
	said := 0
	return func(done int) {
		if tenth := done * 10 / max(n, 1); tenth > said {
			said = tenth
			fmt.Fprintln(os.Stderr, "progress", tenth*10)
		}
	}
}

func fillCommand(t *ledger.Target) *cobra.Command {
	f, mib := ledger.Fill{}, int64(0)
	c := &cobra.Command{
		Use:   "fill",
		Short: "Write --mib of values that do not compress",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Bytes = mib << 20
			return with(cmd, t, func(client valkey.Client) (any, error) { return f.Do(cmd.Context(), client), nil })
		},
	}
	c.Flags().Int64Var(&mib, "mib", 256, "MiB of values")
	c.Flags().IntVar(&f.Size, "size", 4096, "bytes of a value")
	c.Flags().BoolVar(&f.UntilFull, "until-full", false, "stop at the first MISCONF answer (a full disk)")
	return c
}

func nodesCommand(t *ledger.Target) *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "Ask each address given for its own view",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(t.Ask(cmd.Context()))
		},
	}
}

func sleepCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sleep",
		Short: "Wait for SIGTERM: a pod to exec in",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, _ []string) { <-cmd.Context().Done() },
	}
}

func stopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Send SIGTERM to process 1: for kubectl exec, since the image has no shell",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return syscall.Kill(1, syscall.SIGTERM) },
	}
}
