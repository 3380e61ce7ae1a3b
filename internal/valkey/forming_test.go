package valkey_test

import (
	"context"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// forming is how servers become a cluster, and what each can be asked.
var forming = map[string]func(rig){
	"one server that greets all makes everyone know everyone": func(r rig) {
		r.acquainted(4)
	},
	"greeting an address where nobody listens leaves nothing behind": func(r rig) {
		r.acquainted(2)
		r.kill(r.T, 1)
		r.add(r.T, 1)
		r.kill(r.T, 2)
		r.greet(2)
		r.until(r.T, "the handshake is given up", func() bool { return len(r.view(0).Table.Nodes) == 2 })
	},
	"a log is written anew on request, and a second request beside the first is as good": func(r rig) {
		r.add(r.T, 1)
		for range 2 {
			r.do(0, func(l link) error { return l.RewriteLog(r.ctx()) })
		}
		// The child that writes would outlive its server.
		r.until(r.T, "it is written", func() bool { return !r.view(0).Info.Persistence.AOFRewriteInProgress })
	},
	"greeting what is no address is refused": func(r rig) {
		r.add(r.T, 1)
		r.refused(0, func(l link) error { return l.Meet(r.ctx(), "valkey.example", 6379, 0) })
	},
	"three primaries serve, each with an epoch of its own": func(r rig) {
		r.formed(3, 0)
		r.until(r.T, "the epochs differ", func() bool {
			epochs := map[uint64]bool{}
			for _, n := range r.view(0).Table.Nodes {
				epochs[n.ConfigEpoch] = true
			}
			return len(epochs) == 3
		})
	},
	"a slot is given out once": func(r rig) {
		r.acquainted(2)
		first, _ := valkey.ParseSlots("0-99")
		r.do(0, func(l link) error { return l.AddSlots(r.ctx(), first) })
		r.refused(0, func(l link) error { return l.AddSlots(r.ctx(), first) })
		r.until(r.T, "the other server knows the owner", func() bool { return r.view(1).Table.Owned().Equal(first) })
		overlapping, _ := valkey.ParseSlots("50-199")
		r.refused(1, func(l link) error { return l.AddSlots(r.ctx(), overlapping) })
		if mine, _ := r.view(1).Myself(); !mine.Slots.IsEmpty() {
			r.Errorf("a refused command gave the slots %s", mine.Slots)
		}
	},
	"slots given out twice before the servers met end at one of them": func(r rig) {
		r.add(r.T, 2)
		for i := range 2 {
			r.do(i, func(l link) error { return l.AddSlots(r.ctx(), valkey.AllSlots()) })
		}
		r.greet(1)
		r.until(r.T, "both name one owner", func() bool {
			a, b := r.view(0).Table, r.view(1).Table
			ownerA, foundA := a.Owner(7)
			ownerB, foundB := b.Owner(7)
			return foundA && foundB && len(a.Nodes) == 2 && len(b.Nodes) == 2 && ownerA.ID == ownerB.ID
		})
	},
	"nobody can replicate a stranger, itself or a replica": func(r rig) {
		r.formed(1, 1)
		r.add(r.T, 1)
		r.greet(2)
		r.until(r.T, "all three know one another", func() bool { return isWhole(r.view(2), 3) && len(r.view(2).Table.ReplicasOf(r.id(0))) == 1 })
		for _, id := range []valkey.NodeID{valkey.NodeID(sampleID), r.id(2), r.id(1)} {
			r.refused(2, func(l link) error { return l.Replicate(r.ctx(), id) })
		}
	},
	"an owner of slots cannot become a replica": func(r rig) {
		r.formed(2, 0)
		id := r.id(0)
		r.refused(1, func(l link) error { return l.Replicate(r.ctx(), id) })
	},
	"a replica brings over the keys and says how far it is": func(r rig) {
		r.formed(1, 1)
		r.writeSome(1)
		r.until(r.T, "the offsets meet", func() bool {
			primary, replica := r.view(0).Info, r.view(1).Info
			return len(primary.Replication.Replicas) == 1 && primary.Replication.Replicas[0].State == "online" &&
				replica.Replication.ID == primary.Replication.ID && replica.Replication.Offset == primary.Replication.Offset
		})
	},
	"nobody forgets itself, its primary or a stranger": func(r rig) {
		r.formed(1, 1)
		for _, id := range []valkey.NodeID{r.id(1), r.id(0), valkey.NodeID(sampleID)} {
			r.refused(1, func(l link) error { return l.Forget(r.ctx(), id) })
		}
	},
	"a dead node that everyone forgets is gone": func(r rig) {
		r.acquainted(3)
		gone := r.id(2)
		r.kill(r.T, 2)
		for i := range 2 {
			r.do(i, func(l link) error { return l.Forget(r.ctx(), gone) })
		}
		r.linger()
		for i := range 2 {
			if _, known := r.view(i).Table.ByID(gone); known {
				r.Errorf("server %d knows the forgotten node again", i)
			}
		}
	},
	"a live node that is forgotten and forgets nobody comes back": func(r rig) {
		r.acquainted(2)
		id := r.id(1)
		r.do(0, func(l link) error { return l.Forget(r.ctx(), id) })
		r.until(r.T, "it is known again", func() bool { return isWhole(r.view(0), 2) })
	},
	"a replica of a replica follows the primary of both": func(r rig) {
		r.acquainted(3)
		r.replicate(1, 0)
		r.untilFollows(1, 0)
		r.replicate(0, 2)
		r.untilFollows(1, 2)
	},
	"a replica can be given to another primary": func(r rig) {
		r.formed(2, 1)
		keys := r.writeSome(0, 1)
		r.replicate(2, 1)
		r.untilFollows(2, 1)
		if now := r.keysOf(0, 2); now != keys {
			r.Errorf("it has %d keys and its first primary the rest of %d", now, keys)
		}
	},
	"a replica takes slots and nobody else believes it": func(r rig) {
		r.acquainted(2)
		r.replicate(1, 0)
		r.until(r.T, "its role is known", func() bool { return len(r.view(0).Table.ReplicasOf(r.id(0))) == 1 })
		r.do(1, func(l link) error { return l.AddSlots(r.ctx(), valkey.AllSlots()) })
		r.linger()
		if owned := r.view(0).Table.Owned(); !owned.IsEmpty() {
			r.Errorf("its primary sees owners of %s", owned)
		}
	},
	"a server that loads can be looked at and not commanded": func(r rig) {
		r.formed(1, 0)
		r.writeSome(0)
		r.kill(r.T, 0)
		r.start(r.T, 0, slowly)
		view := r.view(0)
		if view.Info.Loading == nil || !view.TableKnown {
			r.Fatalf("loading %v, table known %v", view.Info.Loading, view.TableKnown)
		}
		err := r.try(0, func(l link) error { return l.Forget(r.ctx(), valkey.NodeID(sampleID)) })
		if !valkey.IsLoading(err) {
			r.Errorf("a command while loading: %v", err)
		}
	},
	"a first epoch can be set once, while the server is alone": func(r rig) {
		r.add(r.T, 1)
		set := func(l link) error { return l.SetConfigEpoch(r.ctx(), 5) }
		r.do(0, set)
		r.refused(0, set)
		if mine, _ := r.view(0).Myself(); mine.ConfigEpoch != 5 {
			r.Errorf("epoch %d", mine.ConfigEpoch)
		}
	},
	"a raised epoch is above all others": func(r rig) {
		r.formed(2, 0)
		r.do(0, func(l link) error { return l.BumpEpoch(r.ctx()) })
		r.until(r.T, "it is the highest", func() bool {
			mine, _ := r.view(0).Myself()
			other, _ := r.view(0).Table.ByID(r.id(1))
			return mine.ConfigEpoch > other.ConfigEpoch
		})
	},
	"a server that answers nothing is an error in time, and no answer": func(r rig) {
		r.add(r.T, 1)
		conn := r.server(0)
		defer conn.Close()
		r.silence(r.T, 0)
		ctx, cancel := context.WithTimeout(r.ctx(), 200*time.Millisecond)
		defer cancel()
		if _, err := conn.View(ctx); err == nil || valkey.Answered(err) {
			r.Errorf("a silent server: %v", err)
		}
	},
	"a connection does not outlive its server": func(r rig) {
		r.add(r.T, 1)
		conn := r.server(0)
		defer conn.Close()
		r.kill(r.T, 0)
		r.start(r.T, 0, same)
		if _, err := conn.View(r.ctx()); err == nil || valkey.Answered(err) {
			r.Errorf("the old connection: %v", err)
		}
	},
}

// sampleID belongs to nobody.
const sampleID = "00000000000000000000000000000000000000aa"

func TestContractInMemory(t *testing.T) {
	t.Parallel()
	holdContract(t, openMemory)
}
