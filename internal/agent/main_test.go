package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"valkey.io/valkey-operator/internal/agent"
)

// actAsAgent makes the test's own program be an agent, with the configuration
// that stands in this variable: agents under test are processes of their own.
const actAsAgent = "ACT_AS_AGENT"

func TestMain(m *testing.M) {
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
