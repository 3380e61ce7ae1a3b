// Package protocol is what agents say to each other and to the operator: one
// document of facts, served over HTTP also while the server is down. It holds
// no secret and imports the standard library only, so that both sides of the
// wire can use it.
package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Port is the TCP port on which an agent listens.
const Port = 9122

// Version of the facts document. Fields are only ever added, so a reader
// works with agents of other versions; unknown fields are ignored.
const Version = 1

// Paths that an agent serves, all of them GET.
const (
	// PathFacts answers 200 with a Facts document.
	PathFacts = "/v1/facts"
	// PathStarted answers 200 once the server has loaded its data, or while loading gets further.
	PathStarted = "/started"
	// PathLive answers 200 unless the agent must be restarted.
	PathLive = "/live"
	// PathReady answers 200 while clients may be sent to this member.
	PathReady = "/ready"
)

// ServerState is what the agent's server is doing.
type ServerState string

// The states of a server.
const (
	// ServerStarting: the agent has not started the server yet, or it does not answer yet.
	ServerStarting ServerState = "starting"
	// ServerHeld: the agent keeps the server from starting; Decision says why.
	ServerHeld ServerState = "held"
	// ServerLoading: the server reads its data from disk.
	ServerLoading ServerState = "loading"
	// ServerRunning: the server answers.
	ServerRunning ServerState = "running"
	// ServerSilent: the server's process runs, but does not answer.
	ServerSilent ServerState = "silent"
	// ServerStopping: the server is to stop, and nobody hands anything over to it any more.
	ServerStopping ServerState = "stopping"
	// ServerStopped: the server has ended.
	ServerStopped ServerState = "stopped"
)

// Decision is how an agent decided about a start.
type Decision string

// The decisions of an agent.
const (
	// DecisionUndecided: nothing is decided yet.
	DecisionUndecided Decision = ""
	// DecisionStart: nothing speaks against starting.
	DecisionStart Decision = "Start"
	// DecisionStartReplaced: the shard has another primary by now; this member starts to become its replica.
	DecisionStartReplaced Decision = "StartReplaced"
	// DecisionHeldEmpty: this member owns slots but has no data, and a peer may have it.
	DecisionHeldEmpty Decision = "HeldEmpty"
	// DecisionForeignVolume: the volume belongs to another cluster or member.
	DecisionForeignVolume Decision = "ForeignVolume"
	// DecisionVolumeLocked: another agent uses the volume.
	DecisionVolumeLocked Decision = "VolumeLocked"
	// DecisionVolumeFull: the server ended for want of space on its volume; it is
	// started again, in the same container, once there is some.
	DecisionVolumeFull Decision = "VolumeFull"
	// DecisionVolumeUnusable: the volume cannot be read or written; Message says why.
	DecisionVolumeUnusable Decision = "VolumeUnusable"
	// DecisionTableDamaged: the node table on the volume cannot be read, or is gone while there is
	// data, and no copy can take its place: the member has lost its place in the cluster.
	DecisionTableDamaged Decision = "TableDamaged"
	// DecisionDataDamaged: the server cannot load its log or dump; Message quotes it.
	DecisionDataDamaged Decision = "DataDamaged"
	// DecisionVersionTooOld: the files were written by a newer server, and this one cannot read them.
	DecisionVersionTooOld Decision = "VersionTooOld"
	// DecisionServerFailed: the server ended by itself; Message quotes it.
	DecisionServerFailed Decision = "ServerFailed"
)

// Role of a server.
type Role string

// The roles; empty means unknown.
const (
	RolePrimary Role = "primary"
	RoleReplica Role = "replica"
)

// Answer is yes, no, or unknown when empty.
type Answer string

// The two known answers.
const (
	Yes Answer = "yes"
	No  Answer = "no"
)

// Facts is what an agent knows of its member. Zero values mean unknown.
type Facts struct {
	Version      int    `json:"version"`
	AgentVersion string `json:"agentVersion,omitempty"`

	// ClusterID, Shard and Node identify the member.
	ClusterID string `json:"clusterID"`
	Shard     int    `json:"shard"`
	Node      int    `json:"node"`

	// NodeID is the id in the Valkey cluster: the server's own word, else
	// that of the node table on the volume. Empty for a member that never ran.
	NodeID string `json:"nodeID,omitempty"`
	// Role is the server's own word, else that of the node table on the volume.
	Role Role `json:"role,omitempty"`
	// OwnsSlots says whether the member owns slots, from the same source as Role.
	OwnsSlots Answer `json:"ownsSlots,omitempty"`
	// ConfigEpoch of the member, from the same source as Role; a replica tells
	// its primary's.
	ConfigEpoch uint64 `json:"configEpoch,omitempty"`
	// PrimaryID is the id of the primary that a replica follows, from the same
	// source as Role.
	PrimaryID string `json:"primaryID,omitempty"`
	// ReplicationID and Offset are the running server's.
	ReplicationID string `json:"replicationID,omitempty"`
	Offset        int64  `json:"offset,omitempty"`
	// Empty says whether the member holds no key: the running server's word,
	// else from the files on the volume. Yes means also that none is on its way: a
	// replica does not say it while its link to a primary is up.
	Empty Answer `json:"empty,omitempty"`
	// AgeMillis is how old the server's word is in all of the above.
	AgeMillis int64 `json:"ageMillis,omitempty"`

	Server   ServerState `json:"server"`
	Decision Decision    `json:"decision,omitempty"`
	// Message explains Decision in a sentence.
	Message string `json:"message,omitempty"`
	// Hold names the wait for somebody's word that a member is in: a StartEmpty that
	// names another one is refused. It is empty while no word would help.
	Hold string `json:"hold,omitempty"`
	// Ready is the answer of PathReady, and NotReady why it is false.
	Ready    bool   `json:"ready"`
	NotReady string `json:"notReady,omitempty"`

	// Loading is the progress of loading, while Server is loading.
	Loading *Loading `json:"loading,omitempty"`
	// Disk is the use of the data volume, and DiskBefore what it was one
	// SampleInterval earlier: two looks that agree are believed.
	Disk       *Disk `json:"disk,omitempty"`
	DiskBefore *Disk `json:"diskBefore,omitempty"`
	// Files is what the server says of its files.
	Files *Files `json:"files,omitempty"`
	// LastStop is how the server ended last.
	LastStop *Stop `json:"lastStop,omitempty"`
	// Kept is what the agent did to the member's files at this start, and where it
	// keeps those that could not be used, in a sentence; empty: nothing.
	Kept string `json:"kept,omitempty"`
	// LogCutBytes is how much of the end of the append-only file the server left out
	// at this start, because it was not written completely.
	LogCutBytes int64 `json:"logCutBytes,omitempty"`
	// RefusedUsers are the users whose permissions the server refuses: they are as
	// they were before, or off.
	RefusedUsers []string `json:"refusedUsers,omitempty"`
}

// Mended is what became of files that could not be used as they were, in a
// sentence; empty when all could.
func (f Facts) Mended() string {
	if f.LogCutBytes == 0 {
		return f.Kept
	}
	cut := fmt.Sprintf("the last %d bytes of the append-only file were not written completely, and were left out", f.LogCutBytes)
	if f.Kept == "" {
		return cut
	}
	return f.Kept + "; " + cut
}

// Loading is how far a server is with reading its data.
type Loading struct {
	LoadedBytes int64 `json:"loadedBytes"`
	TotalBytes  int64 `json:"totalBytes"`
}

// Disk is the use of a file system, as statfs says. The ballast that an agent
// keeps in reserve counts as used whether it is in place or was released for
// the server's last words: a volume on which the server cannot write any more
// has 0 bytes available and is 100 % used. TotalInodes 0 means that the file
// system does not count inodes.
type Disk struct {
	TotalBytes     int64     `json:"totalBytes"`
	AvailableBytes int64     `json:"availableBytes"`
	TotalInodes    int64     `json:"totalInodes,omitempty"`
	FreeInodes     int64     `json:"freeInodes,omitempty"`
	SampledAt      time.Time `json:"sampledAt"`
}

// SampleInterval is the time between two samples of the disk that are told.
const SampleInterval = 10 * time.Second

// Files is what a running server says of the files that it keeps its data in.
// Sizes are in bytes.
type Files struct {
	// Log says that the server keeps an append-only file.
	Log bool `json:"log,omitempty"`
	// LogBytes is the size of the append-only file, LogBaseBytes what it was
	// right after the last rewrite.
	LogBytes     int64 `json:"logBytes,omitempty"`
	LogBaseBytes int64 `json:"logBaseBytes,omitempty"`
	// Writing says that a rewrite or a dump is being written.
	Writing bool `json:"writing,omitempty"`
	// NextBytes is the most that the next rewrite or dump is expected to take
	// beside the files that are there; 0 while one is being written, which
	// counts as used already.
	NextBytes int64 `json:"nextBytes,omitempty"`
	// SaveSeconds is how long the last rewrite or dump took, whichever took longer; 0
	// while none was made.
	SaveSeconds int64 `json:"saveSeconds,omitempty"`
	// WriteFailed says that the server cannot write its append-only file, and
	// so refuses writes. RewriteFailed says that the last rewrite or dump failed.
	WriteFailed   bool `json:"writeFailed,omitempty"`
	RewriteFailed bool `json:"rewriteFailed,omitempty"`
	// MaxMemoryBytes is the server's maxmemory, 0 for none, and UsedMemoryBytes
	// what its data takes now.
	MaxMemoryBytes  int64 `json:"maxMemoryBytes,omitempty"`
	UsedMemoryBytes int64 `json:"usedMemoryBytes,omitempty"`
	// GrowthBytes is by how much the use of the disk grew within the last
	// hour, at its lowest points: or since the agent began, or the volume grew.
	GrowthBytes int64 `json:"growthBytes,omitempty"`
}

// Stop is how a server ended.
type Stop struct {
	At    time.Time `json:"at"`
	Clean bool      `json:"clean"`
	// Note is how it ended, what became of its slots, and what it said last.
	Note string `json:"note,omitempty"`
	// TookMillis is the time from the word that the member is to stop to the server's
	// end; 0 for a server that ended by itself.
	TookMillis int64 `json:"tookMillis,omitempty"`
}

// maxDocument bounds what is read from a peer: a facts document is about 1 KiB.
const maxDocument = 64 << 10

// Get asks the agent at host (an IP address or a name) for its facts. The
// context bounds the whole exchange.
func Get(ctx context.Context, client *http.Client, host string) (Facts, error) {
	url := "http://" + net.JoinHostPort(host, strconv.Itoa(Port)) + PathFacts
	return GetURL(ctx, client, url)
}

// GetURL asks the agent at a whole URL for its facts.
func GetURL(ctx context.Context, client *http.Client, url string) (Facts, error) {
	var facts Facts
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return facts, fmt.Errorf("asking an agent: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return facts, fmt.Errorf("asking an agent: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return facts, fmt.Errorf("asking an agent: %s answered %s", url, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxDocument)).Decode(&facts); err != nil {
		return Facts{}, fmt.Errorf("reading an agent's facts: %w", err)
	}
	return facts, nil
}

// Members says who belongs to the cluster: the operator's word, in the
// cluster's ConfigMap. Shards lists, for each shard, the indices of its nodes.
type Members struct {
	ClusterID string  `json:"clusterID"`
	Shards    [][]int `json:"shards"`
}
