package stage

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/ledger"
)

// slots of every Valkey cluster.
const slots = 16384

// Member is one pod, its server's own word included, at one moment.
type Member struct {
	Pod      string
	UID      string
	Address  string
	Worker   string
	Ready    bool
	Restarts int
	Image    string
	// Server is what the server says; its Error is set where it says nothing.
	Server ledger.Node
}

// Members by the name of their pod without what changes at a restart under a
// Deployment: the workload's name.
type Members map[string]Member

// Snapshot reads the cluster's pods and asks their servers, over a connection
// to each of them.
func (c *Cluster) Snapshot() Members {
	members, byAddress := Members{}, map[string]string{}
	for _, p := range c.Pods() {
		if p.DeletionTimestamp != nil {
			continue
		}
		m := Member{
			Pod: p.Name, UID: string(p.UID), Address: p.Status.PodIP, Worker: p.Spec.NodeName,
			Ready: PodReady(&p), Restarts: restartsOf(&p), Image: serverImage(&p),
		}
		key := MemberOf(&p)
		members[key] = m
		if m.Address != "" {
			byAddress[m.Address+":6379"] = key
		}
	}
	for _, server := range c.ask(byAddress) {
		m := members[byAddress[server.Address]]
		m.Server = server
		members[byAddress[server.Address]] = m
	}
	return members
}

// MemberOf is shard and node of a pod, for example 0-1.
func MemberOf(p *corev1.Pod) string { return memberOf(p.Labels) }

// memberOf is the member that the labels of one of its objects name.
func memberOf(labels map[string]string) string {
	return labels[contract.LabelShardIndex] + "-" + labels[contract.LabelNodeIndex]
}

func serverImage(p *corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		if c.Name == contract.ServerContainer {
			return c.Image
		}
	}
	return ""
}

// PodReady says whether a pod is ready and stays.
func PodReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

func (c *Cluster) ask(byAddress map[string]string) []ledger.Node {
	if len(byAddress) == 0 {
		return nil
	}
	addresses := make([]string, 0, len(byAddress))
	for a := range byAddress {
		addresses = append(addresses, a)
	}
	var nodes []ledger.Node
	out := c.tool("nodes", "--addr", strings.Join(addresses, ","))
	c.NoError(json.Unmarshal([]byte(out), &nodes), "reading what the servers say")
	return nodes
}

// AwaitServing waits until every server, asked on its own, serves and agrees:
// each slot has an owner, each member knows exactly the others, and each
// replica follows a member that is there.
func (c *Cluster) AwaitServing() Members {
	var members Members
	c.Await("all servers to agree on one whole cluster", 90*time.Second, func() (bool, string) {
		members = c.Snapshot()
		problem := members.problem(c.Members(), c.Spec.Shards)
		return problem == "", problem
	})
	return members
}

// problem says what is wrong with the members of a cluster; empty if nothing is.
func (m Members) problem(want, shards int) string {
	if len(m) != want {
		return fmt.Sprintf("%d members of %d", len(m), want)
	}
	ids, owned, primaries := map[string]bool{}, 0, 0
	for _, one := range m {
		ids[one.Server.ID] = true
	}
	for name, one := range m {
		switch s := one.Server; {
		case s.Error != "":
			return name + " does not answer: " + s.Error
		case s.State != "ok":
			return name + " says cluster_state " + s.State
		case s.Known != want:
			return fmt.Sprintf("%s knows %d members of %d", name, s.Known, want)
		case s.Role == "replica" && !ids[s.PrimaryID]:
			return name + " follows an id that is not a member"
		case s.Slots > 0:
			primaries++
			owned += s.Slots
		}
	}
	if owned != slots || primaries != shards {
		return fmt.Sprintf("%d primaries own %d slots", primaries, owned)
	}
	return ""
}

// Primary is the member that owns slots in a shard; empty where there is none.
func (m Members) Primary(shard int) string { return m.in(shard, true) }

// Replica is a member of a shard that owns no slots; empty where there is none.
func (m Members) Replica(shard int) string { return m.in(shard, false) }

func (m Members) in(shard int, owner bool) string {
	for name, one := range m {
		if strings.HasPrefix(name, fmt.Sprint(shard)+"-") && (one.Server.Slots > 0) == owner {
			return name
		}
	}
	return ""
}

// Keys is the number of keys of all primaries.
func (m Members) Keys() int64 {
	n := int64(0)
	for _, one := range m {
		if one.Server.Role == "primary" {
			n += one.Server.Keys
		}
	}
	return n
}

// IDs are the ids of the servers by member.
func (m Members) IDs() map[string]string {
	return m.project(func(one Member) string { return one.Server.ID })
}

// UIDs are the pods' uids by member.
func (m Members) UIDs() map[string]string {
	return m.project(func(one Member) string { return one.UID })
}

// Roles are the servers' roles by member.
func (m Members) Roles() map[string]string {
	return m.project(func(one Member) string { return one.Server.Role })
}

// Epoch is the highest epoch that a server knows: each election raises it by one.
func (m Members) Epoch() int64 {
	highest := int64(0)
	for _, one := range m {
		highest = max(highest, one.Server.Epoch)
	}
	return highest
}

// Restarts is how often containers were restarted, all pods together.
func (m Members) Restarts() int {
	n := 0
	for _, one := range m {
		n += one.Restarts
	}
	return n
}

func (m Members) project(of func(Member) string) map[string]string {
	values := map[string]string{}
	for name, one := range m {
		values[name] = of(one)
	}
	return values
}
