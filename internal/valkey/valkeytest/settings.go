package valkeytest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// Setting says how servers treat one setting.
type Setting struct {
	// Value is what a server has that was told nothing.
	Value string
	// Immutable settings are read at the start and not changed by CONFIG SET.
	Immutable bool
	// Read is the value as the server keeps it, which may be written otherwise
	// ("1kb" is "1024"), or its words of refusal. Nil takes everything.
	Read func(value string) (kept string, err error)
}

// The settings that have an effect here.
const (
	noFailoverSetting  = "cluster-replica-no-failover"
	nodeTimeoutSetting = "cluster-node-timeout"
)

// settings are the few that servers here have on their own; Options add others.
func settings(options Options) map[string]Setting {
	all := map[string]Setting{
		noFailoverSetting:         {Value: "no", Read: YesNo},
		nodeTimeoutSetting:        {Value: strconv.FormatInt(options.NodeTimeout.Milliseconds(), 10), Read: Integer(0, math.MaxInt64)},
		"appendfsync":             {Value: "everysec", Read: OneOf("everysec", "always", "no")},
		"appendonly":              {Value: "yes", Read: YesNo},
		"cluster-enabled":         {Value: "yes", Immutable: true, Read: YesNo},
		"databases":               {Value: "16", Immutable: true, Read: Integer(1, math.MaxInt32)},
		"io-threads":              {Value: "1", Immutable: strings.HasPrefix(options.Version, "8."), Read: Integer(1, 256)},
		"maxmemory":               {Value: "0", Read: Memory},
		"maxmemory-policy":        {Value: "noeviction", Read: OneOf("volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction")},
		"primaryauth":             {},
		"primaryuser":             {},
		"slowlog-log-slower-than": {Value: "10000", Read: Integer(-1, math.MaxInt64)},
		"tcp-backlog":             {Value: "511", Immutable: true, Read: Integer(0, math.MaxInt32)},
	}
	maps.Copy(all, options.Settings)
	return all
}

// YesNo reads a switch.
func YesNo(value string) (string, error) {
	if value != "yes" && value != "no" {
		return "", errors.New("argument must be 'yes' or 'no'")
	}
	return value, nil
}

// OneOf reads one of some words.
func OneOf(words ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		if !slices.Contains(words, value) {
			return "", fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(words, ", "))
		}
		return value, nil
	}
}

// Integer reads a number between two others.
func Integer(least, most int64) func(string) (string, error) {
	return func(value string) (string, error) {
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "", errors.New("argument couldn't be parsed into an integer")
		}
		if number < least || number > most {
			return "", fmt.Errorf("argument must be between %d and %d inclusive", least, most)
		}
		return value, nil
	}
}

// units of memory: those that end in b are powers of 1024.
var units = map[string]int64{
	"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30,
}

// Memory reads a number of bytes with or without its unit.
func Memory(value string) (string, error) {
	digits := strings.TrimRight(strings.ToLower(value), "bkmg")
	unit, known := units[strings.ToLower(value)[len(digits):]]
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || number < 0 {
		return "", errors.New("argument must be a memory value")
	}
	return strconv.FormatInt(number*unit, 10), nil
}

// configure gives a process that starts its settings. It is false when its file
// says what the server does not take, and exits for.
func (n *Node) configure(written map[string]string) bool {
	n.config = map[string]string{}
	for name, setting := range n.cluster.settings {
		n.config[name] = setting.Value
	}
	kept, err := n.cluster.read(written)
	maps.Copy(n.config, kept)
	n.heed()
	return err == nil
}

// adjust changes settings of a running server: all, or none.
func (n *Node) adjust(asked map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		setting, known := n.cluster.settings[strings.ToLower(name)]
		if !known {
			return unknownSetting(name)
		}
		if setting.Immutable {
			return refusedSetting(name, "can't set immutable config")
		}
	}
	kept, err := n.cluster.read(asked)
	if err != nil {
		return err
	}
	maps.Copy(n.config, kept)
	n.heed()
	return nil
}

// read turns values as they are written into values as they are kept, unless one is refused.
func (c *Cluster) read(written map[string]string) (kept map[string]string, err error) {
	kept = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		setting, known := c.settings[strings.ToLower(name)]
		if !known {
			return nil, unknownSetting(name)
		}
		value := written[name]
		if setting.Read != nil {
			if value, err = setting.Read(value); err != nil {
				return nil, refusedSetting(name, err.Error())
			}
		}
		kept[strings.ToLower(name)] = value
	}
	return kept, nil
}

func unknownSetting(name string) error {
	return valkey.NewReplyError(fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", name))
}

func refusedSetting(name, why string) error {
	return valkey.NewReplyError(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, why))
}

// heed lets the settings have their effects.
func (n *Node) heed() {
	n.self.noFailover = n.config[noFailoverSetting] == "yes"
	milliseconds, err := strconv.Atoi(n.config[nodeTimeoutSetting])
	if err != nil {
		panic(fmt.Sprintf("valkeytest: a node timeout of %q was let in", n.config[nodeTimeoutSetting]))
	}
	n.timeout = time.Duration(milliseconds) * time.Millisecond
}
