package agent

import (
	"fmt"
	"slices"
	"time"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// facts are all that the agent tells about its member.
func (b *board) facts(now time.Time) protocol.Facts {
	b.mu.Lock()
	defer b.mu.Unlock()
	facts := protocol.Facts{
		Version:      protocol.Version,
		AgentVersion: b.config.Version,
		ClusterID:    b.config.ClusterID,
		Shard:        b.config.Shard,
		Node:         b.config.Node,
		Server:       probe.State(b.seen, now),
		Decision:     b.verdict.Decision,
		Message:      b.verdict.Message,
		Ready:        b.seen.WasReady,
		NotReady:     b.notReady,
		LastStop:     b.lastStop,
		RefusedUsers: b.refused,
		Hold:         b.hold,
		Kept:         b.kept,
		LogCutBytes:  b.logCut,
	}
	if vain := waitsInVain(b.verdict, b.seen, now); vain != "" {
		facts.Message += vain
		facts.NotReady += vain
	}
	facts.Disk, facts.DiskBefore = twoSamples(slices.Clone(b.disks))
	tellFiles(&facts, b.files)
	if b.seen.View != nil {
		tellServer(&facts, *b.seen.View)
		facts.AgeMillis = now.Sub(b.viewedAt).Milliseconds()
		said := filesOf(b.seen.View.Info, b.held)
		said.GrowthBytes = b.lows.growth()
		facts.Files = &said
	}
	if b.seen.Phase >= probe.Up {
		facts.Empty = emptiness(b.files.empty, facts.Server, b.seen.View)
	}
	return facts
}

// closedTooLong is the time after which a server that was started behind closed
// doors should have learned of its successor: several node timeouts.
const closedTooLong = time.Minute

// waitsInVain says, with the remedy, that a server which was started behind
// closed doors still waits for its successor; nothing when it does not.
func waitsInVain(verdict guard.Verdict, seen probe.Seen, now time.Time) string {
	closed := now.Sub(seen.UpAt)
	if seen.Phase != probe.Up || !seen.Replaced || closed < closedTooLong {
		return ""
	}
	return fmt.Sprintf("; it has not learned of its successor for %s and admits nobody until it does: %s",
		closed.Truncate(time.Minute), verdict.Remedy)
}

// tellFiles fills in what the volume says.
func tellFiles(facts *protocol.Facts, found files) {
	facts.Empty = found.empty
	if !found.known {
		return
	}
	facts.NodeID = string(found.self.ID)
	facts.Role = found.role()
	facts.OwnsSlots = answer(!found.self.Slots.IsEmpty())
	facts.ConfigEpoch = found.self.ConfigEpoch
	facts.PrimaryID = string(found.self.PrimaryID)
}

// tellServer overrules it with the server's own word, where the server knows.
func tellServer(facts *protocol.Facts, view valkey.View) {
	if myself, known := view.Myself(); known {
		facts.NodeID = string(myself.ID)
		facts.Role = protocol.Role(view.Info.Role)
		facts.OwnsSlots = answer(!myself.Slots.IsEmpty())
		facts.ConfigEpoch = myself.ConfigEpoch
		facts.PrimaryID = string(myself.PrimaryID)
	}
	facts.ReplicationID = view.Info.Replication.ID
	facts.Offset = view.Info.Replication.Offset
	if loading := view.Info.Loading; loading != nil && facts.Server == protocol.ServerLoading {
		facts.Loading = &protocol.Loading{LoadedBytes: loading.LoadedBytes, TotalBytes: loading.TotalBytes}
	}
}

// emptiness is the word of a server that was started. Its files' word counts no
// longer as a yes: keys may have come from a primary. And it is no yes either
// while a primary may be sending some.
func emptiness(files protocol.Answer, state protocol.ServerState, view *valkey.View) protocol.Answer {
	switch {
	case view != nil && view.Info.Keys > 0:
		return protocol.No
	case state == protocol.ServerRunning && !receives(view.Info.Replication.Primary):
		return protocol.Yes
	case files == protocol.No && state == protocol.ServerLoading:
		return protocol.No
	}
	return ""
}

func receives(link *valkey.PrimaryLink) bool {
	return link != nil && (link.Up || link.SyncInProgress)
}

func answer(yes bool) protocol.Answer {
	if yes {
		return protocol.Yes
	}
	return protocol.No
}
