package ledger

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// Node is what one server says of itself and believes of its cluster.
type Node struct {
	Address string `json:"address"`
	ID      string `json:"id,omitempty"`
	// Role is primary or replica; PrimaryID is whose replica.
	Role      string `json:"role,omitempty"`
	PrimaryID string `json:"primary_id,omitempty"`
	Slots     int    `json:"slots"`
	Keys      int64  `json:"keys"`
	// Known counts the lines of its node table, its own included.
	Known int `json:"known"`
	// State is its cluster_state, ok or fail.
	State string `json:"state,omitempty"`
	// Epoch is its cluster_current_epoch, which each election raises by one.
	Epoch   int64  `json:"epoch"`
	Version string `json:"version,omitempty"`
	// Error says why the rest is missing.
	Error string `json:"error,omitempty"`
}

// Ask asks each address on its own, not as a cluster's client. A server that
// does not answer within two seconds gives a Node with Error.
func (t Target) Ask(ctx context.Context) []Node {
	nodes := make([]Node, 0, len(t.Addresses))
	for _, address := range t.Addresses {
		one := t
		one.Addresses = []string{address}
		n := Node{Address: address}
		if err := n.ask(ctx, one); err != nil {
			n.Error = err.Error()
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (n *Node) ask(ctx context.Context, t Target) error {
	o, err := t.option()
	if err != nil {
		return err
	}
	o.ForceSingleClient = true
	client, err := valkey.NewClient(o)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	table, err := client.Do(ctx, client.B().ClusterNodes().Build()).ToString()
	if err != nil {
		return err
	}
	n.parse(plain(table))
	info, err := client.Do(ctx, client.B().ClusterInfo().Build()).ToString()
	if err != nil {
		return err
	}
	n.enterInfo(plain(info))
	info, err = client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return err
	}
	n.Version = field(plain(info), "valkey_version:")
	n.Keys, err = client.Do(ctx, client.B().Dbsize().Build()).AsInt64()
	return err
}

// enterInfo reads a CLUSTER INFO answer.
func (n *Node) enterInfo(info string) {
	n.State = field(info, "cluster_state:")
	n.Epoch, _ = strconv.ParseInt(field(info, "cluster_current_epoch:"), 10, 64) // 0 where there is none
}

// field is the rest of the line that begins with name.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			return value
		}
	}
	return ""
}

// plain drops the type prefix of a RESP3 verbatim string.
func plain(s string) string { return strings.TrimPrefix(s, "txt:") }

// parse reads a CLUSTER NODES answer: id, address, flags, primary, …, slots from the ninth word on.
func (n *Node) parse(table string) {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		n.Known++
		if !strings.Contains(words[2], "myself") {
			continue
		}
		n.ID, n.Role = words[0], "primary"
		if strings.Contains(words[2], "slave") { // the wire's word
			n.Role, n.PrimaryID = "replica", words[3]
		}
		for _, r := range words[8:] {
			n.Slots += slotsIn(r)
		}
	}
}
