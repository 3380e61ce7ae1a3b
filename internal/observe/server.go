package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

const (
	// serverPatience bounds what one server may cost a pass; a loaded worker
	// answers within tenths of a second.
	serverPatience = 2 * time.Second
	// agentPatience bounds what one agent may cost a pass.
	agentPatience = time.Second
)

// servers asks all members' servers and agents at once, each under its own
// deadline: a silent one costs one deadline, whatever the number of members.
func (o ClusterObserver) servers(ctx context.Context, snapshot *state.Cluster, credentials Credentials) {
	var all sync.WaitGroup
	for i := range snapshot.Members {
		member := &snapshot.Members[i]
		pod, one := state.LivePod(member.Pods)
		if !one || pod.IP == "" {
			member.Server = state.Unknown[valkey.View]("the member has no running pod")
			member.Agent = state.Unknown[protocol.Facts]("the member has no running pod")
			continue
		}
		expected := *member
		all.Go(func() { member.Server = o.server(ctx, pod.IP, credentials) })
		all.Go(func() { member.Agent = o.agent(ctx, pod.IP, expected) })
	}
	all.Wait()
}

func (o ClusterObserver) server(ctx context.Context, ip string, credentials Credentials) state.Fact[valkey.View] {
	if credentials.Operator == "" {
		return state.Unknown[valkey.View]("the operator has no password yet")
	}
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	server, err := o.Dial(ctx, valkey.Target{
		Address:  name.ClientAddress(ip),
		Username: name.UserOperator, Password: credentials.Operator,
	})
	if err != nil {
		return state.Unknown[valkey.View](err.Error())
	}
	defer server.Close()
	view, err := server.View(ctx)
	if err != nil {
		return state.Unknown[valkey.View](err.Error())
	}
	return state.Seen(view)
}

func (o ClusterObserver) agent(ctx context.Context, ip string, member state.Member) state.Fact[protocol.Facts] {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	facts, err := o.Ask(ctx, ip)
	if err != nil {
		return state.Unknown[protocol.Facts](err.Error())
	}
	if member.Record == nil || facts.ClusterID != member.Record.Spec.ClusterID || facts.Shard != member.Shard || facts.Node != member.Node {
		return state.Unknown[protocol.Facts](fmt.Sprintf("the agent at %s is another member's", ip))
	}
	return state.Seen(facts)
}
