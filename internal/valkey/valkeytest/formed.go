package valkeytest

import (
	"context"
	"fmt"

	"valkey.io/valkey-operator/internal/valkey"
)

// Formed returns a settled cluster with all slots served, made by commands as an
// operator would make it. Its nodes listen on 10.0.0.1:6379 and upwards; shard i
// is the nodes i*(replicas+1) and following, its primary first.
func Formed(options Options, shards, replicas int) *Cluster {
	c := New(options)
	members := shards * (replicas + 1)
	for i := range members {
		c.Add(fmt.Sprintf("10.0.%d.%d:6379", i/250, i%250+1))
	}
	nodes := c.Nodes()
	for i, n := range nodes {
		if i > 0 {
			c.must(nodes[0], func(s *Conn) error {
				return s.Meet(context.Background(), n.address.Addr().String(), int(n.address.Port()), 0)
			})
		}
	}
	c.Settle()
	for shard := range shards {
		first := shard * (replicas + 1)
		c.must(nodes[first], func(s *Conn) error {
			return s.AddSlots(context.Background(), valkey.ShardSlots(shards, shard))
		})
		for _, replica := range nodes[first+1 : first+1+replicas] {
			c.must(replica, func(s *Conn) error { return s.Replicate(context.Background(), nodes[first].ID()) })
		}
	}
	c.Settle()
	return c
}

// must panics when a command fails that cannot fail: a fault of this package.
func (c *Cluster) must(n *Node, command func(*Conn) error) {
	server, err := c.Connect(context.Background(), valkey.Target{Address: n.Address()})
	if err == nil {
		err = command(server)
	}
	if err != nil {
		panic(fmt.Sprintf("valkeytest: forming: %v", err))
	}
}
