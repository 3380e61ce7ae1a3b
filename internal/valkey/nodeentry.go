package valkey

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The columns of a table line. Two of them, the times of ping and pong, are of
// the server's own clock and are not kept.
const (
	columnID = iota
	columnAddr
	columnFlags
	columnPrimary
	columnPing
	columnPong
	columnEpoch
	columnLink
	columnSlots
)

func parseNodeEntry(fields []string) (NodeEntry, error) {
	if len(fields) < columnSlots {
		return NodeEntry{}, fmt.Errorf("%d columns instead of at least %d", len(fields), columnSlots)
	}
	entry := NodeEntry{ID: NodeID(fields[columnID]), LinkConnected: fields[columnLink] == "connected"}
	if !isNodeID(fields[columnID]) {
		return NodeEntry{}, fmt.Errorf("%q is no node id", fields[columnID])
	}
	var err error
	if entry.Addr, err = parseNodeAddr(fields[columnAddr]); err != nil {
		return NodeEntry{}, err
	}
	entry.Flags = parseNodeFlags(fields[columnFlags])
	if primary := fields[columnPrimary]; primary != "-" {
		if !isNodeID(primary) {
			return NodeEntry{}, fmt.Errorf("%q is no node id", primary)
		}
		entry.PrimaryID = NodeID(primary)
	}
	if entry.ConfigEpoch, err = strconv.ParseUint(fields[columnEpoch], 10, 64); err != nil {
		return NodeEntry{}, fmt.Errorf("config epoch %q is no number", fields[columnEpoch])
	}
	return entry, entry.addSlots(fields[columnSlots:])
}

// idLength is CLUSTER_NAMELEN of the server: 160 bits written in hexadecimal.
const idLength = 40

func isNodeID(text string) bool {
	return len(text) == idLength && strings.Trim(text, "0123456789abcdef") == ""
}

// parseNodeAddr reads host:port@busport, followed by an optional hostname and
// auxiliary name=value fields, all apart by commas. The host is an IPv6 address
// without brackets, or empty.
func parseNodeAddr(text string) (NodeAddr, error) {
	address, aux, _ := strings.Cut(text, ",")
	hostPort, bus, hasBus := strings.Cut(address, "@")
	colon := strings.LastIndexByte(hostPort, ':')
	if colon < 0 {
		return NodeAddr{}, fmt.Errorf("%q is no address", text)
	}
	addr := NodeAddr{Host: hostPort[:colon]}
	var err error
	if addr.Port, err = parsePort(hostPort[colon+1:]); err != nil {
		return NodeAddr{}, err
	}
	if hasBus {
		if addr.BusPort, err = parsePort(bus); err != nil {
			return NodeAddr{}, err
		}
	}
	hostname, _, _ := strings.Cut(aux, ",")
	if !strings.Contains(hostname, "=") {
		addr.Hostname = hostname
	}
	return addr, nil
}

func parsePort(text string) (int, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no port", text)
	}
	return int(port), nil
}

func parseNodeFlags(text string) NodeFlags {
	var flags NodeFlags
	for word := range strings.SplitSeq(text, ",") {
		switch word {
		case "myself":
			flags.Myself = true
		case "master", "primary":
			flags.Primary = true
		case "slave", "replica":
			flags.Replica = true
		case "fail?":
			flags.Suspected = true
		case "fail":
			flags.Failed = true
		case "handshake":
			flags.Handshake = true
		case "noaddr":
			flags.NoAddress = true
		case "nofailover":
			flags.NoFailover = true
		}
	}
	return flags
}

func (n *NodeEntry) addSlots(fields []string) error {
	var ranges []SlotRange
	for _, field := range fields {
		if strings.HasPrefix(field, "[") {
			if err := n.addOpenSlot(field); err != nil {
				return err
			}
			continue
		}
		r, err := parseSlotRange(field)
		if err != nil {
			return err
		}
		ranges = append(ranges, r)
	}
	n.Slots = NewSlots(ranges...)
	return nil
}

// addOpenSlot reads [slot->-id], a slot that leaves, or [slot-<-id], one that comes.
func (n *NodeEntry) addOpenSlot(field string) error {
	inner, closed := strings.CutSuffix(field[1:], "]")
	if !closed {
		return errors.New("open slot without a closing bracket")
	}
	if slot, peer, ok := strings.Cut(inner, "->-"); ok {
		return appendOpenSlot(&n.Migrating, slot, peer)
	}
	if slot, peer, ok := strings.Cut(inner, "-<-"); ok {
		return appendOpenSlot(&n.Importing, slot, peer)
	}
	return fmt.Errorf("%q is no open slot", field)
}

func appendOpenSlot(list *[]OpenSlot, slot, peer string) error {
	number, err := parseSlot(slot)
	if err != nil {
		return err
	}
	if !isNodeID(peer) {
		return fmt.Errorf("%q is no node id", peer)
	}
	*list = append(*list, OpenSlot{Slot: number, Peer: NodeID(peer)})
	return nil
}
