package valkey_test

import (
	"fmt"
	"strings"

	"valkey.io/valkey-operator/internal/valkey"
)

// replacing is what CLUSTER FAILOVER does and leaves, and what a primary finds
// that comes back before or after it was replaced.
var replacing = map[string]func(rig){
	"a graceful failover waits for a replica that is behind": func(r rig) {
		r.formed(3, 1)
		r.silence(r.T, 3)
		keys := r.writeSome(0, 1, 2)
		r.wake(r.T, 3)
		if err := r.failover(3, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(3)
		r.untilDemoted(3)
		if now := r.keysOf(3, 1, 2); now != keys {
			r.Errorf("%d keys of %d are left", now, keys)
		}
	},
	"a graceful failover is accepted, and not done, while the primary is frozen": func(r rig) {
		r.formed(1, 1)
		r.silence(r.T, 0)
		if err := r.failover(1, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.linger()
		if role := r.view(1).Info.Role; role != valkey.RoleReplica {
			r.Errorf("it became %s", role)
		}
		r.wake(r.T, 0)
		r.untilOnePrimary(0, 1)
	},
	"a primary whose replica dies amid a failover serves on": func(r rig) {
		r.formed(1, 1)
		r.silence(r.T, 0)
		if err := r.failover(1, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.kill(r.T, 1)
		r.wake(r.T, 0)
		r.until(r.T, "it serves", func() bool { return r.view(0).Cluster.StateOK })
		r.writeSome(0)
	},
	"a graceful failover is refused for as long as the primary counts as failed": func(r rig) {
		r.formed(3, 1)
		r.forbidStanding(3)
		r.silence(r.T, 0)
		r.untilFailed(3, 0)
		r.says(3, valkey.Graceful, "Master is down or failed, please use CLUSTER FAILOVER FORCE")
	},
	"a forced failover replaces a primary that is frozen, which wakes up as a replica": func(r rig) {
		r.formed(3, 1)
		keys := r.writeSome(0, 1, 2)
		r.until(r.T, "the replica has them", func() bool { return r.keysOf(3) == r.keysOf(0) })
		r.silence(r.T, 0)
		if err := r.failover(3, valkey.Force); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(3)
		r.wake(r.T, 0)
		r.untilDemoted(3)
		r.untilServing(6)
		if now := r.keysOf(3, 1, 2); now != keys {
			r.Errorf("%d keys of %d are left", now, keys)
		}
	},
	"a takeover replaces a primary that lives, above every epoch": func(r rig) {
		r.formed(2, 1)
		keys := r.writeSome(0, 1)
		r.until(r.T, "the replica has them", func() bool { return r.keysOf(2) == r.keysOf(0) })
		before := r.highestEpoch(1)
		if err := r.failover(2, valkey.Takeover); err != nil {
			r.Fatal(err)
		}
		if mine, _ := r.view(2).Myself(); !mine.Flags.Primary || mine.ConfigEpoch <= before {
			r.Errorf("right after the answer, epochs being up to %d: %+v", before, mine)
		}
		r.untilDemoted(2)
		r.untilServing(4)
		if now := r.keysOf(2, 1); now != keys {
			r.Errorf("%d keys of %d are left", now, keys)
		}
	},
	"a replica that may not stand can be told to": func(r rig) {
		r.formed(3, 1)
		for next, mode := range map[int]valkey.FailoverMode{3: valkey.Graceful, 4: valkey.Force} {
			r.forbidStanding(next)
			if err := r.failover(next, mode); err != nil {
				r.Fatal(err)
			}
			r.untilPromoted(next)
			r.untilFollows(next-3, next)
		}
	},
	"every failover forth and back raises the epoch, and everyone hears of it": func(r rig) {
		r.formed(3, 1)
		last := r.highestEpoch(1)
		for _, next := range []int{3, 0, 3} {
			before := 3 - next
			if err := r.failover(next, valkey.Graceful); err != nil {
				r.Fatal(err)
			}
			r.untilPromoted(next)
			r.untilFollows(before, next)
			id := r.id(next)
			for i := range 6 {
				r.until(r.T, fmt.Sprintf("server %d knows the owner by a higher epoch", i), func() bool {
					owner, _ := r.view(i).Table.Owner(0)
					return owner.ID == id && owner.ConfigEpoch > last
				})
			}
			last = r.highestEpoch(1)
		}
	},
	"failovers of two shards at once leave each with one primary, and all slots served": func(r rig) {
		r.formed(3, 1)
		for _, replica := range []int{3, 4} {
			if err := r.failover(replica, valkey.Graceful); err != nil {
				r.Fatal(err)
			}
		}
		r.untilOnePrimary(0, 3)
		r.untilOnePrimary(1, 4)
		r.untilServing(6)
	},
	"a replica that loads cannot be told to take over": func(r rig) {
		r.formed(1, 1)
		r.writeSome(1)
		r.kill(r.T, 1)
		r.start(r.T, 1, slowly)
		if err := r.failover(1, valkey.Takeover); !valkey.IsLoading(err) {
			r.Errorf("it says %v", err)
		}
	},
	"a primary that comes back before it is replaced goes on with all it had": func(r rig) {
		r.formed(3, 1)
		keys := r.writeSome(0, 1, 2)
		before, history := r.highestEpoch(1), r.view(0).Info.Replication.ID
		r.forbidStanding(3)
		r.kill(r.T, 0)
		r.start(r.T, 0, same)
		r.untilServing(6)
		r.untilFollows(3, 0)
		if now := r.keysOf(0, 1, 2); now != keys || r.highestEpoch(1) != before {
			r.Errorf("%d keys of %d are left, the epoch was %d and is %d", now, keys, before, r.highestEpoch(1))
		}
		if now := r.view(0).Info.Replication; now.ID == history || strings.Trim(now.ID2, "0") != "" {
			r.Errorf("a log kept the history: it was %s, now it is %s after %s", history, now.ID, now.ID2)
		}
	},
	"a replica that was just started does not stand for its dead primary": func(r rig) {
		r.formed(3, 1)
		r.writeSome(0, 1, 2)
		r.kill(r.T, 3)
		r.kill(r.T, 0)
		r.start(r.T, 3, same)
		r.untilFailed(3, 0)
		r.linger()
		view := r.view(3)
		if view.Info.Role != valkey.RoleReplica || view.Info.Replication.Primary.DownSeconds != -1 {
			r.Errorf("it is %s: %+v", view.Info.Role, view.Info.Replication.Primary)
		}
	},
	"a replica that stopped first and is forced undoes what came later, also on its primary": func(r rig) {
		r.formed(3, 1)
		r.write(r.T, "key-0")
		r.until(r.T, "the replicas have the first", func() bool { return r.keysOf(3, 4, 5) == 1 })
		old := r.keysOf(3)
		r.stop(r.T, 3)
		r.writeSome(0, 1, 2)
		if r.keysOf(0) == old {
			r.Fatal("nothing came later")
		}
		r.kill(r.T, 0)
		r.start(r.T, 3, same)
		r.untilLinked(3, 1, 2)
		if err := r.failover(3, valkey.Force); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(3)
		r.start(r.T, 0, same)
		r.untilDemoted(3)
		if now := r.keysOf(0); now != old || r.keysOf(3) != old {
			r.Errorf("the old primary has %d keys and the new one %d, which had %d", now, r.keysOf(3), old)
		}
	},
	"a graceful failover undoes writes of a primary that lives, when neither side replicated since its start": func(r rig) {
		r.formed(3, 1)
		r.stop(r.T, 3)
		keys := r.writeSome(0, 1, 2)
		r.stop(r.T, 0)
		r.start(r.T, 0, same)
		r.start(r.T, 3, barred)
		r.untilServing(3)
		r.until(r.T, "the replica knows", func() bool { return r.view(3).Cluster.StateOK })
		r.untilLinked(3, 0, 1, 2)
		link := r.view(3).Info.Replication
		if link.Primary.Up || link.Offset != 0 || r.view(0).Info.Replication.Offset != 0 {
			r.Fatalf("this proves nothing: %+v", link)
		}
		if err := r.failover(3, valkey.Graceful); err != nil {
			r.Fatal(err)
		}
		r.untilPromoted(3)
		r.untilDemoted(3)
		if now := r.keysOf(3, 1, 2); now == keys || r.keysOf(3) != 0 {
			r.Errorf("all %d keys of %d are there", now, keys)
		}
	},
	"after everything stopped and started in any order everyone is who he was": func(r rig) {
		r.formed(3, 1)
		keys := r.writeSome(0, 1, 2)
		for _, i := range []int{4, 0, 2, 5, 1, 3} {
			r.stop(r.T, i)
		}
		for _, i := range []int{3, 1, 5, 2, 4, 0} {
			r.start(r.T, i, same)
		}
		r.untilServing(6)
		for i := range 3 {
			r.untilFollows(i+3, i)
		}
		if now := r.keysOf(0, 1, 2); now != keys || r.keysOf(3, 4, 5) != keys {
			r.Errorf("%d keys of %d are left, and %d at the replicas", now, keys, r.keysOf(3, 4, 5))
		}
	},
}

func (r rig) forbidStanding(server int) {
	r.Helper()
	r.do(server, func(l link) error { return l.ConfigSet(r.ctx(), "cluster-replica-no-failover", "yes") })
}

// untilFailed waits until a server takes another one for failed.
func (r rig) untilFailed(server, dead int) {
	r.Helper()
	r.until(r.T, fmt.Sprintf("server %d takes the primary of shard %d for failed", server, dead), func() bool {
		view := r.view(server)
		mine, _ := view.Myself()
		primary, _ := view.Table.ByID(mine.PrimaryID)
		return primary.Flags.Failed
	})
}

// untilLinked waits until a server has links to others and they to it, without which
// an election that it is told to hold comes to nothing.
func (r rig) untilLinked(server int, others ...int) {
	r.Helper()
	mine := r.id(server)
	for _, other := range others {
		id := r.id(other)
		r.until(r.T, fmt.Sprintf("servers %d and %d have links to each other", server, other), func() bool {
			there, _ := r.view(server).Table.ByID(id)
			back, _ := r.view(other).Table.ByID(mine)
			return there.LinkConnected && back.LinkConnected
		})
	}
}

// says wants a failover refused in these words.
func (r rig) says(server int, mode valkey.FailoverMode, words string) {
	r.Helper()
	err := r.failover(server, mode)
	if err == nil || !strings.HasSuffix(err.Error(), words) {
		r.Errorf("failover %s at server %d: %v, want %s", mode, server, err, words)
	}
}

// untilOnePrimary waits until one of two servers is a primary with slots, and
// the other follows it.
func (r rig) untilOnePrimary(a, b int) {
	r.Helper()
	r.until(r.T, fmt.Sprintf("one of servers %d and %d follows the other", a, b), func() bool {
		first, second := r.view(a), r.view(b)
		mine, _ := first.Myself()
		other, _ := second.Myself()
		return mine.PrimaryID == other.ID && !other.Slots.IsEmpty() || other.PrimaryID == mine.ID && !mine.Slots.IsEmpty()
	})
}

// highestEpoch is the highest that a server knows of anyone.
func (r rig) highestEpoch(server int) (highest uint64) {
	r.Helper()
	for _, entry := range r.view(server).Table.Nodes {
		highest = max(highest, entry.ConfigEpoch)
	}
	return highest
}
