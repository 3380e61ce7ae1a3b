package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"valkey.io/valkey-operator/internal/agent"
)

// actAsAgent makes the test's own program be an agent, with the configuration
// that stands in this variable: agents under test are processes of their own.
const actAsAgent = "ACT_AS_AGENT"

// playServer says how the test's own program behaves as a server.
const playServer = "PLAY_SERVER"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && filepath.Base(os.Args[1]) == "valkey.conf" {
		os.Exit(beServer(os.Getenv(playServer)))
	}
	if text := os.Getenv(actAsAgent); text != "" {
		os.Exit(beAgent(text))
	}
	os.Exit(m.Run())
}

func beAgent(text string) int {
	var config agent.Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	code, err := agent.Run(ctx, config, os.Stdout, slog.New(slog.NewTextHandler(os.Stdout, nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// beServer fails at once, or ends at the first or second request.
func beServer(how string) int {
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
