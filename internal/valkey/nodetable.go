package valkey

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// NodeID is the name a server gave itself, 40 hexadecimal digits, kept in its
// nodes.conf for as long as that file lives.
type NodeID string

// NodeAddr is where a table says that a node listens. Host is empty while the
// server does not know the address.
type NodeAddr struct {
	Host     string `json:"host,omitempty"`
	Port     int    `json:"port"`
	BusPort  int    `json:"busPort"`
	Hostname string `json:"hostname,omitempty"`
}

// String is host:port, as a client dials it.
func (a NodeAddr) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// NodeFlags are the flags of a table entry, in the words of the project.
type NodeFlags struct {
	Myself     bool `json:"myself,omitempty"`
	Primary    bool `json:"primary,omitempty"`
	Replica    bool `json:"replica,omitempty"`
	Suspected  bool `json:"suspected,omitempty"` // "fail?": this server alone cannot reach the node
	Failed     bool `json:"failed,omitempty"`    // "fail": a majority agreed that the node is down
	Handshake  bool `json:"handshake,omitempty"` // the id is provisional, it changes once the node answers
	NoAddress  bool `json:"noAddress,omitempty"`
	NoFailover bool `json:"noFailover,omitempty"`
}

// OpenSlot is a slot left open by a move: Peer is the other end.
type OpenSlot struct {
	Slot int    `json:"slot"`
	Peer NodeID `json:"peer"`
}

// NodeEntry is one line of a node table: what the asked server believes.
type NodeEntry struct {
	ID            NodeID     `json:"id"`
	Addr          NodeAddr   `json:"addr"`
	Flags         NodeFlags  `json:"flags"`
	PrimaryID     NodeID     `json:"primaryID,omitempty"` // set on replicas only
	ConfigEpoch   uint64     `json:"configEpoch"`
	LinkConnected bool       `json:"linkConnected"`
	Slots         Slots      `json:"slots,omitempty"`
	Migrating     []OpenSlot `json:"migrating,omitempty"`
	Importing     []OpenSlot `json:"importing,omitempty"`
}

// NodeTable is one server's whole belief about its cluster.
type NodeTable struct {
	Nodes []NodeEntry `json:"nodes"`
	// Vars is the last line of a nodes.conf: a file without it was cut. CLUSTER
	// NODES has no such line.
	Vars *TableVars `json:"vars,omitempty"`
}

// TableVars is the last line of a nodes.conf.
type TableVars struct {
	CurrentEpoch  uint64 `json:"currentEpoch"`
	LastVoteEpoch uint64 `json:"lastVoteEpoch"`
}

// Myself is the entry of the server whose table this is.
func (t NodeTable) Myself() (NodeEntry, bool) {
	return t.find(func(n NodeEntry) bool { return n.Flags.Myself })
}

// ByID is the entry with that id.
func (t NodeTable) ByID(id NodeID) (NodeEntry, bool) {
	return t.find(func(n NodeEntry) bool { return n.ID == id })
}

func (t NodeTable) find(match func(NodeEntry) bool) (NodeEntry, bool) {
	if i := slices.IndexFunc(t.Nodes, match); i >= 0 {
		return t.Nodes[i], true
	}
	return NodeEntry{}, false
}

// ReplicasOf are the entries that follow the primary with that id, in table order.
func (t NodeTable) ReplicasOf(primary NodeID) []NodeEntry {
	var found []NodeEntry
	for _, n := range t.Nodes {
		if n.Flags.Replica && n.PrimaryID == primary {
			found = append(found, n)
		}
	}
	return found
}

// Owner is the entry that owns the slot by this table.
func (t NodeTable) Owner(slot int) (NodeEntry, bool) {
	return t.find(func(n NodeEntry) bool { return n.Slots.Contains(slot) })
}

// Owned are all slots that have an owner by this table, reachable or not.
func (t NodeTable) Owned() Slots {
	var ranges []SlotRange
	for _, n := range t.Nodes {
		ranges = append(ranges, n.Slots...)
	}
	return NewSlots(ranges...)
}

// ParseNodeTable reads the answer of CLUSTER NODES or a nodes.conf. It fails on
// a line it does not understand, on an id met twice, and on a text without any
// node: a damaged table is never taken for a small one. Unknown flags and unknown
// auxiliary fields are passed over.
func ParseNodeTable(text string) (NodeTable, error) {
	var table NodeTable
	for number, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := addLine(&table, fields); err != nil {
			return NodeTable{}, fmt.Errorf("node table, line %d: %w", number+1, err)
		}
	}
	if len(table.Nodes) == 0 {
		return NodeTable{}, errors.New("node table: no node in it")
	}
	return table, nil
}

func addLine(t *NodeTable, fields []string) error {
	if fields[0] == "vars" {
		vars, err := parseVars(fields[1:])
		t.Vars = &vars
		return err
	}
	entry, err := parseNodeEntry(fields)
	if err != nil {
		return err
	}
	if _, known := t.ByID(entry.ID); known {
		return fmt.Errorf("node %s is listed twice", entry.ID)
	}
	t.Nodes = append(t.Nodes, entry)
	return nil
}

func parseVars(fields []string) (TableVars, error) {
	var vars TableVars
	if len(fields)%2 != 0 {
		return vars, errors.New("vars without a value")
	}
	for i := 0; i < len(fields); i += 2 {
		value, err := strconv.ParseUint(fields[i+1], 10, 64)
		if err != nil {
			return vars, fmt.Errorf("%s %q is no number", fields[i], fields[i+1])
		}
		switch fields[i] {
		case "currentEpoch":
			vars.CurrentEpoch = value
		case "lastVoteEpoch":
			vars.LastVoteEpoch = value
		}
	}
	return vars, nil
}
