// Package probe turns what was last seen of a server into the answers that the
// kubelet asks for. Its functions are pure: each returns why the answer is no,
// and nothing when it is yes.
//
// It asks nobody and keeps no state.
package probe

import (
	"fmt"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// DeadAfter is how long a server may say nothing at all before it counts as
	// dead. Until it says BUSY a long script is silent for 5 s, and a fork of a
	// large process or a stalled disk for some more; a restart costs more than either.
	DeadAfter = time.Minute
	// StuckAfter is how long a server may load without reading another byte
	// before it counts as dead. A single large value is read in one go.
	StuckAfter = 10 * time.Minute
	// PausedAfter is how long after its last progress a loading server no longer
	// counts as started.
	PausedAfter = time.Minute
	// SilentAfter is how long a server may say nothing before it is called
	// silent and no longer counts as ready: beyond the 5 s after which a server
	// that runs a script begins to answer BUSY, so that scripts do not make it flap.
	SilentAfter = 8 * time.Second
)

// Phase is how far the agent is with its server.
type Phase int

// The phases, in order.
const (
	// Deciding: there is no process yet.
	Deciding Phase = iota
	// Held: the agent keeps the server from starting.
	Held
	// Up: the process runs.
	Up
	// Leaving: the process is to end, and serves until its shard can do without it.
	Leaving
	// Stopping: the process was asked to end.
	Stopping
	// Stopped: the process has ended.
	Stopped
)

// Seen is what was last seen of a server.
type Seen struct {
	Phase Phase
	// UpAt is when the process was started.
	UpAt time.Time
	// AnsweredAt is when it last answered anything, an error included; zero: never.
	AnsweredAt time.Time
	// View is the last whole answer, nil before the first.
	View *valkey.View
	// ProgressAt is when loading last got further.
	ProgressAt time.Time
	// Replaced: the member was primary, and another one is by now.
	Replaced bool
	// WasReady is the answer of Ready the last time, EverReady whether it was
	// ever yes.
	WasReady, EverReady bool
}

func (s Seen) loading() bool { return s.View != nil && s.View.Info.Loading != nil }

// silence is how long the server has said nothing.
func (s Seen) silence(now time.Time) time.Duration {
	if s.AnsweredAt.Before(s.UpAt) {
		return now.Sub(s.UpAt)
	}
	return now.Sub(s.AnsweredAt)
}

// State is what the server is doing.
func State(seen Seen, now time.Time) protocol.ServerState {
	switch seen.Phase {
	case Held:
		return protocol.ServerHeld
	case Leaving, Stopping:
		return protocol.ServerStopping
	case Stopped:
		return protocol.ServerStopped
	case Deciding:
		return protocol.ServerStarting
	case Up:
	}
	switch {
	case seen.silence(now) > SilentAfter:
		return protocol.ServerSilent
	case seen.View == nil:
		return protocol.ServerStarting
	case seen.loading():
		return protocol.ServerLoading
	}
	return protocol.ServerRunning
}

// Started is yes once the data is loaded, while loading gets further, so that
// no amount of data outlasts a startup probe, and while the server is held,
// which may take as long as it takes.
func Started(seen Seen, now time.Time) string {
	switch {
	case seen.Phase == Deciding:
		return "the agent has not started the server yet"
	case seen.Phase != Up:
		return ""
	case seen.View == nil:
		return "the server does not answer yet"
	case seen.loading() && now.Sub(seen.ProgressAt) > PausedAfter:
		return fmt.Sprintf("loading has not got further for %s", round(now.Sub(seen.ProgressAt)))
	}
	return ""
}

// Live is no only for a server that runs but has been silent, or stuck in
// loading, for so long that a restart is the better bet. Whatever it answers,
// it is alive. A server that is stopping is left to do so.
func Live(seen Seen, now time.Time) string {
	if seen.Phase != Up {
		return ""
	}
	if silence := seen.silence(now); silence > DeadAfter {
		return fmt.Sprintf("the server has not answered for %s", round(silence))
	}
	if stuck := now.Sub(seen.ProgressAt); seen.loading() && stuck > StuckAfter {
		return fmt.Sprintf("loading has not got further for %s", round(stuck))
	}
	return ""
}

// Ready is yes while clients may be sent to the server. A replica needs its
// link to the primary, a primary the majority of primaries; how other shards
// fare is no matter.
func Ready(seen Seen, now time.Time) string {
	switch {
	case seen.Phase == Stopping:
		return "the server is stopping"
	case seen.Phase != Up && seen.Phase != Leaving:
		return "the server is not running"
	case seen.View == nil:
		return "the server does not answer yet"
	}
	if seen.silence(now) > SilentAfter {
		return fmt.Sprintf("the server has not answered for more than %s", SilentAfter)
	}
	if seen.loading() {
		return "the server is loading its data"
	}
	if seen.View.Info.Role == valkey.RoleReplica {
		return replicaReady(seen.View.Info)
	}
	if seen.Replaced {
		return "the shard has another primary, and the server has not become its replica yet"
	}
	return primaryReady(*seen.View, seen.WasReady)
}

func replicaReady(info valkey.Info) string {
	switch link := info.Replication.Primary; {
	case link == nil:
		return "the replica has no primary"
	case link.SyncInProgress:
		return "the replica is copying its primary's data"
	case !link.Up:
		return "the replica's link to its primary is down"
	}
	return ""
}

func primaryReady(view valkey.View, wasReady bool) string {
	myself, known := view.Myself()
	switch {
	case !known || !view.ClusterKnown:
		return "the server does not tell its place in the cluster"
	case myself.Slots.IsEmpty():
		return "the server owns no slots and follows no primary"
	}
	reached, voters := voters(view.Table, wasReady)
	switch {
	case reached <= voters/2:
		return fmt.Sprintf("the server reaches %d of %d primaries", reached, voters)
	case !view.Cluster.StateOK:
		return "the server says that the cluster is down"
	}
	return ""
}

// voters counts the primaries that own slots and those of them within reach.
// To become ready takes a connection: right after a start nobody is suspected
// yet, however wrong all addresses are. To stay ready it is enough that nobody is
// suspected, since links come and go.
func voters(table valkey.NodeTable, wasReady bool) (reached, voters int) {
	for _, node := range table.Nodes {
		if !node.Flags.Primary || node.Slots.IsEmpty() {
			continue
		}
		voters++
		suspected := node.Flags.Failed || node.Flags.Suspected
		if node.Flags.Myself || !suspected && (node.LinkConnected || wasReady) {
			reached++
		}
	}
	return reached, voters
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }
