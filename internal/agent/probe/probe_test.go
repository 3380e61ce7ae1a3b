package probe_test

import (
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

var now = time.Unix(1800000000, 0)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// up is a server that started an hour ago and said this just now.
func up(view *valkey.View) probe.Seen {
	return probe.Seen{Phase: probe.Up, UpAt: ago(time.Hour), AnsweredAt: now, View: view, ProgressAt: now}
}

func with(seen probe.Seen, change func(*probe.Seen)) probe.Seen {
	change(&seen)
	return seen
}

func loading() *valkey.View {
	return &valkey.View{Info: valkey.Info{Role: valkey.RolePrimary, Loading: &valkey.LoadProgress{LoadedBytes: 5, TotalBytes: 10}}}
}

func replica(link *valkey.PrimaryLink) *valkey.View {
	return &valkey.View{Info: valkey.Info{Role: valkey.RoleReplica, Replication: valkey.ReplicationInfo{Primary: link}}}
}

// primary sees itself, with slots, and other nodes.
func primary(stateOK bool, others ...valkey.NodeEntry) *valkey.View {
	myself := voter(0, func(n *valkey.NodeEntry) { n.Flags.Myself, n.LinkConnected = true, true })
	return &valkey.View{
		Info:       valkey.Info{Role: valkey.RolePrimary},
		TableKnown: true, Table: valkey.NodeTable{Nodes: append([]valkey.NodeEntry{myself}, others...)},
		ClusterKnown: true, Cluster: valkey.ClusterInfo{StateOK: stateOK},
	}
}

func voter(slot int, changes ...func(*valkey.NodeEntry)) valkey.NodeEntry {
	entry := valkey.NodeEntry{Flags: valkey.NodeFlags{Primary: true}, LinkConnected: true, Slots: valkey.NewSlots(valkey.SlotRange{First: slot, Last: slot})}
	for _, change := range changes {
		change(&entry)
	}
	return entry
}

func suspected(n *valkey.NodeEntry)    { n.Flags.Suspected = true }
func failed(n *valkey.NodeEntry)       { n.Flags.Failed = true }
func disconnected(n *valkey.NodeEntry) { n.LinkConnected = false }

func TestProbes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		seen                 probe.Seen
		state                protocol.ServerState
		started, live, ready bool
	}{
		"before the decision":  {probe.Seen{}, protocol.ServerStarting, false, true, false},
		"held":                 {probe.Seen{Phase: probe.Held}, protocol.ServerHeld, true, true, false},
		"stopping":             {with(up(primary(true)), func(s *probe.Seen) { s.Phase = probe.Stopping }), protocol.ServerStopping, true, true, false},
		"stopped":              {with(up(primary(true)), func(s *probe.Seen) { s.Phase = probe.Stopped }), protocol.ServerStopped, true, true, false},
		"just started":         {probe.Seen{Phase: probe.Up, UpAt: ago(time.Second)}, protocol.ServerStarting, false, true, false},
		"answers errors only":  {probe.Seen{Phase: probe.Up, UpAt: ago(time.Hour), AnsweredAt: now}, protocol.ServerStarting, false, true, false},
		"never answered":       {probe.Seen{Phase: probe.Up, UpAt: ago(2 * probe.DeadAfter)}, protocol.ServerSilent, false, false, false},
		"loads":                {up(loading()), protocol.ServerLoading, true, true, false},
		"pauses loading":       {with(up(loading()), func(s *probe.Seen) { s.ProgressAt = ago(2 * probe.PausedAfter) }), protocol.ServerLoading, false, true, false},
		"is stuck loading":     {with(up(loading()), func(s *probe.Seen) { s.ProgressAt = ago(2 * probe.StuckAfter) }), protocol.ServerLoading, false, false, false},
		"a script runs":        {with(up(primary(true)), func(s *probe.Seen) { s.AnsweredAt = ago(7 * time.Second) }), protocol.ServerRunning, true, true, true},
		"silent":               {with(up(primary(true)), func(s *probe.Seen) { s.AnsweredAt = ago(2 * probe.SilentAfter) }), protocol.ServerSilent, true, true, false},
		"dead":                 {with(up(primary(true)), func(s *probe.Seen) { s.AnsweredAt = ago(2 * probe.DeadAfter) }), protocol.ServerSilent, true, false, false},
		"a replica":            {up(replica(&valkey.PrimaryLink{Up: true})), protocol.ServerRunning, true, true, true},
		"a replica copies":     {up(replica(&valkey.PrimaryLink{SyncInProgress: true})), protocol.ServerRunning, true, true, false},
		"a replica cut off":    {up(replica(&valkey.PrimaryLink{})), protocol.ServerRunning, true, true, false},
		"a replica of nobody":  {up(replica(nil)), protocol.ServerRunning, true, true, false},
		"a replaced primary":   {with(up(primary(true)), func(s *probe.Seen) { s.Replaced = true }), protocol.ServerRunning, true, true, false},
		"a replaced replica":   {with(up(replica(&valkey.PrimaryLink{Up: true})), func(s *probe.Seen) { s.Replaced = true }), protocol.ServerRunning, true, true, true},
		"a primary alone":      {up(primary(true)), protocol.ServerRunning, true, true, true},
		"a primary, state bad": {up(primary(false)), protocol.ServerRunning, true, true, false},
		"a primary, no table":  {up(&valkey.View{Info: valkey.Info{Role: valkey.RolePrimary}}), protocol.ServerRunning, true, true, false},
		"a blank primary": {up(&valkey.View{
			Info: valkey.Info{Role: valkey.RolePrimary}, TableKnown: true, ClusterKnown: true,
			Table: valkey.NodeTable{Nodes: []valkey.NodeEntry{{Flags: valkey.NodeFlags{Myself: true, Primary: true}}}},
		}), protocol.ServerRunning, true, true, false},
		"a primary with a majority":        {up(primary(true, voter(1), voter(2, failed))), protocol.ServerRunning, true, true, true},
		"a primary with half of two":       {up(primary(true, voter(1, failed))), protocol.ServerRunning, true, true, false},
		"a primary in a minority":          {up(primary(true, voter(1, suspected), voter(2, failed))), protocol.ServerRunning, true, true, false},
		"a primary not connected yet":      {up(primary(true, voter(1, disconnected), voter(2, disconnected))), protocol.ServerRunning, true, true, false},
		"a ready primary loses its links":  {with(up(primary(true, voter(1, disconnected), voter(2, disconnected))), func(s *probe.Seen) { s.WasReady = true }), protocol.ServerRunning, true, true, true},
		"a ready primary loses its voters": {with(up(primary(true, voter(1, failed), voter(2, suspected))), func(s *probe.Seen) { s.WasReady = true }), protocol.ServerRunning, true, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := probe.State(test.seen, now); got != test.state {
				t.Errorf("state %s, want %s", got, test.state)
			}
			for probed, want := range map[string]struct {
				whyNot string
				yes    bool
			}{
				"started": {probe.Started(test.seen, now), test.started},
				"live":    {probe.Live(test.seen, now), test.live},
				"ready":   {probe.Ready(test.seen, now), test.ready},
			} {
				if yes := want.whyNot == ""; yes != want.yes {
					t.Errorf("%s: %t (%s), want %t", probed, yes, want.whyNot, want.yes)
				}
			}
		})
	}
}
