package valkey

import (
	"errors"
	"fmt"
)

// View is everything one server said in one look at it. It is plain data: it
// can be stored as JSON and be read again on another day.
//
// Info is always told. A server that is still loading may refuse the rest
// (before 8.0); then the Known flag is false and the value means nothing.
type View struct {
	Info         Info        `json:"info"`
	Table        NodeTable   `json:"table"`
	TableKnown   bool        `json:"tableKnown"`
	Cluster      ClusterInfo `json:"cluster"`
	ClusterKnown bool        `json:"clusterKnown"`
}

// Myself is the server's own entry in its table.
func (v View) Myself() (entry NodeEntry, known bool) {
	if !v.TableKnown {
		return NodeEntry{}, false
	}
	return v.Table.Myself()
}

// MyID is the server's own id.
func (v View) MyID() (id NodeID, known bool) {
	entry, known := v.Myself()
	return entry.ID, known
}

// ClusterInfo is the answer of CLUSTER INFO: the asked server's own judgement.
// StateOK alone does not mean that every slot has a live owner.
type ClusterInfo struct {
	StateOK       bool   `json:"stateOK"`
	SlotsAssigned int    `json:"slotsAssigned"`
	SlotsOK       int    `json:"slotsOK"`
	SlotsPFail    int    `json:"slotsPFail"`
	SlotsFail     int    `json:"slotsFail"`
	KnownNodes    int    `json:"knownNodes"` // itself and nodes in handshake included
	Size          int    `json:"size"`       // primaries that own slots: the voters
	CurrentEpoch  uint64 `json:"currentEpoch"`
	MyEpoch       uint64 `json:"myEpoch"` // a replica tells its primary's
}

// ParseClusterInfo reads the answer of CLUSTER INFO. It fails when the text
// names no state or when a number it reads is none.
func ParseClusterInfo(text string) (ClusterInfo, error) {
	fields := parseFields(text)
	info := ClusterInfo{
		StateOK:       fields.is("cluster_state", "ok"),
		SlotsAssigned: int(fields.number("cluster_slots_assigned")),
		SlotsOK:       int(fields.number("cluster_slots_ok")),
		SlotsPFail:    int(fields.number("cluster_slots_pfail")),
		SlotsFail:     int(fields.number("cluster_slots_fail")),
		KnownNodes:    int(fields.number("cluster_known_nodes")),
		Size:          int(fields.number("cluster_size")),
		CurrentEpoch:  fields.epoch("cluster_current_epoch"),
		MyEpoch:       fields.epoch("cluster_my_epoch"),
	}
	if _, told := fields.values["cluster_state"]; !told {
		fields.fail(errors.New("no state in it"))
	}
	if fields.err != nil {
		return ClusterInfo{}, fmt.Errorf("cluster info: %w", fields.err)
	}
	return info, nil
}

func (f *infoFields) epoch(name string) uint64 {
	number := f.number(name)
	if number < 0 {
		f.fail(fmt.Errorf("%s is negative", name))
	}
	return uint64(max(number, 0))
}
