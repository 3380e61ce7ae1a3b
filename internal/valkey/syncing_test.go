package valkey_test

import "valkey.io/valkey-operator/internal/valkey"

// syncing is what replicas and their primaries tell of the data between them.
var syncing = map[string]func(rig){
	"a link to a primary that is frozen stays up, and says for how long nothing came": func(r rig) {
		r.formed(1, 1)
		r.silence(r.T, 0)
		r.until(r.T, "nothing came for some seconds", func() bool {
			link := r.view(1).Info.Replication.Primary
			return link.Up && link.LastIOSeconds >= 3 && link.DownSeconds == 0
		})
	},
	"a link to a primary that died is down, and says since when": func(r rig) {
		r.formed(1, 1)
		r.kill(r.T, 0)
		r.until(r.T, "the link is down", func() bool {
			link := r.view(1).Info.Replication.Primary
			return !link.Up && link.LastIOSeconds == -1 && link.DownSeconds > 0
		})
	},
	"a frozen replica stays online at its primary, and lags": func(r rig) {
		r.formed(1, 1)
		r.silence(r.T, 1)
		r.until(r.T, "it lags", func() bool {
			replicas := r.view(0).Info.Replication.Replicas
			return len(replicas) == 1 && replicas[0].State == "online" && replicas[0].LagSeconds >= 2
		})
	},
	"a replica in its first sync is not online, says so, and is asked in vain to take over": func(r rig) {
		r.formed(1, 0)
		r.writeSome(0)
		r.syncsSlowly(1)
		if err := r.failover(1, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		for _, link := range r.view(0).Info.Replication.Replicas {
			if link.State == "online" {
				r.Errorf("its primary says %+v", link)
			}
		}
		if keys := r.keysOf(1); keys != 0 {
			r.Errorf("it has %d keys already", keys)
		}
		r.untilFollows(1, 0)
	},
	"a replica whose first sync was cut off has nothing and does not stand": func(r rig) {
		r.formed(3, 0)
		r.writeSome(0, 1, 2)
		r.syncsSlowly(3)
		id := r.id(3)
		for i := range 3 {
			r.until(r.T, "everyone knows of the replica", func() bool {
				entry, _ := r.view(i).Table.ByID(id)
				return entry.Flags.Replica
			})
		}
		r.kill(r.T, 0)
		r.untilFailed(3, 0)
		r.linger()
		view := r.view(3)
		link := view.Info.Replication.Primary
		if view.Info.Role != valkey.RoleReplica || view.Info.Keys != 0 || link.Up || link.DownSeconds != -1 {
			r.Errorf("it is %s with %d keys: %+v", view.Info.Role, view.Info.Keys, link)
		}
	},
	"a demoted primary goes on from where both were": func(r rig) {
		r.formed(1, 1)
		r.writeSome(1)
		history := r.view(0).Info.Replication.ID
		if err := r.failover(1, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(1)
		r.untilDemoted(1)
		old, successor := r.view(0).Info.Replication, r.view(1).Info.Replication
		if successor.ID == history || successor.ID2 != history || old.ID != successor.ID || old.Offset > successor.Offset {
			r.Errorf("the history was %s; the old primary has %+v, its successor %+v", history, old, successor)
		}
	},
	"a replica that comes back has what was written meanwhile": func(r rig) {
		r.formed(1, 1)
		r.kill(r.T, 1)
		keys := r.writeSome(0)
		r.start(r.T, 1, same)
		r.untilFollows(1, 0)
		if now := r.keysOf(1); now != keys {
			r.Errorf("it has %d keys of %d", now, keys)
		}
	},
	"a primary that is told to stop lets its replica have everything first": func(r rig) {
		r.formed(1, 1)
		keys := r.writeSome(0)
		r.stop(r.T, 0)
		if now := r.keysOf(1); now != keys {
			r.Errorf("the replica has %d keys of %d", now, keys)
		}
	},
	"an emptied primary has no history in common with its replica": func(r rig) {
		r.formed(1, 1)
		r.writeSome(1)
		before := r.view(1).Info.Replication
		r.kill(r.T, 0)
		r.start(r.T, 0, emptied)
		after := r.view(0).Info
		if after.Keys != 0 || after.Replication.ID == before.ID || after.Replication.Offset >= before.Offset {
			r.Errorf("the replica was at %+v, the primary comes back with %d keys at %+v", before, after.Keys, after.Replication)
		}
	},
}

// syncsSlowly adds a server that follows server 0, and is in its first sync.
func (r rig) syncsSlowly(replica int) {
	r.Helper()
	r.slowSync(r.T, 0)
	r.add(r.T, 1)
	r.greet(replica)
	id := r.id(0)
	r.until(r.T, "the new server knows the primary", func() bool {
		entry, known := r.view(replica).Table.ByID(id)
		return known && !entry.Flags.Handshake && r.view(replica).Table.Owned().Count() == valkey.SlotCount
	})
	r.replicate(replica, 0)
	r.until(r.T, "the sync is under way", func() bool { return r.view(replica).Info.Replication.Primary.SyncInProgress })
}
