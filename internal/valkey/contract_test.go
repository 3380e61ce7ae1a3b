package valkey_test

import (
	"context"
	"fmt"
	"testing"

	"valkey.io/valkey-operator/internal/valkey"
)

// bench is a set of servers that the contract is held against: the ones in
// memory here, real ones in servers_test.go. Servers go by their number.
type bench interface {
	processes
	strains
	clock
	clients
}

// clients know where servers are.
type clients interface {
	connect(t *testing.T, server int) link
	place(server int) (host string, port int)
	write(t *testing.T, key string)
}

// processes come and go.
type processes interface {
	add(t *testing.T, count int)
	kill(t *testing.T, server int)
	// silence makes a running server answer nothing, until it is woken.
	silence(t *testing.T, server int)
	wake(t *testing.T, server int)
	start(t *testing.T, server int, how restart)
}

// strains are what makes a stop or a sync less than a moment.
type strains interface {
	// stop ends a server as Kubernetes does: with SIGTERM, and time.
	stop(t *testing.T, server int)
	// slowSync makes full syncs from a server take some seconds.
	slowSync(t *testing.T, server int)
}

// clock is real or virtual.
type clock interface {
	// until waits for a condition, and fails the test when it never holds.
	until(t *testing.T, what string, holds func() bool)
	// linger lets several node timeouts pass.
	linger()
}

// link is all that both kinds of connections can do.
type link interface {
	valkey.Server
	valkey.Epochs
	valkey.Configurer
}

// restart says what a server finds when it comes back.
type restart int

const (
	same    restart = iota
	moved           // on a new address
	emptied         // without its dataset
	blank           // without anything
	slowly          // loading for some time
	barred          // with a password that no primary accepts
)

// rig is a bench and what scenarios have in common.
type rig struct {
	bench
	*testing.T
}

func (r rig) ctx() context.Context { return r.Context() }

func (r rig) server(server int) link { return r.connect(r.T, server) }

func (r rig) view(server int) valkey.View {
	r.Helper()
	conn := r.server(server)
	defer conn.Close()
	view, err := conn.View(r.ctx())
	if err != nil {
		r.Fatalf("view of server %d: %v", server, err)
	}
	return view
}

func (r rig) id(server int) valkey.NodeID {
	r.Helper()
	id, known := r.view(server).MyID()
	if !known {
		r.Fatalf("server %d does not know its id", server)
	}
	return id
}

// do sends a command that has to be accepted.
func (r rig) do(server int, command func(link) error) {
	r.Helper()
	if err := r.try(server, command); err != nil {
		r.Fatalf("server %d: %v", server, err)
	}
}

func (r rig) try(server int, command func(link) error) error {
	r.Helper()
	conn := r.server(server)
	defer conn.Close()
	return command(conn)
}

// refused sends a command that has to be answered with an error.
func (r rig) refused(server int, command func(link) error) {
	r.Helper()
	err := r.try(server, command)
	if err == nil {
		r.Fatalf("server %d accepted the command", server)
	}
	if !valkey.Answered(err) {
		r.Fatalf("server %d did not answer: %v", server, err)
	}
}

// greet makes server 0 greet another one.
func (r rig) greet(server int) {
	r.Helper()
	host, port := r.place(server)
	r.do(0, func(l link) error { return l.Meet(r.ctx(), host, port, 0) })
}

func (r rig) replicate(replica, primary int) {
	r.Helper()
	id := r.id(primary)
	r.do(replica, func(l link) error { return l.Replicate(r.ctx(), id) })
}

func (r rig) failover(server int, mode valkey.FailoverMode) error {
	r.Helper()
	return r.try(server, func(l link) error { return l.Failover(r.ctx(), mode) })
}

// acquainted adds servers that all know one another.
func (r rig) acquainted(count int) {
	r.Helper()
	r.add(r.T, count)
	for i := 1; i < count; i++ {
		r.greet(i)
	}
	r.until(r.T, "everyone knows everyone", func() bool {
		for i := range count {
			if !isWhole(r.view(i), count) {
				return false
			}
		}
		return true
	})
}

func isWhole(view valkey.View, count int) bool {
	for _, n := range view.Table.Nodes {
		if n.Flags.Handshake || !n.LinkConnected || n.Flags.NoAddress || n.Flags.Failed || n.Flags.Suspected {
			return false
		}
	}
	return len(view.Table.Nodes) == count
}

// formed makes a serving cluster: first all primaries, then the replicas;
// server shards+i follows server i%shards.
func (r rig) formed(shards, replicas int) {
	r.Helper()
	members := shards * (replicas + 1)
	r.acquainted(members)
	for shard := range shards {
		r.do(shard, func(l link) error { return l.AddSlots(r.ctx(), valkey.ShardSlots(shards, shard)) })
	}
	for i := shards; i < members; i++ {
		r.replicate(i, i%shards)
	}
	r.untilServing(members)
	for i := shards; i < members; i++ {
		r.until(r.T, fmt.Sprintf("replica %d is in sync", i), func() bool {
			primary := r.view(i).Info.Replication.Primary
			return primary != nil && primary.Up
		})
		r.until(r.T, "everyone knows of the replica", func() bool {
			return len(r.view(0).Table.ReplicasOf(r.id(i%shards))) >= replicas
		})
	}
}

// untilServing waits until the first servers all say that all is well.
func (r rig) untilServing(members int) {
	r.Helper()
	r.until(r.T, "all servers serve", func() bool {
		for i := range members {
			if view := r.view(i); !view.Cluster.StateOK || view.Cluster.SlotsOK != valkey.SlotCount {
				return false
			}
		}
		return true
	})
}

func (r rig) untilPromoted(server int) {
	r.Helper()
	r.until(r.T, fmt.Sprintf("server %d is a primary", server), func() bool {
		view := r.view(server)
		entry, _ := view.Myself()
		return view.Info.Role == valkey.RolePrimary && entry.Flags.Primary
	})
}

// untilDemoted waits until server 0, once a primary, has all that its successor has.
func (r rig) untilDemoted(successor int) {
	r.Helper()
	r.untilFollows(0, successor)
}

func (r rig) untilFollows(server, primary int) {
	r.Helper()
	id := r.id(primary)
	r.until(r.T, fmt.Sprintf("server %d follows server %d", server, primary), func() bool {
		view := r.view(server)
		entry, _ := view.Myself()
		link := view.Info.Replication.Primary
		return entry.PrimaryID == id && link != nil && link.Up && !link.SyncInProgress
	})
}

// writeSome writes keys into all parts of the slots and waits until the given
// servers hold as many in all as were written.
func (r rig) writeSome(holders ...int) (count int64) {
	r.Helper()
	const keys = 30
	for i := range keys {
		r.write(r.T, fmt.Sprintf("key-%d", i))
	}
	r.until(r.T, "the keys are everywhere", func() bool { return r.keysOf(holders...) == keys })
	return keys
}

func (r rig) keysOf(servers ...int) int64 {
	total := int64(0)
	for _, i := range servers {
		total += r.view(i).Info.Keys
	}
	return total
}

func holdContract(t *testing.T, open func(*testing.T) bench) {
	t.Helper()
	for _, scenarios := range []map[string]func(rig){forming, surviving, replacing, syncing, adjusting, configuring} {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(rig{bench: open(t), T: t})
			})
		}
	}
}
