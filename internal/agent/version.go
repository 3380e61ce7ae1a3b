package agent

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// versionTime bounds how long a server's program may take to name its version:
// a start does not wait for it.
const versionTime = 2 * time.Second

// version is a server's, by its first two numbers.
type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// reads says whether a server reads dumps of a format: those that begin with
// VALKEY are of 9.0 and later. One of no version is not judged.
func (v version) reads(format string) bool {
	return v == version{} || !strings.HasPrefix(format, "VALKEY") || v.atLeast(9, 0)
}

// serverVersion asks the server's program for its version. One that does not
// tell is of no version, which is older than all.
func (c Config) serverVersion(ctx context.Context) version {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	command := exec.CommandContext(ctx, c.Program, "--version") //nolint:gosec // the program that is started anyway
	command.WaitDelay = time.Second
	text, err := command.Output()
	if err != nil {
		return version{}
	}
	return parseVersion(string(text))
}

// parseVersion reads "Valkey server v=9.1.2 sha=…".
func parseVersion(text string) version {
	var found version
	if _, err := fmt.Sscanf(text, "Valkey server v=%d.%d.", &found.major, &found.minor); err != nil {
		return version{}
	}
	return found
}

// versionLines are settings that only newer servers know; an older one does not
// start with them. They come first, so that the operator's file may say otherwise.
func versionLines(server version) []string {
	if !server.atLeast(9, 1) {
		return nil
	}
	// A node table that cannot be written is no reason to end.
	return []string{"cluster-config-save-behavior best-effort"}
}
