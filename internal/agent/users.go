package agent

import (
	"fmt"
	"os"
	"strings"
)

// readUsers is the ACL file's content to give to the server. Behind closed
// doors it is the operator alone: a member that starts without its data although
// another one took its place must hand its emptiness to no replica that still
// follows it, and take no write, until it has learned of its successor.
func (c Config) readUsers(closed bool) (string, error) {
	text, err := os.ReadFile(c.ACL)
	if err != nil {
		return "", fmt.Errorf("reading the users: %w", err)
	}
	if !closed {
		return string(text), nil
	}
	return onlyOperator(string(text)), nil
}

func onlyOperator(text string) string {
	lines := []string{"user default reset off"}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "user "+userOperator+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
