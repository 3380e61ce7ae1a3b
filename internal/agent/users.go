package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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
	password, err := c.password(userOperator)
	if err != nil {
		return "", err
	}
	users := admitting(string(text), password)
	if closed {
		users = onlyOperator(users)
	}
	return users, nil
}

// admitting is the users with one more password for the operator's: the one
// that the agent itself logs in with. The two are mounted from two Secrets, and
// while one of them is newer the server must not lock its own agent out, which
// could then not give it the other.
func admitting(text, password string) string {
	digest := sha256.Sum256([]byte(password))
	valid := " #" + hex.EncodeToString(digest[:])
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if userOf(line) == userOperator && !strings.Contains(line, valid) {
			lines[i] = strings.TrimRight(line, "\r\n") + valid + "\n"
		}
	}
	return strings.Join(lines, "")
}

// userOf is the name of the user that a line is about.
func userOf(line string) string {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "user" {
		return ""
	}
	return words[1]
}

// complaint is how a server names a line of the file of users that it refuses.
var complaint = regexp.MustCompile(`users\.acl:(\d+): `)

// refusedUsers are the users of the lines that a server complains about. There
// are none when it complains about anything that users did not write.
func refusedUsers(text, said string) []string {
	var refused []string
	lines := strings.Split(text, "\n")
	for _, match := range complaint.FindAllStringSubmatch(said, -1) {
		number, err := strconv.Atoi(match[1])
		if err != nil || number < 1 || number > len(lines) {
			return nil
		}
		user := userOf(lines[number-1])
		if user == "" || strings.HasPrefix(user, "_") {
			return nil
		}
		refused = append(refused, user)
	}
	return refused
}

// withFormer is the users with some of them as they were before, and off where
// they were not: one user's mistake is not all users', and no reason for a server
// not to start.
func withFormer(text string, users []string, before string) string {
	former := map[string]string{}
	for line := range strings.Lines(before) {
		former[userOf(line)] = line
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		user := userOf(line)
		if !slices.Contains(users, user) {
			continue
		}
		lines[i] = "user " + user + " reset off\n"
		if old, had := former[user]; had {
			lines[i] = old
		}
	}
	return strings.Join(lines, "")
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
