package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const identity = "id-1"

// seat is one member: its place, and the server that sits there.
type seat struct {
	shard, index int
	server       *valkeytest.Node
	// podless members have no pod; doubled ones a second pod that is ending.
	podless, doubled bool
	// mute members have an agent that does not answer.
	mute bool
	// agent, unless empty, is what the agent says of its server, which is down.
	agent protocol.ServerState
	empty protocol.Answer
	// patience is for how many passes its agent waits for other agents' answers.
	patience int
}

// bench is a cluster of which Kubernetes has everything, over servers in
// memory: the rules about members see what such servers say.
type bench struct {
	spec    v1alpha1.ValkeyClusterSpec
	servers *valkeytest.Cluster
	seats   []*seat
	formed  bool
	// edits are made to each input.
	edits []func(*Input)
	// ghosts are the ids of servers that were replaced.
	ghosts []valkey.NodeID
}

func (b *bench) context() context.Context { return context.Background() }

// markGhost calls the present server of a seat a ghost from now on.
func (b *bench) markGhost(shard, index int) {
	b.ghosts = append(b.ghosts, b.at(shard, index).server.ID())
}

func persistent(shards, replicas int32) v1alpha1.ValkeyClusterSpec {
	spec := ephemeral(shards, replicas)
	spec.Storage = &v1alpha1.Storage{Enabled: true, Size: new(resource.MustParse("10Gi"))}
	return spec
}

func ephemeral(shards, replicas int32) v1alpha1.ValkeyClusterSpec {
	return v1alpha1.ValkeyClusterSpec{Shards: shards, Replicas: replicas, Image: "valkey/valkey:9.1.2"}
}

// formedBench is a bench whose servers have formed a cluster, with some keys
// that all members of their shards have.
func formedBench(spec v1alpha1.ValkeyClusterSpec, seed uint64) *bench {
	b := benchOf(spec, valkeytest.Formed(valkeytest.Options{Seed: seed}, int(spec.Shards), int(spec.Replicas)), true)
	b.write(50)
	b.servers.Step()
	return b
}

// freshBench is a bench of blank servers that do not know each other.
func freshBench(spec v1alpha1.ValkeyClusterSpec, seed uint64) *bench {
	servers := valkeytest.New(valkeytest.Options{Seed: seed})
	for i := range spec.Shards * (spec.Replicas + 1) {
		servers.Add(fmt.Sprintf("10.0.0.%d:6379", i+1))
	}
	return benchOf(spec, servers, false)
}

func benchOf(spec v1alpha1.ValkeyClusterSpec, servers *valkeytest.Cluster, formed bool) *bench {
	b := &bench{spec: spec, servers: servers, formed: formed}
	size := int(spec.Replicas) + 1
	for i, server := range servers.Nodes() {
		b.seats = append(b.seats, &seat{shard: i / size, index: i % size, server: server})
	}
	return b
}

// input is what an observer would see of the bench.
func (b *bench) input() Input {
	in := Input{Spec: b.spec, AgentImage: "valkey-operator:v1", State: state.Cluster{
		Now: noon, Namespace: "shop", Name: "prod", UID: "cluster-uid", Version: "7", Generation: 1, FreshID: "fresh",
		Status:    v1alpha1.ValkeyClusterStatus{ClusterID: identity, Formed: b.formed},
		Passwords: map[string]string{name.UserOperator: "digest-o", name.UserReplication: "digest-r"},
		Objects:   map[string]state.Object{},
	}}
	for _, user := range b.spec.Users {
		in.State.Users = append(in.State.Users, state.UserPasswords{Name: user.Name, Digests: []string{"digest"}})
	}
	for _, action := range objectsCurrent(in).Actions {
		if ensure, is := action.(plan.Ensure); is {
			in.State.Objects[ensure.Kind+"/"+ensure.Name] = state.Object{Digest: state.Digest(ensure.Config)}
			if config, is := ensure.Config.(*corev1ac.ConfigMapApplyConfiguration); is {
				in.State.ConfigFiles = configFilesOf(config)
			}
		}
	}
	for _, s := range b.seats {
		in.State.Members = append(in.State.Members, b.member(in, s))
	}
	for _, member := range in.State.Members {
		if member.Claim != nil {
			in.State.Claims = append(in.State.Claims, *member.Claim)
		}
	}
	for _, edit := range b.edits {
		edit(&in)
	}
	return in
}

func (b *bench) member(in Input, s *seat) state.Member {
	spec := build.NodeSpec(in.build(), s.shard, s.index)
	member := state.Member{
		Name: name.Node("prod", s.shard, s.index), Shard: s.shard, Node: s.index, Wanted: true,
		Server: state.Unknown[valkey.View]("silent"), Agent: state.Unknown[protocol.Facts]("silent"),
	}
	if build.StorageEnabled(b.spec) {
		size := b.spec.Storage.Size.DeepCopy()
		spec.Storage.Size, spec.Storage.Retention = &size, b.spec.Storage.Retention
		member.Claim = &state.Claim{
			Name: spec.Storage.ClaimName, Cluster: "prod", ClusterID: identity, Phase: corev1.ClaimBound,
			Shape:     name.Shape(b.spec.Shards, b.spec.Replicas),
			Requested: size.DeepCopy(), Capacity: size.DeepCopy(),
		}
	}
	member.Record = &state.NodeRecord{UID: member.Name + "-uid", Spec: spec}
	if s.podless {
		return member
	}
	address := netip.MustParseAddrPort(s.server.Address())
	member.Pods = []state.Pod{{Name: member.Name, UID: s.server.Address(), IP: address.Addr().String(), Phase: corev1.PodRunning, Ready: true, ConfigFile: name.ConfigFile(spec.Template.ConfigRevision)}}
	if s.doubled {
		member.Pods = append(member.Pods, state.Pod{Name: member.Name + "-old", Phase: corev1.PodRunning, Terminating: true})
	}
	member.Server = b.look(s)
	if !s.mute {
		member.Agent = state.Seen(s.facts())
	}
	return member
}

func (b *bench) look(s *seat) state.Fact[valkey.View] {
	server, err := b.servers.Dial(b.context(), valkey.Target{Address: s.server.Address()})
	if err != nil {
		return state.Unknown[valkey.View](err.Error())
	}
	defer server.Close()
	view, err := server.View(b.context())
	if err != nil {
		return state.Unknown[valkey.View](err.Error())
	}
	return state.Seen(view)
}

// facts are what the seat's agent says: of a server that is down, what its
// volume tells.
func (s *seat) facts() protocol.Facts {
	view := s.server.View()
	myself, _ := view.Myself()
	facts := protocol.Facts{
		ClusterID: identity, Shard: s.shard, Node: s.index, NodeID: string(myself.ID), PrimaryID: string(myself.PrimaryID),
		Role: protocol.RolePrimary, OwnsSlots: protocol.No, ConfigEpoch: myself.ConfigEpoch,
		Server: protocol.ServerRunning, Decision: protocol.DecisionStart, Ready: true, Empty: s.empty,
	}
	if myself.Flags.Replica {
		facts.Role = protocol.RoleReplica
	}
	if !myself.Slots.IsEmpty() {
		facts.OwnsSlots = protocol.Yes
	}
	if s.agent != "" {
		facts.Server, facts.Message, facts.Ready = s.agent, "as the agent says", false
	}
	return facts
}

func (b *bench) at(shard, index int) *seat { return b.seats[shard*(int(b.spec.Replicas)+1)+index] }

// kill ends a member's server; its agent says what state it is in now, or
// nothing when that is empty.
func (b *bench) kill(shard, index int, agent protocol.ServerState) {
	s := b.at(shard, index)
	s.server.Kill()
	s.agent, s.mute = agent, agent == ""
}

// replace ends a member's server and starts a blank one in its place.
func (b *bench) replace(shard, index int, address string) {
	s := b.at(shard, index)
	s.server.Kill()
	s.server.Start(valkeytest.Start{Address: address, Data: valkeytest.Blank})
}

func (b *bench) advance(seconds int) { b.servers.Advance(time.Duration(seconds) * time.Second) }

// tell is a verdict in short: hold and reason, then its actions, with members'
// names in place of their ids.
func (b *bench) tell(verdict plan.Verdict) []string {
	told := []string{strings.TrimSpace(verdict.Hold.String() + " " + verdict.Reason)}
	if verdict.Hold == plan.Settled && len(verdict.Actions) == 0 {
		told = []string{"settled"}
	}
	for _, action := range verdict.Actions {
		text := action.String()
		for _, s := range b.seats {
			text = strings.ReplaceAll(text, string(s.server.ID()), name.Node("prod", s.shard, s.index))
		}
		for _, ghost := range b.ghosts {
			text = strings.ReplaceAll(text, string(ghost), "GHOST")
		}
		told = append(told, text)
	}
	return told
}

// noted fails a test when a verdict that needs a person or time does not say
// what it is about.
func noted(t *testing.T, verdict plan.Verdict) {
	t.Helper()
	if verdict.Hold != plan.Settled && (verdict.Note == "" || verdict.Reason == "") {
		t.Errorf("%s without a reason or a note: %+v", verdict.Hold, verdict)
	}
	if verdict.Hold == plan.Wait && verdict.Look == 0 {
		t.Errorf("it waits without saying when to look again: %+v", verdict)
	}
}

// startEmptied starts a server that knows who it is and has no data.
var startEmptied = valkeytest.Start{Data: valkeytest.Emptied}
