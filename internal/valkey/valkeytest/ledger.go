package valkeytest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"valkey.io/valkey-operator/internal/valkey"
)

// Cause says what undid acknowledged writes.
type Cause string

// ByPromotion: a replica that lacks them became the owner of their slots.
// BySync: the last server that had them copied one that had not.
// ByStart: the last server that had them came back without its data.
const (
	ByPromotion Cause = "promotion"
	BySync      Cause = "sync"
	ByStart     Cause = "start"
)

// Undoing is one event that undid acknowledged writes.
type Undoing struct {
	At    time.Duration
	Cause Cause
	Node  valkey.NodeID // the server that was promoted, synced or started
	Keys  []string      // sorted
}

func (u Undoing) String() string {
	return fmt.Sprintf("after %v the %s of %.8s undid %d writes: %v", u.At, u.Cause, u.Node, len(u.Keys), u.Keys)
}

// ledger is what clients were promised, and what became of it.
type ledger struct {
	acked   map[string]string // the last acknowledged value of each key
	count   map[string]int    // acknowledgements of each key
	undoing []Undoing
}

func newLedger() ledger { return ledger{acked: map[string]string{}, count: map[string]int{}} }

func (l *ledger) clone() ledger {
	return ledger{acked: maps.Clone(l.acked), count: maps.Clone(l.count), undoing: slices.Clone(l.undoing)}
}

// promoted notes the acknowledged writes that a new owner of slots lacks.
func (l *ledger) promoted(n *Node) {
	var keys []string
	for key, value := range l.acked {
		if n.self.slots.Contains(valkey.KeySlot(key)) && n.data[key] != value {
			keys = append(keys, key)
		}
	}
	l.note(n, keys, ByPromotion)
}

// parted notes the acknowledged writes that nobody has any more since a server
// gave up what it had.
func (l *ledger) parted(n *Node, had map[string]string, cause Cause) {
	var keys []string
	for key, value := range had {
		if l.acked[key] == value && !n.cluster.anyoneHas(key, value) {
			keys = append(keys, key)
		}
	}
	l.note(n, keys, cause)
}

func (l *ledger) note(n *Node, keys []string, cause Cause) {
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	l.undoing = append(l.undoing, Undoing{At: n.cluster.now, Cause: cause, Node: n.self.id, Keys: keys})
}

// anyoneHas says whether a server or a volume holds the value.
func (c *Cluster) anyoneHas(key, value string) bool {
	return slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.data[key] == value })
}

// Undone are all events so far that undid acknowledged writes, in their order. A
// promotion counts even if the writes come back, for no client counts on that.
func (c *Cluster) Undone() []Undoing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ledger.undoing)
}

// Acknowledged is how many writes to the slots were acknowledged since New.
func (c *Cluster) Acknowledged(slots valkey.Slots) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for key, count := range c.ledger.count {
		if slots.Contains(valkey.KeySlot(key)) {
			total += count
		}
	}
	return total
}
