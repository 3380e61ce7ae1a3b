package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"valkey.io/valkey-operator/internal/agent"
)

// actAsAgent makes the test's own program be an agent, with the configuration
// that stands in this variable: agents under test are processes of their own.
const actAsAgent = "ACT_AS_AGENT"

// endAtStep is a step of a start at which an agent ends, as if it were killed there.
const endAtStep = "END_AT_STEP"

// playServer says how the test's own program behaves as a server.
const playServer = "PLAY_SERVER"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && filepath.Base(os.Args[1]) == "valkey.conf" {
		os.Exit(beServer(os.Getenv(playServer)))
	}
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		os.Exit(0) // a played server is of no version
	}
	if text := os.Getenv(actAsAgent); text != "" {
		os.Exit(beAgent(text))
	}
	if os.Getenv(ownMounts) == "" {
		os.Exit(runWithOwnMounts())
	}
	os.Exit(m.Run())
}

// ownMounts is set in a test program that sees its mounts alone.
const ownMounts = "OWN_MOUNTS"

// runWithOwnMounts runs the test program again where nobody else sees what it
// mounts, and whence all mounts vanish with the program, however it ends.
func runWithOwnMounts() int {
	runtime.LockOSThread() // the program is to end with this thread
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), ownMounts+"=yes")
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if os.Getuid() != 0 {
		again.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	err := again.Run()
	if again.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return again.ProcessState.ExitCode()
}

func beAgent(text string) int {
	var config agent.Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	agent.EndAt(os.Getenv(endAtStep))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	code, err := agent.Run(ctx, config, os.Stdout, slog.New(slog.NewTextHandler(os.Stdout, nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// beServer fails at once, or when it cannot write a file, or ends at the first
// or second request.
func beServer(how string) int {
	if path, writes := strings.CutPrefix(how, "writes "); writes {
		if os.WriteFile(path, make([]byte, 64<<10), 0o600) != nil {
			fmt.Println("Fatal: no table: No space left on device")
			return 1
		}
	}
	if how == "fails" {
		fmt.Println("all is well so far")
		fmt.Println("Fatal error: no more")
		return 3
	}
	requests := make(chan os.Signal, 2)
	signal.Notify(requests, syscall.SIGTERM)
	fmt.Println("the server is up")
	<-requests
	if how == "refuses once" {
		fmt.Println("the server refuses to end")
		<-requests
	}
	return 0
}
