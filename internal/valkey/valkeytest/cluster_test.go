package valkeytest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/valkey"
)

func connect(t *testing.T, n *Node) *Conn {
	t.Helper()
	conn, err := n.cluster.Connect(t.Context(), valkey.Target{Address: n.Address()})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func write(t *testing.T, c *Cluster, count int) {
	t.Helper()
	for i := range count {
		if err := c.Write(fmt.Sprint("key-", i), "value"); err != nil {
			t.Fatal(err)
		}
	}
}

func roles(c *Cluster) []valkey.Role {
	var roles []valkey.Role
	for _, n := range c.Nodes() {
		roles = append(roles, n.View().Info.Role)
	}
	return roles
}

func TestFormedServesInAllShapes(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct{ shards, replicas int }{{1, 0}, {1, 2}, {2, 1}, {3, 1}, {3, 2}, {7, 1}} {
		t.Run(fmt.Sprintf("%dx%d", shape.shards, shape.replicas), func(t *testing.T) {
			t.Parallel()
			c := Formed(Options{Seed: 1}, shape.shards, shape.replicas)
			write(t, c, 100)
			c.Settle()
			for i, n := range c.Nodes() {
				isFirst := i%(shape.replicas+1) == 0
				checkMember(t, n.View(), shape.shards, shape.replicas, isFirst)
			}
		})
	}
}

func checkMember(t *testing.T, view valkey.View, shards, replicas int, isFirst bool) {
	t.Helper()
	if !view.Cluster.StateOK || view.Cluster.Size != shards {
		t.Errorf("it says %+v", view.Cluster)
	}
	if isFirst != (view.Info.Role == valkey.RolePrimary) {
		t.Errorf("first of its shard: %v, role %s", isFirst, view.Info.Role)
	}
	if isFirst && len(view.Info.Replication.Replicas) != replicas {
		t.Errorf("it has the replicas %v", view.Info.Replication.Replicas)
	}
}

func TestTheSameSeedGivesTheSameCluster(t *testing.T) {
	t.Parallel()
	run := func() []valkey.View {
		c := Formed(Options{Seed: 42}, 3, 1)
		c.Nodes()[0].Kill()
		c.Settle()
		var views []valkey.View
		for _, n := range c.Nodes() {
			views = append(views, n.View())
		}
		return views
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Error(diff)
	}
}

func TestAddressesThatRotateHealByThemselves(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 3, 1)
	write(t, c, 50)
	c.Settle()
	nodes := c.Nodes()
	var addresses []string
	for _, n := range nodes {
		addresses = append(addresses, n.Address())
		n.Kill()
	}
	for i, n := range nodes {
		n.Start(Start{Address: addresses[(i+1)%len(addresses)]})
	}
	c.Settle()
	if lost := c.Lost(); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}

func TestFailedPrimariesBeyondTheMajorityNeedATakeover(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 3, 1)
	write(t, c, 50)
	c.Settle()
	nodes := c.Nodes()
	nodes[0].Kill()
	nodes[2].Kill()
	c.Settle()
	if len(c.Lost()) == 0 {
		t.Fatal("one voter of three elected somebody")
	}
	// With one shard back two voters of three live, and elect the other replica.
	if err := connect(t, nodes[1]).Failover(t.Context(), valkey.Takeover); err != nil {
		t.Fatal(err)
	}
	c.Settle()
	if lost := c.Lost(); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
	nodes[0].Start(Start{})
	nodes[2].Start(Start{})
	c.Settle()
	want := []valkey.Role{valkey.RoleReplica, valkey.RolePrimary, valkey.RoleReplica, valkey.RolePrimary, valkey.RolePrimary, valkey.RoleReplica}
	if diff := cmp.Diff(want, roles(c)); diff != "" {
		t.Error(diff)
	}
}

func TestTheReplicaWithTheNewestDataIsElected(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		c := Formed(Options{Seed: seed}, 3, 2)
		nodes := c.Nodes()
		nodes[1].Lag(true)
		write(t, c, 50)
		c.Step()
		nodes[0].Kill()
		c.Settle()
		if role := nodes[2].View().Info.Role; role != valkey.RolePrimary {
			t.Errorf("seed %d: the replica without a lag is %s", seed, role)
		}
		if lost := c.Lost(); len(lost) != 0 {
			t.Errorf("seed %d: lost %v", seed, lost)
		}
	}
}

func TestALaggingReplicaThatIsForcedLosesWrites(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 3, 1)
	nodes := c.Nodes()
	nodes[1].Lag(true)
	write(t, c, 50)
	c.Step()
	nodes[0].Kill()
	if err := connect(t, nodes[1]).Failover(t.Context(), valkey.Force); err != nil {
		t.Fatal(err)
	}
	c.Settle()
	if len(c.Lost()) == 0 {
		t.Error("nothing is lost: a test of data safety could not fail")
	}
}

func TestASilentPrimaryIsReplacedAndRejoins(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 3, 1)
	write(t, c, 50)
	c.Settle()
	nodes := c.Nodes()
	nodes[0].Silence(true)
	if _, err := c.Dial(t.Context(), valkey.Target{Address: nodes[0].Address()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dialling a silent server: %v", err)
	}
	c.Settle()
	nodes[0].Silence(false)
	c.Settle()
	if entry, _ := nodes[0].View().Myself(); entry.PrimaryID != nodes[1].ID() {
		t.Errorf("it follows %q", entry.PrimaryID)
	}
	if lost := c.Lost(); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}

func TestALoadingPrimaryDoesNotServeAndIsNotHeard(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 3, 0)
	write(t, c, 50)
	n := c.Nodes()[0]
	n.Kill()
	n.Start(Start{Loading: 30 * time.Second})
	c.Advance(10 * time.Second)
	entry, _ := c.Nodes()[1].View().Table.ByID(n.ID())
	if info := n.View().Info; info.Loading == nil || info.Loading.ETASeconds != 20 || !entry.Flags.Failed {
		t.Errorf("loading %+v, others see %+v", info.Loading, entry.Flags)
	}
	c.Settle()
	if lost := c.Lost(); len(lost) != 0 {
		t.Errorf("lost after loading: %v", lost)
	}
}

func TestHooksStopACommandOrItsAnswer(t *testing.T) {
	t.Parallel()
	c := New(Options{})
	conn := connect(t, c.Add("10.0.0.1:6379"))
	killed := errors.New("killed")
	var seen []string
	hook := func(address, command string) error {
		seen = append(seen, address+" "+command)
		return killed
	}
	owned := func() bool { entry, _ := c.Nodes()[0].View().Myself(); return !entry.Slots.IsEmpty() }

	c.Before = hook
	if err := conn.AddSlots(t.Context(), valkey.AllSlots()); !errors.Is(err, killed) || owned() {
		t.Errorf("before: %v, owned %v", err, owned())
	}
	c.Before, c.After = nil, hook
	if err := conn.AddSlots(t.Context(), valkey.AllSlots()); !errors.Is(err, killed) || !owned() {
		t.Errorf("after: %v, owned %v", err, owned())
	}
	if _, err := conn.View(t.Context()); err != nil {
		t.Errorf("a look: %v", err)
	}
	want := []string{"10.0.0.1:6379 CLUSTER ADDSLOTSRANGE 0-16383", "10.0.0.1:6379 CLUSTER ADDSLOTSRANGE 0-16383"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestGossipBringsAForgottenNodeBackAfterAMinute(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 3, 1)
	nodes := c.Nodes()
	nodes[1].Kill()
	if err := connect(t, nodes[0]).Forget(t.Context(), nodes[1].ID()); err != nil {
		t.Fatal(err)
	}
	known := func() bool { _, known := nodes[0].View().Table.ByID(nodes[1].ID()); return known }
	c.Advance(forgetFor - StepTime)
	if known() {
		t.Error("it is back too early")
	}
	c.Advance(10 * time.Second)
	if !known() {
		t.Error("the others still know it, and it does not come back")
	}
}

func TestDialToNobodyIsRefused(t *testing.T) {
	t.Parallel()
	c := New(Options{})
	for _, address := range []string{"10.0.0.9:6379", "valkey:6379"} {
		if _, err := c.Dial(t.Context(), valkey.Target{Address: address}); err == nil || valkey.Answered(err) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Whatever is killed, moved and started again, as long as volumes are kept and
// everyone is introduced at the end: slots have one owner each, all agree, and
// one member per shard at most being away, no acknowledged write is lost.
func TestNothingIsLostWhileOneMemberAtATimeIsAway(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := Formed(Options{Seed: rapid.Uint64().Draw(t, "seed")}, 3, 1)
		nodes := c.Nodes()
		for turn := range rapid.IntRange(1, 4).Draw(t, "turns") {
			_ = c.Write(fmt.Sprint("key-", turn), fmt.Sprint("value-", turn))
			c.Step()
			n := nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "victim")]
			n.Kill()
			c.Advance(rapid.SampledFrom([]time.Duration{0, 3 * time.Second, 20 * time.Second}).Draw(t, "away"))
			start := Start{}
			if rapid.Bool().Draw(t, "moved") {
				start.Address = fmt.Sprintf("10.1.0.%d:6379", turn+1)
			}
			n.Start(start)
			c.Settle()
		}
		if lost := c.Lost(); len(lost) != 0 {
			t.Errorf("lost %v", lost)
		}
		for i, n := range nodes {
			view := n.View()
			if !view.Cluster.StateOK || view.Cluster.SlotsAssigned != valkey.SlotCount || view.Cluster.KnownNodes != len(nodes) {
				t.Errorf("node %d says %+v", i, view.Cluster)
			}
		}
	})
}
