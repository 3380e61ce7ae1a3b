package valkeytest

import (
	"net/netip"
	"slices"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

func (n *Node) view() valkey.View {
	return valkey.View{
		Info:       n.info(),
		Table:      n.table(),
		TableKnown: true,
		Cluster:    n.clusterInfo(), ClusterKnown: true,
	}
}

// table lists by id: real tables are in no order, so nobody may count on its
// own line being the first.
func (n *Node) table() valkey.NodeTable {
	var table valkey.NodeTable
	for _, p := range slices.SortedFunc(slices.Values(n.all()), byID) {
		table.Nodes = append(table.Nodes, n.entry(p))
	}
	return table
}

func (n *Node) entry(p *peer) valkey.NodeEntry {
	entry := valkey.NodeEntry{
		ID:   p.id,
		Addr: nodeAddr(p.address),
		Flags: valkey.NodeFlags{
			Myself:    p == n.self,
			Primary:   p.isPrimary(),
			Replica:   p.primaryID != "",
			Suspected: p.suspected, Failed: p.failed,
			Handshake: p.handshake, NoAddress: p.noAddress, NoFailover: p.noFailover,
		},
		PrimaryID:     p.primaryID,
		ConfigEpoch:   p.epoch,
		LinkConnected: p.connected || p == n.self,
		Slots:         p.slots,
	}
	if p == n.self {
		entry.Addr = nodeAddr(n.address)
		entry.Addr.Host = n.shownHost
	}
	if primary := n.find(p.primaryID); primary != nil {
		entry.ConfigEpoch = primary.epoch
	}
	return entry
}

func nodeAddr(address netip.AddrPort) valkey.NodeAddr {
	if !address.IsValid() {
		return valkey.NodeAddr{}
	}
	port := int(address.Port())
	return valkey.NodeAddr{Host: address.Addr().String(), Port: port, BusPort: port + busOffset}
}

func (n *Node) info() valkey.Info {
	info := valkey.Info{
		Version:       n.cluster.options.Version,
		RunID:         n.runID,
		UptimeSeconds: int64((n.cluster.now - n.startedAt) / time.Second),
		Role:          valkey.RolePrimary,
		Keys:          int64(n.keys()),
		Replication:   valkey.ReplicationInfo{ID: n.replID, ID2: n.replID2, Offset: n.offset, Replicas: n.replicaLinks()},
		Persistence: valkey.PersistenceInfo{
			LastBGSaveOK: true, LastBGSaveSeconds: -1,
			AOFEnabled: !n.loading(), AOFLastRewriteOK: true, AOFLastWriteOK: true,
		},
	}
	if n.loading() {
		total := int64(n.loadedAt - n.startedAt)
		info.Loading = &valkey.LoadProgress{
			LoadedBytes: int64(n.cluster.now - n.startedAt), TotalBytes: total,
			ETASeconds: int64((n.loadedAt - n.cluster.now) / time.Second),
		}
	}
	if !n.isPrimary() {
		info.Role = valkey.RoleReplica
		info.Replication.Primary = n.primaryLink()
	}
	return info
}

func (n *Node) primaryLink() *valkey.PrimaryLink {
	link := &valkey.PrimaryLink{Up: n.link.up, SyncInProgress: n.link.syncing, LastIOSeconds: -1}
	switch {
	case n.link.up:
		link.LastIOSeconds = int64((n.cluster.now - n.link.heardAt) / time.Second)
	case n.link.downAt == 0:
		link.DownSeconds = -1
	default:
		link.DownSeconds = int64((n.cluster.now - n.link.downAt) / time.Second)
	}
	if primary := n.find(n.self.primaryID); primary != nil && primary.address.IsValid() {
		link.Host, link.Port = primary.address.Addr().String(), int(primary.address.Port())
	}
	return link
}

func (n *Node) replicaLinks() []valkey.ReplicaLink {
	var links []valkey.ReplicaLink
	for _, replica := range n.cluster.nodes {
		connected := replica.link.up || replica.link.syncing
		if !connected || !replica.running || replica.link.process != n.runID {
			continue
		}
		link := valkey.ReplicaLink{
			Host: replica.address.Addr().String(), Port: int(replica.address.Port()),
			State: "online", Offset: replica.offset,
			LagSeconds: int64((n.cluster.now - replica.link.heardAt) / time.Second),
		}
		if replica.link.syncing {
			link.State, link.LagSeconds = "wait_bgsave", 0
		}
		links = append(links, link)
	}
	return links
}

func (n *Node) clusterInfo() valkey.ClusterInfo {
	info := valkey.ClusterInfo{
		StateOK:       n.serves() && !n.loading(),
		SlotsAssigned: n.owned().Count(),
		KnownNodes:    len(n.peers) + 1,
		Size:          n.size(),
		CurrentEpoch:  n.currentEpoch,
		MyEpoch:       n.entry(n.self).ConfigEpoch,
	}
	for _, p := range n.all() {
		switch {
		case p.failed:
			info.SlotsFail += p.slots.Count()
		case p.suspected:
			info.SlotsPFail += p.slots.Count()
		}
	}
	info.SlotsOK = info.SlotsAssigned - info.SlotsFail - info.SlotsPFail
	return info
}
