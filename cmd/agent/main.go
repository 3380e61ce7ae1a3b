// Command agent is the first process of a member's container, and prepares the
// container in the pod's init containers. It reads its flags and decides nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"valkey.io/valkey-operator/internal/agent"
	"valkey.io/valkey-operator/internal/agent/prepare"
	"valkey.io/valkey-operator/internal/agent/volume"
)

// version is set by the build.
var version = "dev"

const usage = `usage:
  agent install DIR        copy this program to DIR/agent
  agent chown DIR UID GID  give the files of DIR to UID:GID
  agent run FLAGS          run a member's server (see agent run --help)
  agent --version`

const (
	// collectAt is the garbage collector's target in percent. The agent keeps
	// next to nothing alive, so collecting early costs nothing and saves memory.
	collectAt = 20
	// memoryLimit makes the collector work harder before the agent reaches the
	// 20 MiB that a member's memory plan leaves to it.
	memoryLimit = 12 << 20
)

func main() {
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(memoryLimit)
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
	}
	os.Exit(code)
}

func run(arguments []string) (code int, err error) {
	if len(arguments) == 0 {
		return 2, fmt.Errorf("no command\n%s", usage)
	}
	command, rest := arguments[0], arguments[1:]
	switch {
	case command == "run":
		return serve(rest)
	case command == "install" && len(rest) == 1:
		return asCode(prepare.Install(rest[0]))
	case command == "chown" && len(rest) == 3:
		return chown(rest)
	case command == "--version":
		fmt.Println(version)
		return 0, nil
	}
	return 2, fmt.Errorf("not understood: %s\n%s", strings.Join(arguments, " "), usage)
}

func asCode(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

func chown(arguments []string) (int, error) {
	uid, err := strconv.Atoi(arguments[1])
	if err != nil {
		return 2, fmt.Errorf("user id: %w", err)
	}
	gid, err := strconv.Atoi(arguments[2])
	if err != nil {
		return 2, fmt.Errorf("group id: %w", err)
	}
	outcome, err := prepare.Chown(arguments[0], uid, gid)
	fmt.Println(outcome)
	return asCode(err)
}

func serve(arguments []string) (int, error) {
	config, err := parse(arguments)
	if err != nil {
		return 2, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stdout, nil)).With(
		"component", "agent", "shard", config.Shard, "node", config.Node)
	return agent.Run(ctx, config, os.Stdout, log)
}

// parse reads the flags of run. Every one without a default is required.
func parse(arguments []string) (agent.Config, error) {
	config := agent.Config{Version: version, PodIP: os.Getenv("POD_IP"), MostBallast: volume.MostBallast}
	var peers string
	flags := flag.NewFlagSet("agent run", flag.ContinueOnError)
	flags.StringVar(&config.ClusterID, "cluster-id", "", "identity of the cluster")
	flags.IntVar(&config.Shard, "shard", -1, "index of the shard")
	flags.IntVar(&config.Node, "node", -1, "index of the node in its shard")
	flags.StringVar(&peers, "peers", "", "names or addresses of all members' agents, separated by commas")
	flags.StringVar(&config.Data, "data", "", "the data directory")
	flags.StringVar(&config.Settings, "config", "", "the cluster's valkey.conf")
	flags.StringVar(&config.Members, "members", "", "the cluster's list of members")
	flags.StringVar(&config.ACL, "acl", "", "the cluster's users")
	flags.StringVar(&config.Passwords, "passwords", "", "directory with the system users' passwords")
	flags.StringVar(&config.Run, "run", "", "a writable directory in memory")
	flags.BoolVar(&config.Ephemeral, "ephemeral", false, "the data does not outlive a restart")
	flags.StringVar(&config.Bind, "bind", "", "the only address to listen on (default all)")
	flags.StringVar(&config.Program, "server", "valkey-server", "the server's program")
	if err := flags.Parse(arguments); err != nil {
		return agent.Config{}, err
	}
	config.Peers = strings.Split(peers, ",")
	return config, check(flags, config)
}

func check(flags *flag.FlagSet, config agent.Config) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("not understood: %s", strings.Join(flags.Args(), " "))
	}
	if config.PodIP == "" {
		return fmt.Errorf("POD_IP is not set in the environment")
	}
	given := map[string]bool{"ephemeral": true, "bind": true, "server": true}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var missing []string
	flags.VisitAll(func(f *flag.Flag) {
		if !given[f.Name] {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s", strings.Join(missing, " "))
	}
	return nil
}
