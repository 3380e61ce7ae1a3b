package valkey

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Role is the part a server plays in replication right now.
type Role string

// The two roles. A server that has said neither has no Role: the zero value.
const (
	RolePrimary Role = "primary"
	RoleReplica Role = "replica"
)

// Info is the answer of INFO as far as the operator reads it. A number that
// the server left out, because it does not apply or the version lacks it, is
// in a pointer or named as such; everything else is always told.
type Info struct {
	Version       string `json:"version"`
	RunID         string `json:"runID"` // new at every start of the process
	UptimeSeconds int64  `json:"uptimeSeconds"`
	Role          Role   `json:"role"`
	Keys          int64  `json:"keys"` // over all databases, expired ones not yet removed included

	Loading     *LoadProgress   `json:"loading,omitempty"` // nil: the dataset is loaded
	Replication ReplicationInfo `json:"replication"`
	Persistence PersistenceInfo `json:"persistence"`
	Memory      MemoryInfo      `json:"memory"`
}

// LoadProgress tells how far a server has come in reading its files at start.
type LoadProgress struct {
	LoadedBytes int64 `json:"loadedBytes"`
	TotalBytes  int64 `json:"totalBytes"`
	ETASeconds  int64 `json:"etaSeconds"`
}

// ReplicationInfo is the replication section.
type ReplicationInfo struct {
	ID string `json:"id"`
	// ID2 is the history that the server followed before ID, 40 zeros for none.
	ID2 string `json:"id2"`
	// Offset is where in the history ID this server stands: what it has
	// produced as a primary, what it has processed as a replica.
	Offset int64 `json:"offset"`
	// Primary is told by replicas only.
	Primary *PrimaryLink `json:"primary,omitempty"`
	// Replicas are the ones connected to this server, which may be itself a replica.
	Replicas []ReplicaLink `json:"replicas,omitempty"`
}

// PrimaryLink is a replica's view of the connection to its primary.
type PrimaryLink struct {
	Host           string `json:"host"`
	Port           int    `json:"port"`
	Up             bool   `json:"up"`
	SyncInProgress bool   `json:"syncInProgress"`
	// LastIOSeconds is the time since the primary was last heard, -1 while the link is down.
	LastIOSeconds int64 `json:"lastIOSeconds"`
	// DownSeconds is the time since the link went down, -1 when it has not been
	// up since the server's start, 0 while it is up.
	DownSeconds int64 `json:"downSeconds"`
}

// InSync says whether the replica has its primary's data and gets what is new. A
// server that is no replica, and so has no link, is not.
func (l *PrimaryLink) InSync() bool { return l != nil && l.Up && !l.SyncInProgress }

// ReplicaLink is a server's view of one replica that is connected to it.
type ReplicaLink struct {
	Host       string `json:"host"`
	Port       int    `json:"port"`
	State      string `json:"state"` // "online" once the first sync is over
	Offset     int64  `json:"offset"`
	LagSeconds int64  `json:"lagSeconds"` // since its last acknowledgement
}

// PersistenceInfo is the persistence section.
type PersistenceInfo struct {
	BGSaveInProgress     bool  `json:"bgSaveInProgress"`
	LastBGSaveOK         bool  `json:"lastBGSaveOK"`
	LastBGSaveSeconds    int64 `json:"lastBGSaveSeconds"` // how long it took, -1: never ran
	LastSaveUnix         int64 `json:"lastSaveUnix"`      // seconds; the start of the process before the first save
	ChangesSinceLastSave int64 `json:"changesSinceLastSave"`
	AOFEnabled           bool  `json:"aofEnabled"`
	AOFRewriteInProgress bool  `json:"aofRewriteInProgress"`
	AOFLastRewriteOK     bool  `json:"aofLastRewriteOK"`
	AOFRewriteSeconds    int64 `json:"aofRewriteSeconds"` // how long the last rewrite took, -1: none ran
	AOFLastWriteOK       bool  `json:"aofLastWriteOK"`
	AOFCurrentBytes      int64 `json:"aofCurrentBytes"`
	// AOFBaseBytes is how large the append-only file was right after the last rewrite.
	AOFBaseBytes int64 `json:"aofBaseBytes"`
	// AOFPendingBytes are what the server has acknowledged and not yet written to it.
	AOFPendingBytes int64 `json:"aofPendingBytes"`
}

// MemoryInfo is the memory section, in bytes.
type MemoryInfo struct {
	Used int64 `json:"used"`
	// Max is the configured limit; 0 means none.
	Max int64 `json:"max"`
	// Dataset is the part of Used that keys and values take, without buffers; 0
	// also where the server reckons itself below that.
	Dataset int64 `json:"dataset"`
}

// ParseInfo reads the answer of INFO. It fails when the text names no role or
// when a number it reads is none; fields it does not know are passed over.
func ParseInfo(text string) (Info, error) {
	fields := parseFields(text)
	info := Info{
		Version:       fields.text("valkey_version"),
		RunID:         fields.text("run_id"),
		UptimeSeconds: fields.number("uptime_in_seconds"),
		Keys:          fields.keys(),
		Loading:       fields.loading(),
		Replication:   fields.replication(),
		Persistence:   fields.persistence(),
		Memory:        fields.memory(),
	}
	switch fields.text("role") {
	case "master", "primary":
		info.Role = RolePrimary
	case "slave", "replica":
		info.Role = RoleReplica
	default:
		fields.fail(errors.New("no role in it"))
	}
	if fields.err != nil {
		return Info{}, fmt.Errorf("info: %w", fields.err)
	}
	return info, nil
}

// infoFields are the name:value lines of an answer. The first thing that
// cannot be read is kept in err.
type infoFields struct {
	values map[string]string
	err    error
}

func parseFields(text string) *infoFields {
	values := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r"), ":"); ok {
			values[name] = value
		}
	}
	return &infoFields{values: values}
}

func (f *infoFields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *infoFields) text(name string) string { return f.values[name] }

func (f *infoFields) is(name, value string) bool { return f.values[name] == value }

// number is 0 for a field that is not there.
func (f *infoFields) number(name string) int64 {
	value, told := f.values[name]
	if !told {
		return 0
	}
	return f.parse(name, value)
}

func (f *infoFields) parse(name, value string) int64 {
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		f.fail(fmt.Errorf("%s %q is no number", name, value))
	}
	return number
}

// keys adds up the lines of the keyspace section: db0:keys=3,expires=0,avg_ttl=0.
func (f *infoFields) keys() int64 {
	total := int64(0)
	for name, value := range f.values {
		database, isDB := strings.CutPrefix(name, "db")
		if _, err := strconv.ParseUint(database, 10, 32); !isDB || err != nil {
			continue
		}
		total += f.parse(name, attributes(value)["keys"])
	}
	return total
}

// attributes reads name=value pairs apart by commas.
func attributes(text string) map[string]string {
	values := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}

func (f *infoFields) loading() *LoadProgress {
	if !f.is("loading", "1") {
		return nil
	}
	return &LoadProgress{
		LoadedBytes: f.number("loading_loaded_bytes"),
		TotalBytes:  f.number("loading_total_bytes"),
		ETASeconds:  f.number("loading_eta_seconds"),
	}
}

func (f *infoFields) persistence() PersistenceInfo {
	return PersistenceInfo{
		BGSaveInProgress:     f.is("rdb_bgsave_in_progress", "1"),
		LastBGSaveOK:         f.is("rdb_last_bgsave_status", "ok"),
		LastBGSaveSeconds:    f.number("rdb_last_bgsave_time_sec"),
		LastSaveUnix:         f.number("rdb_last_save_time"),
		ChangesSinceLastSave: f.number("rdb_changes_since_last_save"),
		AOFEnabled:           f.is("aof_enabled", "1"),
		AOFRewriteInProgress: f.is("aof_rewrite_in_progress", "1"),
		AOFLastRewriteOK:     f.is("aof_last_bgrewrite_status", "ok"),
		AOFRewriteSeconds:    f.number("aof_last_rewrite_time_sec"),
		AOFLastWriteOK:       f.is("aof_last_write_status", "ok"),
		AOFCurrentBytes:      f.number("aof_current_size"),
		AOFBaseBytes:         f.number("aof_base_size"),
		AOFPendingBytes:      f.number("aof_buffer_length"),
	}
}

func (f *infoFields) memory() MemoryInfo {
	memory := MemoryInfo{Used: f.number("used_memory"), Max: f.number("maxmemory")}
	// A server with next to no data tells a negative number as an unsigned one.
	dataset, err := strconv.ParseInt(f.text("used_memory_dataset"), 10, 64)
	if err == nil && dataset <= memory.Used {
		memory.Dataset = max(dataset, 0)
	}
	return memory
}

func (f *infoFields) replication() ReplicationInfo {
	section := ReplicationInfo{
		ID:     f.text("master_replid"),
		ID2:    f.text("master_replid2"),
		Offset: f.number("master_repl_offset"),
	}
	if host, isReplica := f.values["master_host"]; isReplica {
		section.Offset = f.number("slave_repl_offset")
		section.Primary = &PrimaryLink{
			Host:           host,
			Port:           int(f.number("master_port")),
			Up:             f.is("master_link_status", "up"),
			SyncInProgress: f.is("master_sync_in_progress", "1"),
			LastIOSeconds:  f.number("master_last_io_seconds_ago"),
			DownSeconds:    f.number("master_link_down_since_seconds"), // told while it is down
		}
	}
	for i := range f.number("connected_slaves") {
		// slave0:ip=127.0.0.1,port=7001,state=online,offset=14,lag=0,type=replica
		value, told := f.values["slave"+strconv.FormatInt(i, 10)]
		if !told {
			break
		}
		section.Replicas = append(section.Replicas, f.replica(attributes(value)))
	}
	return section
}

func (f *infoFields) replica(values map[string]string) ReplicaLink {
	return ReplicaLink{
		Host:       values["ip"],
		Port:       int(f.parse("replica port", values["port"])),
		State:      values["state"],
		Offset:     f.parse("replica offset", values["offset"]),
		LagSeconds: f.parse("replica lag", values["lag"]),
	}
}
