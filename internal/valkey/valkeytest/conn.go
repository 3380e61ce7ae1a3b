package valkeytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// forgetFor is how long gossip cannot bring a forgotten node back.
const forgetFor = 60 * time.Second

var (
	errRefused = errors.New("connection refused")
	errBroken  = errors.New("the connection is broken")
)

// Conn is a connection to one server. It breaks when the server ends.
type Conn struct {
	cluster *Cluster
	node    *Node
	runID   string
	address string
	closed  bool
}

var (
	_ valkey.Server     = (*Conn)(nil)
	_ valkey.Epochs     = (*Conn)(nil)
	_ valkey.Configurer = (*Conn)(nil)
	_ valkey.Dialer     = (*Cluster)(nil).Dial
)

// Dial connects to the server at the target's address. A silent server costs no
// time: the answer is at once the one that comes when the deadline is over.
func (c *Cluster) Dial(ctx context.Context, target valkey.Target) (valkey.Server, error) {
	conn, err := c.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// Connect is Dial with the whole Conn as its result.
func (c *Cluster) Connect(ctx context.Context, target valkey.Target) (*Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	address, err := netip.ParseAddrPort(target.Address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", target, err)
	}
	n := c.at(address)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("connecting to %s: %w", target, ctx.Err())
	case n == nil:
		return nil, fmt.Errorf("connecting to %s: %w", target, errRefused)
	case n.silent:
		return nil, fmt.Errorf("connecting to %s: %w", target, context.DeadlineExceeded)
	}
	return &Conn{cluster: c, node: n, runID: n.runID, address: target.Address}, nil
}

// Close ends the connection.
func (c *Conn) Close() {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	c.closed = true
}

// View looks at the server, also while it loads.
func (c *Conn) View(ctx context.Context) (valkey.View, error) {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	if err := c.alive(ctx); err != nil {
		return valkey.View{}, err
	}
	return c.node.view(), nil
}

func (c *Conn) alive(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.closed || !c.node.running || c.node.runID != c.runID:
		return errBroken
	case c.node.silent:
		return context.DeadlineExceeded
	}
	return nil
}

// do performs a command between its two hooks.
func (c *Conn) do(ctx context.Context, command string, effect func(*Node) error) error {
	if before := c.cluster.Before; before != nil {
		if err := before(c.address, command); err != nil {
			return err
		}
	}
	if err := c.perform(ctx, effect); err != nil {
		return err
	}
	if after := c.cluster.After; after != nil {
		return after(c.address, command)
	}
	return nil
}

func (c *Conn) perform(ctx context.Context, effect func(*Node) error) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	if err := c.alive(ctx); err != nil {
		return err
	}
	if c.node.loading() {
		return valkey.NewReplyError("LOADING Valkey is loading the dataset in memory")
	}
	return effect(c.node)
}

// Meet begins a handshake; it ends some steps later, or comes to nothing.
func (c *Conn) Meet(ctx context.Context, host string, port, busPort int) error {
	return c.do(ctx, fmt.Sprintf("CLUSTER MEET %s %d %d", host, port, busPort), func(n *Node) error {
		address, err := netip.ParseAddrPort(host + ":" + strconv.Itoa(port))
		if err != nil || port == 0 {
			return valkey.NewReplyError("ERR Invalid node address specified: " + host)
		}
		n.startHandshake(address, true)
		return nil
	})
}

// AddSlots takes slots that nobody owns by this server's table.
func (c *Conn) AddSlots(ctx context.Context, slots valkey.Slots) error {
	if slots.IsEmpty() {
		return nil
	}
	return c.do(ctx, "CLUSTER ADDSLOTSRANGE "+slots.String(), func(n *Node) error {
		if busy := n.owned().Intersect(slots); !busy.IsEmpty() {
			return valkey.NewReplyError(fmt.Sprintf("ERR Slot %d is already busy", busy[0].First))
		}
		n.self.slots = n.self.slots.Union(slots)
		return nil
	})
}

// Replicate makes the server follow a primary that it knows.
func (c *Conn) Replicate(ctx context.Context, primary valkey.NodeID) error {
	return c.do(ctx, "CLUSTER REPLICATE "+string(primary), func(n *Node) error {
		target := n.find(primary)
		switch {
		case target == nil:
			return valkey.NewReplyError("ERR Unknown node " + string(primary))
		case target == n.self:
			return valkey.NewReplyError("ERR Can't replicate myself")
		case !target.isPrimary():
			return valkey.NewReplyError("ERR I can only replicate a master, not a replica.")
		case n.isPrimary() && (!n.self.slots.IsEmpty() || n.keys() != 0):
			return valkey.NewReplyError("ERR To set a master the node must be empty and without assigned slots.")
		case n.self.primaryID != primary:
			n.follow(primary)
		}
		return nil
	})
}

// Forget drops a node from this server's table and bars it from gossip for a minute.
func (c *Conn) Forget(ctx context.Context, id valkey.NodeID) error {
	return c.do(ctx, "CLUSTER FORGET "+string(id), func(n *Node) error {
		switch {
		case n.find(id) == nil && n.peers[id] == nil:
			return valkey.NewReplyError("ERR Unknown node " + string(id))
		case id == n.self.id:
			return valkey.NewReplyError("ERR I tried hard but I can't forget myself...")
		case id == n.self.primaryID:
			return valkey.NewReplyError("ERR Can't forget my master!")
		}
		n.remove(id)
		n.forgetUntil[id] = n.cluster.now + forgetFor
		return nil
	})
}

// Failover takes over at once, or asks for a failover that a later step may bring.
func (c *Conn) Failover(ctx context.Context, mode valkey.FailoverMode) error {
	return c.do(ctx, "CLUSTER FAILOVER "+string(mode), func(n *Node) error {
		primary := n.find(n.self.primaryID)
		switch {
		case n.isPrimary():
			return valkey.NewReplyError("ERR You should send CLUSTER FAILOVER to a replica")
		case primary == nil:
			return valkey.NewReplyError("ERR I'm a replica but my master is unknown to me")
		case mode == valkey.Graceful && (primary.failed || !n.linksTo(primary)):
			return valkey.NewReplyError("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE")
		case mode == valkey.Takeover:
			n.bumpEpoch()
			n.promote(n.self.epoch)
		default:
			n.manual = manualFailover{mode: mode, until: n.cluster.now + manualTimeout}
		}
		return nil
	})
}

// RewriteLog has no effect: the servers here keep no files.
func (c *Conn) RewriteLog(ctx context.Context) error {
	return c.do(ctx, "BGREWRITEAOF", func(*Node) error { return nil })
}

// SetConfigEpoch gives a server that knows nobody its first epoch.
func (c *Conn) SetConfigEpoch(ctx context.Context, epoch uint64) error {
	return c.do(ctx, "CLUSTER SET-CONFIG-EPOCH "+strconv.FormatUint(epoch, 10), func(n *Node) error {
		if len(n.peers) != 0 {
			return valkey.NewReplyError("ERR The user can assign a config epoch only when the node does not know any other node.")
		}
		if n.self.epoch != 0 {
			return valkey.NewReplyError("ERR Node config epoch is already non-zero")
		}
		n.self.epoch = epoch
		n.currentEpoch = max(n.currentEpoch, epoch)
		return nil
	})
}

// BumpEpoch raises the server's epoch above all it knows.
func (c *Conn) BumpEpoch(ctx context.Context) error {
	return c.do(ctx, "CLUSTER BUMPEPOCH", func(n *Node) error {
		n.bumpEpoch()
		return nil
	})
}

// ConfigGet is the value that the process has now.
func (c *Conn) ConfigGet(ctx context.Context, name string) (value string, known bool, err error) {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	if err := c.alive(ctx); err != nil {
		return "", false, err
	}
	value, known = c.node.config[strings.ToLower(name)]
	return value, known, nil
}

// ConfigSet changes a setting until the process ends.
func (c *Conn) ConfigSet(ctx context.Context, name, value string) error {
	return c.ConfigSetAll(ctx, map[string]string{name: value})
}

// ConfigSetAll changes settings until the process ends: all of them, or none.
func (c *Conn) ConfigSetAll(ctx context.Context, settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	words := []string{"CONFIG SET"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		words = append(words, name, settings[name])
	}
	return c.do(ctx, strings.Join(words, " "), func(n *Node) error { return n.adjust(settings) })
}

// ACLLoad has no effect.
func (c *Conn) ACLLoad(ctx context.Context) error {
	return c.do(ctx, "ACL LOAD", func(*Node) error { return nil })
}
