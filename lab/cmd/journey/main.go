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
	"time"

	"github.com/spf13/cobra"

	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/journey/bench"
	"valkey.io/valkey-operator/lab/journey/demo"
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
	flags.StringVar(&s.images.ValkeySame, "valkey-same-image", "", "another reference of the newest Valkey, to roll to (its line's: valkey/valkey:9.1)")
	flags.StringVar(&s.images.ValkeyOld, "valkey-old-image", "", "oldest Valkey (on the lab: its own; elsewhere valkey/valkey:8.1)")
	flags.StringVar(&s.storageClass, "storage-class", "", "class of the volumes (the cluster's default)")
	flags.StringVar(&s.archive, "operator-archive", "", "OCI archive of the operator (dist/valkey-operator.tar of the source)")
	flags.StringVar(&s.ledger, "ledger-program", "", "static program of the ledger (ledger in the lab's bin)")
	flags.StringVar(&s.source, "source", "", "the operator's source, with config/ in it (found upwards from here)")
	flags.BoolVar(&s.installed, "installed", false, "use the operator that is installed, do not apply config/default")
	root.SetOut(os.Stdout)
	root.AddCommand(demoCommand(s), runCommand(s), benchCommand(s), listCommand())
	return root
}

func demoCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the main job: a persistent cluster loses every pod, keeps its keys, and grows",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			world, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			return demo.Run(cmd.Context(), world, func(ctx context.Context) error { return s.install(ctx, world) })
		},
	}
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

func benchCommand(s *settings) *cobra.Command {
	b := bench.Bench{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure the operator beside bare Kubernetes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			world, err := s.world(cmd.Context())
			if err != nil {
				return err
			}
			return b.Run(cmd.Context(), world)
		},
	}
	c.Flags().IntVar(&b.Runs, "runs", 1, "runs of what takes time; the median counts")
	c.Flags().IntVar(&b.Clusters, "clusters", 20, "clusters in the second measurement of the manager")
	c.Flags().BoolVar(&b.Large, "large", false, "also the growth of sixty volumes")
	c.Flags().DurationVar(&b.Window, "window", 2*time.Minute, "how long requests and CPU are counted")
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
				if j.Needs != "" {
					needs = fmt.Sprintf(" (needs %s)", j.Needs)
				}
				cmd.Printf("%-4s  %-26s %s%s\n", j.Tier, j.Name, j.Story, needs)
			}
		},
	}
}

// world is a cluster with the images made and the operator installed.
func (s *settings) world(ctx context.Context) (*stage.World, error) {
	w, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return w, s.install(ctx, w)
}

// connect finds the cluster and makes the images.
func (s *settings) connect(ctx context.Context) (*stage.World, error) {
	lab, err := home.Default()
	if err != nil {
		return nil, err
	}
	w, err := stage.Connect(stage.Connection{
		Kubeconfig:    or(os.Getenv("KUBECONFIG"), lab.Kubeconfig()),
		LabKubeconfig: lab.Kubeconfig(), LabBin: lab.Bin(),
	})
	if err != nil {
		return nil, err
	}
	if w.Source, err = s.findSource(); err != nil {
		return nil, err
	}
	w.Images, w.StorageClass = s.images, s.storageClass
	return w, w.Prepare(ctx, stage.Sources{
		OperatorArchive: or(s.archive, filepath.Join(w.Source, "dist", "valkey-operator.tar")),
		OperatorNext:    filepath.Join(w.Source, "dist", "valkey-operator-next.tar"),
		LedgerProgram:   or(s.ledger, lab.Bin("ledger")),
		Pins:            lab.State("images.pins"),
	})
}

// install applies config/default, unless the operator that is there shall be used.
func (s *settings) install(ctx context.Context, w *stage.World) error {
	if s.installed {
		return nil
	}
	w.Print("installing the operator from config/default with image %s\n", w.Images.Operator)
	return w.InstallOperator(ctx, w.Images.Operator)
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
