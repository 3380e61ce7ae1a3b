package valkeytest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/valkey"
)

// causes are what undid acknowledged writes so far.
func causes(c *Cluster) []Cause {
	var causes []Cause
	for _, undoing := range c.Undone() {
		causes = append(causes, undoing.Cause)
	}
	return causes
}

func TestTheLedgerNamesWhatUndidWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		undo func(*Cluster, []*Node)
		want []Cause
	}{
		"a primary that stops and comes back": {
			func(c *Cluster, nodes []*Node) { nodes[0].Stop(); nodes[0].Start(Start{}); c.Settle() }, nil,
		},
		"a primary that dies after its replica had everything": {
			func(c *Cluster, nodes []*Node) { c.Step(); nodes[0].Kill(); c.Settle() }, nil,
		},
		"a primary that stops before its replica had everything": {
			func(c *Cluster, nodes []*Node) { nodes[0].Stop(); c.Settle() }, nil,
		},
		"a primary that dies before its replica had everything": {
			func(c *Cluster, nodes []*Node) { nodes[0].Kill(); c.Settle() }, []Cause{ByPromotion},
		},
		"and comes back to a successor that lacks some": {
			func(c *Cluster, nodes []*Node) { nodes[0].Kill(); c.Settle(); nodes[0].Start(Start{}); c.Settle() }, []Cause{ByPromotion, BySync},
		},
		"a primary that comes back empty to a replica that has everything": {
			func(c *Cluster, nodes []*Node) {
				c.Step()
				nodes[0].Kill()
				nodes[0].Start(Start{Data: Emptied})
				c.Settle()
			}, []Cause{BySync},
		},
		"a primary that comes back empty and was all there was": {
			func(_ *Cluster, nodes []*Node) { nodes[1].Kill(); nodes[0].Kill(); nodes[0].Start(Start{Data: Blank}) }, []Cause{ByStart},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := Formed(Options{}, 3, 1)
			write(t, cluster, 50)
			c.undo(cluster, cluster.Nodes())
			if diff := cmp.Diff(c.want, causes(cluster)); diff != "" {
				t.Error(diff)
			}
			if acknowledged := cluster.Acknowledged(valkey.AllSlots()); acknowledged != 50 {
				t.Errorf("%d writes of 50 were acknowledged", acknowledged)
			}
		})
	}
}

// A dead primary is replaced one election after the node timeout, not before.
func TestElectionsComeAfterTheNodeTimeout(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{2 * time.Second, 15 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			c := Formed(Options{NodeTimeout: timeout}, 3, 1)
			nodes := c.Nodes()
			nodes[0].Kill()
			died := c.Now()
			for nodes[1].View().Info.Role != valkey.RolePrimary {
				c.Step()
			}
			if took := c.Now() - died; took < timeout || took > timeout+electionDelay+4*StepTime {
				t.Errorf("the election was over after %v", took)
			}
		})
	}
}

func TestAForcedFailoverOfAServerThatReachesNobodyYetComesToNothing(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 3, 1)
	nodes := c.Nodes()
	nodes[1].Kill()
	nodes[0].Kill()
	nodes[1].Start(Start{})
	force := func() {
		if err := connect(t, nodes[1]).Failover(t.Context(), valkey.Force); err != nil {
			t.Fatal(err)
		}
		c.Advance(10 * time.Second)
	}
	force()
	if role := nodes[1].View().Info.Role; role != valkey.RoleReplica {
		t.Errorf("at once: %s", role)
	}
	force()
	if role := nodes[1].View().Info.Role; role != valkey.RolePrimary {
		t.Errorf("later: %s", role)
	}
}

func TestFailoversAtOnceCollideSometimes(t *testing.T) {
	t.Parallel()
	both, one := 0, 0
	for seed := range uint64(20) {
		c := Formed(Options{Seed: seed}, 3, 1)
		nodes := c.Nodes()
		for _, replica := range []*Node{nodes[1], nodes[3]} {
			if err := connect(t, replica).Failover(t.Context(), valkey.Graceful); err != nil {
				t.Fatal(err)
			}
		}
		c.Settle()
		switch first, second := nodes[1].View().Info.Role, nodes[3].View().Info.Role; {
		case first == second && first == valkey.RolePrimary:
			both++
		case first != second:
			one++
		}
	}
	if both == 0 || one == 0 || both+one != 20 {
		t.Errorf("of 20 pairs of failovers %d came to both and %d to one", both, one)
	}
}

func TestALinkToAFrozenPrimaryEndsAfterTheReplicationTimeout(t *testing.T) {
	t.Parallel()
	c := Formed(Options{}, 1, 1)
	nodes := c.Nodes()
	link := func() *valkey.PrimaryLink { return nodes[1].View().Info.Replication.Primary }
	nodes[0].Silence(true)
	c.Advance(replicationTimeout - time.Second)
	if !link().Up {
		t.Errorf("it is down too early: %+v", link())
	}
	c.Advance(2 * time.Second)
	if link().Up || link().LastIOSeconds != -1 {
		t.Errorf("it is up too long: %+v", link())
	}
}
