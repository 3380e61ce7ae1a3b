package valkey_test

import "valkey.io/valkey-operator/internal/valkey"

// surviving is what a cluster does when servers fail, move and come back.
var surviving = map[string]func(rig){
	"a graceful failover swaps the roles, raises the epoch and keeps the keys": func(r rig) {
		r.formed(3, 1)
		keys := r.writeSome(0, 1, 2)
		before, _ := r.view(0).Myself()
		if err := r.failover(3, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(3)
		r.untilDemoted(3)
		after, _ := r.view(3).Myself()
		if after.ConfigEpoch <= before.ConfigEpoch || !after.Slots.Equal(before.Slots) {
			r.Errorf("before %+v, after %+v", before, after)
		}
		r.untilServing(6)
		if now := r.keysOf(3, 1, 2); now != keys {
			r.Errorf("%d keys of %d are left", now, keys)
		}
	},
	"a graceful failover works in a cluster of one shard": func(r rig) {
		r.formed(1, 1)
		if err := r.failover(1, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(1)
		r.untilDemoted(1)
	},
	"a graceful failover that is asked for twice happens once": func(r rig) {
		r.formed(3, 1)
		keys := r.writeSome(0, 1, 2)
		for range 2 {
			// The second one finds the first under way, or done.
			if err := r.failover(3, valkey.Graceful); !valkey.Answered(err) {
				r.Fatal(err)
			}
		}
		r.untilPromoted(3)
		r.untilDemoted(3)
		r.untilServing(6)
		if now := r.keysOf(3, 1, 2); now != keys {
			r.Errorf("%d keys of %d are left", now, keys)
		}
	},
	"a graceful failover that no majority votes for leaves the primary in its place": func(r rig) {
		r.formed(3, 1)
		for _, dead := range []int{1, 2, 4, 5} {
			r.kill(r.T, dead)
		}
		if err := r.failover(3, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.linger()
		mine, _ := r.view(0).Myself()
		if role := r.view(3).Info.Role; role != valkey.RoleReplica || !mine.Flags.Primary || mine.Slots.IsEmpty() {
			r.Errorf("the replica is %s, the primary %+v", role, mine)
		}
	},
	"a sibling follows the new primary": func(r rig) {
		r.formed(1, 2)
		if err := r.failover(1, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(1)
		r.untilFollows(2, 1)
		r.untilDemoted(1)
	},
	"a replaced primary does not serve, even when its successor is gone": func(r rig) {
		r.formed(3, 1)
		r.kill(r.T, 0)
		r.untilPromoted(3)
		successor := r.id(3)
		r.until(r.T, "the others know the successor", func() bool {
			owner, _ := r.view(1).Table.Owner(0)
			return owner.ID == successor
		})
		r.kill(r.T, 3)
		r.start(r.T, 0, same)
		r.until(r.T, "it names its successor as its primary", func() bool {
			mine, _ := r.view(0).Myself()
			return mine.PrimaryID == successor && mine.Slots.IsEmpty()
		})
	},
	"less than a majority suspects and condemns nobody": func(r rig) {
		r.formed(3, 0)
		dead := []valkey.NodeID{r.id(1), r.id(2)}
		r.kill(r.T, 1)
		r.kill(r.T, 2)
		flags := func(id valkey.NodeID) valkey.NodeFlags {
			entry, _ := r.view(0).Table.ByID(id)
			return entry.Flags
		}
		r.until(r.T, "both are suspected", func() bool { return flags(dead[0]).Suspected && flags(dead[1]).Suspected })
		r.linger()
		for _, id := range dead {
			if flags(id).Failed {
				r.Errorf("one voter of three condemned %s", id)
			}
		}
		if r.view(0).Cluster.StateOK {
			r.Error("one voter of three serves")
		}
	},
	"a frozen primary wakes up replaced": func(r rig) {
		r.formed(3, 1)
		r.silence(r.T, 0)
		r.untilPromoted(3)
		r.wake(r.T, 0)
		r.untilDemoted(3)
		r.untilServing(6)
	},
	"a primary that loads for longer than the node timeout counts as failed": func(r rig) {
		r.formed(3, 0)
		r.writeSome(0, 1, 2)
		id := r.id(2)
		r.kill(r.T, 2)
		r.start(r.T, 2, slowly)
		r.until(r.T, "the others call it failed", func() bool {
			entry, _ := r.view(0).Table.ByID(id)
			return entry.Flags.Failed
		})
		if r.view(2).Info.Loading == nil {
			r.Error("it has loaded already: this proves nothing")
		}
	},
	"a primary refuses every kind of failover": func(r rig) {
		r.formed(1, 1)
		for _, mode := range []valkey.FailoverMode{valkey.Graceful, valkey.Force, valkey.Takeover} {
			r.refused(0, func(l link) error { return l.Failover(r.ctx(), mode) })
		}
	},
	"a graceful failover without a primary is refused": func(r rig) {
		r.formed(3, 1)
		r.kill(r.T, 0)
		r.until(r.T, "the replica has noticed", func() bool {
			primary := r.view(3).Info.Replication.Primary
			return primary == nil || !primary.Up
		})
		r.refused(3, func(l link) error { return l.Failover(r.ctx(), valkey.Graceful) })
	},
	"a forced failover needs no time-out where a majority lives": func(r rig) {
		r.formed(3, 1)
		r.kill(r.T, 0)
		if err := r.failover(3, valkey.Force); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(3)
	},
	"a dead primary is replaced and comes back as a replica": func(r rig) {
		r.formed(3, 1)
		r.writeSome(0, 1, 2)
		r.kill(r.T, 0)
		r.untilPromoted(3)
		r.start(r.T, 0, same)
		r.untilDemoted(3)
		r.untilServing(6)
	},
	"without a majority nobody is elected and a takeover works": func(r rig) {
		r.formed(1, 1)
		r.writeSome(1)
		r.kill(r.T, 0)
		r.linger()
		if err := r.failover(1, valkey.Force); err != nil {
			r.Fatal(err)
		}
		r.linger()
		if role := r.view(1).Info.Role; role != valkey.RoleReplica {
			r.Fatalf("without a vote the replica became %s", role)
		}
		if err := r.failover(1, valkey.Takeover); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(1)
		r.start(r.T, 0, same)
		r.untilDemoted(1)
	},
	"one greeting each heals a cluster whose servers all moved": func(r rig) {
		r.formed(3, 0)
		keys := r.writeSome(0, 1, 2)
		ids := []valkey.NodeID{r.id(0), r.id(1), r.id(2)}
		for i := range 3 {
			r.kill(r.T, i)
		}
		for i := range 3 {
			r.start(r.T, i, moved)
		}
		r.linger()
		if r.view(0).Cluster.StateOK {
			r.Error("servers that cannot know one another's addresses serve")
		}
		r.greet(1)
		r.greet(2)
		r.untilServing(3)
		for i, id := range ids {
			if r.id(i) != id {
				r.Errorf("server %d changed its id", i)
			}
		}
		if now := r.keysOf(0, 1, 2); now != keys {
			r.Errorf("%d keys of %d are left", now, keys)
		}
	},
	"a server that moved alone is found again by the others": func(r rig) {
		r.formed(3, 0)
		r.kill(r.T, 2)
		r.start(r.T, 2, moved)
		host, _ := r.place(2)
		r.until(r.T, "its new address is known", func() bool {
			entry, _ := r.view(0).Table.ByID(r.id(2))
			return entry.Addr.Host == host
		})
		r.untilServing(3)
	},
	"a primary that comes back empty at once empties its replica": func(r rig) {
		r.formed(1, 1)
		r.writeSome(1)
		r.kill(r.T, 0)
		r.start(r.T, 0, emptied)
		r.until(r.T, "the replica is empty", func() bool { return r.view(1).Info.Keys == 0 })
	},
	"a blank server in the place of another leaves the old one without an address": func(r rig) {
		r.formed(2, 0)
		old := r.id(1)
		r.kill(r.T, 1)
		r.start(r.T, 1, blank)
		if r.id(1) == old {
			r.Fatal("a blank server has the old id")
		}
		r.until(r.T, "the old one has no address", func() bool {
			entry, known := r.view(0).Table.ByID(old)
			return known && entry.Flags.NoAddress && !entry.Slots.IsEmpty()
		})
	},
	"a replica that may not stand does not replace its primary": func(r rig) {
		r.formed(3, 1)
		r.do(3, func(l link) error { return l.ConfigSet(r.ctx(), "cluster-replica-no-failover", "yes") })
		r.until(r.T, "others know", func() bool {
			entry, _ := r.view(1).Table.ByID(r.id(3))
			return entry.Flags.NoFailover
		})
		r.kill(r.T, 0)
		r.linger()
		if role := r.view(3).Info.Role; role != valkey.RoleReplica {
			r.Errorf("it became %s", role)
		}
	},
}
