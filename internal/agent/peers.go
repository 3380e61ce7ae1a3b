package agent

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

const (
	// askTime bounds one round of asking all peers, while there is no hurry.
	askTime = 2 * time.Second
	// briefAskTime bounds the only round that a member with data holds up its start for.
	briefAskTime = 500 * time.Millisecond
	// askedAtOnce bounds how many peers are asked at a time.
	askedAtOnce = 16
)

// askShard gathers what is known about the member's shard: the operator's list,
// the facts of each agent of the shard that answers, and the ids of nodes that are
// of other shards. Addresses come from the
// peers' names, never from a node table: those may be another cluster's by now,
// which is also why each answer's cluster is compared.
//
// What a peer's server said before this agent began is no news of emptiness:
// the member's last writes may have reached it later.
func askShard(ctx context.Context, config Config, began time.Time) guard.Shard {
	var shard guard.Shard
	shard.Nodes, shard.NodesKnown = config.shardNodes()
	asked := time.Now()
	for _, facts := range askAll(ctx, resolve(ctx, config.Peers)) {
		if facts.ClusterID != config.ClusterID {
			continue
		}
		if facts.Shard != config.Shard {
			shard.Elsewhere = append(shard.Elsewhere, facts.NodeID)
			continue
		}
		if asked.Add(-time.Duration(facts.AgeMillis) * time.Millisecond).Before(began) {
			facts.Empty = withoutYes(facts.Empty)
		}
		shard.Answers = append(shard.Answers, facts)
	}
	return shard
}

func withoutYes(answer protocol.Answer) protocol.Answer {
	if answer == protocol.Yes {
		return ""
	}
	return answer
}

// shardNodes are the indices of the shard's nodes by the operator's word.
func (c Config) shardNodes() (nodes []int, known bool) {
	members, known := c.members()
	if !known || c.Shard >= len(members.Shards) {
		return nil, false
	}
	return members.Shards[c.Shard], true
}

// memberCount is how many members the cluster has by the operator's word; 0 when
// that cannot be read.
func (c Config) memberCount() int {
	members, _ := c.members()
	count := 0
	for _, nodes := range members.Shards {
		count += len(nodes)
	}
	return count
}

// members is the operator's list of the cluster's members.
func (c Config) members() (list protocol.Members, known bool) {
	text, err := os.ReadFile(c.Members)
	if err != nil {
		return protocol.Members{}, false
	}
	if json.Unmarshal(text, &list) != nil || list.ClusterID != c.ClusterID {
		return protocol.Members{}, false
	}
	return list, true
}

// resolve returns the addresses behind all names; a name without one has none.
func resolve(ctx context.Context, names []string) []string {
	var hosts []string
	for _, name := range names {
		found, err := net.DefaultResolver.LookupHost(ctx, name)
		if err == nil {
			hosts = append(hosts, found...)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// askAll returns the facts of each host that answers.
func askAll(ctx context.Context, hosts []string) map[string]protocol.Facts {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var (
		mu      sync.Mutex
		answers = map[string]protocol.Facts{}
		group   sync.WaitGroup
		slots   = make(chan struct{}, askedAtOnce)
	)
	for _, host := range hosts {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			facts, err := protocol.Get(ctx, client, host)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[host] = facts
		})
	}
	group.Wait()
	return answers
}
