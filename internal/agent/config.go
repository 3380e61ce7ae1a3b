package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"valkey.io/valkey-operator/internal/agent/volume"
)

// System users, as the operator names them, which are also the names of the
// files with their passwords.
const (
	userOperator    = "_operator"
	userReplication = "_replication"
)

// serverPort is the client port of every member's server.
const serverPort = 6379

// Config is everything an agent is told at its start.
type Config struct {
	volume.Identity
	// Peers are the names or addresses behind which the cluster's agents are found.
	Peers []string
	// Data is the volume, Run a directory in memory.
	Data, Run string
	// Settings and Members are the operator's files for the whole cluster.
	Settings, Members string
	// ACL is the file with all users, Passwords a directory with a file for each system user.
	ACL, Passwords string
	// MostBallast bounds the space that the member keeps in reserve on its volume
	// for its server's last words, in bytes; 0: none is kept.
	MostBallast int64
	// Ephemeral says that the member keeps nothing across a restart.
	Ephemeral bool
	// PodIP is the address that others reach the member at.
	PodIP string
	// Bind is the only address to listen on; empty: all.
	Bind string
	// Program is the server's.
	Program string
	// Version is the agent's own.
	Version string
}

// loopback is where the agent's own server listens, for the agent.
func (c Config) loopback() string {
	if c.Bind != "" {
		return c.Bind
	}
	return "127.0.0.1"
}

func (c Config) confFile() string     { return filepath.Join(c.Run, "valkey.conf") }
func (c Config) aclCopy() string      { return filepath.Join(c.Run, "users.acl") }
func (c Config) lastStopFile() string { return filepath.Join(c.Run, "last-stop.json") }

// password reads a system user's password. It is read at each use, since it may
// change at any time.
func (c Config) password(user string) (string, error) {
	text, err := os.ReadFile(filepath.Join(c.Passwords, user))
	if err != nil {
		return "", fmt.Errorf("reading a system user's password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// start is what a start decision asks of the configuration.
type start struct {
	noFailover bool // the server must not stand for election
	blank      bool // the server has no place in a cluster yet
	server     version
}

// writeConf renders the file that the server is started on.
func (c Config) writeConf(asked start) error {
	password, err := c.password(userReplication)
	if err != nil {
		return err
	}
	bind := "* -::*"
	if c.Bind != "" {
		bind = c.Bind
	}
	lines := slices.Concat(versionLines(asked.server), []string{
		"include " + strconv.Quote(c.Settings),
		"port " + strconv.Itoa(serverPort),
		"bind " + bind,
		"protected-mode no",
		"daemonize no",
		"supervised no",
		`logfile ""`,
		`pidfile ""`,
		"dir " + strconv.Quote(c.Data),
		"cluster-enabled yes",
		"cluster-config-file " + volume.TableFile,
		"dbfilename " + volume.DumpFile,
		"appenddirname " + volume.LogDirectory,
		"appendfilename " + volume.LogFile,
		"aclfile " + strconv.Quote(c.aclCopy()),
		"primaryuser " + userReplication,
		"primaryauth " + strconv.Quote(password),
		"cluster-announce-ip " + c.PodIP,
		"cluster-replica-no-failover " + yesNo(asked.noFailover),
	}, c.joiningLines(asked.blank))
	return writePrivately(c.confFile(), []byte(strings.Join(lines, "\n")+"\n"))
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// appendOnly is what the operator's file says about appendonly. Without a line
// it is off.
func (c Config) appendOnly() (bool, error) {
	value, _, err := c.setting("appendonly")
	return strings.EqualFold(value, "yes"), err
}

// setting is the value of a one-word setting in the operator's file, and
// whether it is there: the last line counts, as for the server.
func (c Config) setting(name string) (value string, found bool, err error) {
	text, err := os.ReadFile(c.Settings)
	if err != nil {
		return "", false, fmt.Errorf("reading the operator's settings: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 2 && strings.EqualFold(words[0], name) {
			value, found = strings.Trim(words[1], `"'`), true
		}
	}
	return value, found, lines.Err()
}

// writePrivately replaces a file in one step, readable by nobody else. The run
// directory lives in memory: there is nothing to make durable.
func writePrivately(path string, content []byte) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}
