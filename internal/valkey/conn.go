package valkey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"syscall"
)

// answer is what a server said to one command.
type answer struct {
	text string
	err  error
}

// View asks INFO, CLUSTER NODES and CLUSTER INFO in one round trip. It fails
// when INFO does; the other two may be refused while the server loads.
func (c *Conn) View(ctx context.Context) (View, error) {
	answers := c.answers(ctx, []string{"INFO"}, []string{"CLUSTER", "NODES"}, []string{"CLUSTER", "INFO"})
	return viewOf(answers[0], answers[1], answers[2])
}

func viewOf(info, nodes, cluster answer) (View, error) {
	var view View
	if info.err != nil {
		return View{}, info.err
	}
	var err error
	if view.Info, err = ParseInfo(info.text); err != nil {
		return View{}, err
	}
	if view.TableKnown, err = read(nodes, &view.Table, ParseNodeTable); err != nil {
		return View{}, err
	}
	if view.ClusterKnown, err = read(cluster, &view.Cluster, ParseClusterInfo); err != nil {
		return View{}, err
	}
	return view, nil
}

// read parses one answer of a View. LOADING leaves it unknown, everything else
// that is no answer fails the whole View.
func read[T any](from answer, into *T, parse func(string) (T, error)) (known bool, err error) {
	if IsLoading(from.err) {
		return false, nil
	}
	if from.err != nil {
		return false, from.err
	}
	*into, err = parse(from.text)
	return err == nil, err
}

// Meet is CLUSTER MEET.
func (c *Conn) Meet(ctx context.Context, host string, port, busPort int) error {
	words := []string{"CLUSTER", "MEET", host, strconv.Itoa(port)}
	if busPort != 0 {
		words = append(words, strconv.Itoa(busPort))
	}
	return c.do(ctx, words...)
}

// AddSlots is CLUSTER ADDSLOTSRANGE.
func (c *Conn) AddSlots(ctx context.Context, slots Slots) error {
	if slots.IsEmpty() {
		return nil
	}
	words := []string{"CLUSTER", "ADDSLOTSRANGE"}
	for _, r := range slots {
		words = append(words, strconv.Itoa(r.First), strconv.Itoa(r.Last))
	}
	return c.do(ctx, words...)
}

// Replicate is CLUSTER REPLICATE.
func (c *Conn) Replicate(ctx context.Context, primary NodeID) error {
	return c.do(ctx, "CLUSTER", "REPLICATE", string(primary))
}

// Forget is CLUSTER FORGET.
func (c *Conn) Forget(ctx context.Context, id NodeID) error {
	return c.do(ctx, "CLUSTER", "FORGET", string(id))
}

// RewriteLog is BGREWRITEAOF.
func (c *Conn) RewriteLog(ctx context.Context) error {
	err := c.do(ctx, "BGREWRITEAOF")
	if IsRewriting(err) {
		return nil
	}
	return err
}

// Failover is CLUSTER FAILOVER with its mode.
func (c *Conn) Failover(ctx context.Context, mode FailoverMode) error {
	words := []string{"CLUSTER", "FAILOVER"}
	if mode != Graceful {
		words = append(words, string(mode))
	}
	return c.do(ctx, words...)
}

// SetConfigEpoch is CLUSTER SET-CONFIG-EPOCH.
func (c *Conn) SetConfigEpoch(ctx context.Context, epoch uint64) error {
	return c.do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.FormatUint(epoch, 10))
}

// BumpEpoch is CLUSTER BUMPEPOCH.
func (c *Conn) BumpEpoch(ctx context.Context) error { return c.do(ctx, "CLUSTER", "BUMPEPOCH") }

// ConfigGet is the value of one setting; known is false when the server has no such setting.
func (c *Conn) ConfigGet(ctx context.Context, name string) (value string, known bool, err error) {
	values, err := c.pairs(ctx, "CONFIG", "GET", name)
	if err != nil {
		return "", false, err
	}
	value, known = values[name]
	return value, known, nil
}

// ConfigGetAll are all settings that the server tells.
func (c *Conn) ConfigGetAll(ctx context.Context) (map[string]string, error) {
	return c.pairs(ctx, "CONFIG", "GET", "*")
}

// ConfigSet changes one setting of the running server, not its file.
func (c *Conn) ConfigSet(ctx context.Context, name, value string) error {
	return c.do(ctx, "CONFIG", "SET", name, value)
}

// ConfigSetAll is one CONFIG SET of all settings. None is no command at all.
func (c *Conn) ConfigSetAll(ctx context.Context, settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	words := []string{"CONFIG", "SET"}
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		words = append(words, setting, settings[setting])
	}
	return c.do(ctx, words...)
}

// ACLLoad is ACL LOAD.
func (c *Conn) ACLLoad(ctx context.Context) error { return c.do(ctx, "ACL", "LOAD") }

// Senders are the nodes whose word reaches the server, by CLUSTER LINKS: those that
// have a connection of their own to it on the cluster bus.
func (c *Conn) Senders(ctx context.Context) (map[NodeID]bool, error) {
	links, err := c.send(ctx, []string{"CLUSTER", "LINKS"}).ToArray()
	if err != nil {
		return nil, asReplyError(err)
	}
	senders := map[NodeID]bool{}
	for _, link := range links {
		fields, err := link.AsStrMap()
		if err != nil {
			return nil, fmt.Errorf("reading a link of the cluster bus: %w", err)
		}
		if fields["direction"] == "from" {
			senders[NodeID(fields["node"])] = true
		}
	}
	return senders, nil
}

// Ping is PING.
func (c *Conn) Ping(ctx context.Context) error {
	said, err := c.Raw(ctx, "PING")
	if err == nil && said != "PONG" {
		return fmt.Errorf("the server answered %q to a ping", said)
	}
	return err
}

// Shutdown is SHUTDOWN. Anything but the end of the connection is an error:
// the server's refusal, or the context's end while the server still saves.
func (c *Conn) Shutdown(ctx context.Context, mode ShutdownMode) error {
	err := c.do(ctx, "SHUTDOWN", string(mode))
	switch {
	case err == nil:
		return errors.New("the server answered a shutdown and stays")
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return nil
	}
	return err
}
