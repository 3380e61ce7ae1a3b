package valkeytest

import (
	"fmt"
	"maps"
	"slices"

	"valkey.io/valkey-operator/internal/valkey"
)

// Write writes a key as a client would: to a server that owns its slot and
// serves. A nil error is an acknowledgement, and Lost holds the cluster to it.
func (c *Cluster) Write(key, value string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	owner := c.owner(key)
	if owner == nil {
		return fmt.Errorf("nobody serves slot %d", valkey.KeySlot(key))
	}
	owner.data[key] = value
	owner.offset += int64(len(key) + len(value))
	c.ledger.acked[key] = value
	c.ledger.count[key]++
	return nil
}

// Read reads a key as a client would. It is not known while nobody serves its slot.
func (c *Cluster) Read(key string) (value string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	owner := c.owner(key)
	if owner == nil {
		return "", false
	}
	return owner.data[key], true
}

// Lost are the keys whose last acknowledged value cannot be read now, sorted.
func (c *Cluster) Lost() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(c.ledger.acked)) {
		if owner := c.owner(key); owner == nil || owner.data[key] != c.ledger.acked[key] {
			lost = append(lost, key)
		}
	}
	return lost
}

func (c *Cluster) owner(key string) *Node {
	slot := valkey.KeySlot(key)
	for _, n := range c.nodes {
		if n.onBus() && !n.closed && n.isPrimary() && n.self.slots.Contains(slot) && n.serves() {
			return n
		}
	}
	return nil
}
