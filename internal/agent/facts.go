package agent

import (
	"time"

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
		Disk:         b.disk,
		LastStop:     b.lastStop,
	}
	tellFiles(&facts, b.files)
	if b.seen.View != nil {
		tellServer(&facts, *b.seen.View)
	}
	return facts
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
}

// tellServer overrules it with the server's own word, where the server knows.
func tellServer(facts *protocol.Facts, view valkey.View) {
	if myself, known := view.Myself(); known {
		facts.NodeID = string(myself.ID)
		facts.Role = protocol.Role(view.Info.Role)
		facts.OwnsSlots = answer(!myself.Slots.IsEmpty())
		facts.ConfigEpoch = myself.ConfigEpoch
	}
	facts.ReplicationID = view.Info.Replication.ID
	facts.Offset = view.Info.Replication.Offset
	if loading := view.Info.Loading; loading != nil && facts.Server == protocol.ServerLoading {
		facts.Loading = &protocol.Loading{LoadedBytes: loading.LoadedBytes, TotalBytes: loading.TotalBytes}
	}
	facts.Empty = emptiness(*facts, view.Info)
}

// emptiness keeps the files' word while the server has read only a part of them,
// and knows nothing while a replica copies, or when the server no longer answers.
func emptiness(facts protocol.Facts, info valkey.Info) protocol.Answer {
	link := info.Replication.Primary
	switch {
	case info.Loading != nil && info.Keys == 0:
		return facts.Empty
	case info.Keys > 0:
		return protocol.No
	case facts.Server != protocol.ServerRunning, link != nil && link.SyncInProgress:
		return ""
	}
	return protocol.Yes
}

func answer(yes bool) protocol.Answer {
	if yes {
		return protocol.Yes
	}
	return protocol.No
}
