// Command journey proves the operator on a real Kubernetes: a demo, journeys
// that tell users' stories, and benches. It uses the cluster of KUBECONFIG, or
// the lab where that is unset.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/journey/program"
	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/journey/stories"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "journey:", err)
		os.Exit(1)
	}
}

// settings are the flags of every command that uses a cluster.
type settings struct {
	images       stage.Images
	storageClass string
	archive      string
	ledger       string
	source       string
	installed    bool
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "journey",
		Short: "Prove the operator on a real Kubernetes",
		Long: `Prove the operator on a real Kubernetes: the one of KUBECONFIG, or the lab
where that is unset. On the lab the images are made of what was built; any other
cluster needs --operator-image and --ledger-image that it can pull.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	s := &settings{}
	flags := root.PersistentFlags()
	flags.StringVar(&s.images.Operator, "operator-image", "", "image of the operator (on the lab: made of --operator-archive)")
	flags.StringVar(&s.images.OperatorNext, "operator-image-next", "", "another reference of an operator's image, for the upgrade")
	flags.StringVar(&s.images.Ledger, "ledger-image", "", "image of the ledger (on the lab: made of --ledger-program)")
	flags.StringVar(&s.images.Valkey, "valkey-image", "", "newest Valkey (on the lab: its own; elsewhere the operator's default)")
	flags.StringVar(&s.images.ValkeyOld, "valkey-old-image", "", "oldest Valkey (on the lab: its own; elsewhere valkey/valkey:8.1)")
	flags.StringVar(&s.storageClass, "storage-class", "", "class of the volumes (the cluster's default)")
	flags.StringVar(&s.archive, "operator-archive", "", "OCI archive of the operator (dist/valkey-operator.tar of the source)")
	flags.StringVar(&s.ledger, "ledger-program", "", "static program of the ledger (ledger in the lab's bin)")
	flags.StringVar(&s.source, "source", "", "the operator's source, with config/ in it (found upwards from here)")
	flags.BoolVar(&s.installed, "installed", false, "use the operator that is installed, do not apply config/default")
	root.AddCommand(runCommand(s), listCommand())
	return root
}

func runCommand(s *settings) *cobra.Command {
	tier, keep := "", false
	c := &cobra.Command{
		Use:   "run [NAME...]",
		Short: "Run journeys by name, or all of a tier",
		RunE: func(cmd *cobra.Command, names []string) error {
			chosen, err := program.Select(tier, names)
			if err != nil {
				return err
			}
			world, err := s.world(cmd.Context())
			if err != nil {
				return err
			}
			failed, err := program.Program{World: world, Keep: keep}.Run(cmd.Context(), chosen)
			if err == nil && failed > 0 {
				err = errors.New("not all journeys passed")
			}
			return err
		},
	}
	c.Flags().StringVar(&tier, "tier", string(stories.Continuous), "ci, long or all; without effect when names are given")
	c.Flags().BoolVar(&keep, "keep", false, "leave a failed journey's namespace")
	return c
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the journeys",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			for _, j := range stories.All() {
				needs := ""
				if j.NeedsLab {
					needs = " (needs the lab)"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-4s  %-26s %s%s\n", j.Tier, j.Name, j.Story, needs)
			}
		},
	}
}

// world connects, makes the images and installs the operator.
func (s *settings) world(ctx context.Context) (*stage.World, error) {
	lab, err := home.Default()
	if err != nil {
		return nil, err
	}
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		kubeconfig = lab.Kubeconfig()
	}
	w, err := stage.Connect(stage.Connection{Kubeconfig: kubeconfig, LabKubeconfig: lab.Kubeconfig(), LabBin: lab.Bin()})
	if err != nil {
		return nil, err
	}
	if w.Source, err = s.findSource(); err != nil {
		return nil, err
	}
	w.Images, w.StorageClass = s.images, s.storageClass
	err = w.Prepare(ctx, stage.Sources{
		OperatorArchive: or(s.archive, filepath.Join(w.Source, "dist", "valkey-operator.tar")),
		LedgerProgram:   or(s.ledger, lab.Bin("ledger")),
		Pins:            lab.State("images.pins"),
	})
	if err != nil || s.installed {
		return w, err
	}
	fmt.Fprintf(w.Out, "installing the operator from config/default with image %s\n", w.Images.Operator)
	return w, w.InstallOperator(ctx, stage.Install{Image: w.Images.Operator})
}

// findSource looks upwards for the directory that has config/default.
func (s *settings) findSource() (string, error) {
	if s.source != "" {
		return filepath.Abs(s.source)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "config", "default", "kustomization.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no config/default here or above: run it in the operator's source, or name that with --source")
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
