package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

const newerImage = "valkey/valkey:9.1.3"

// newer has the user ask for another image.
func newer(in *Input) { in.Spec.Image = newerImage }

// roll has the user ask for another image, which the members at some places have.
func (b *bench) roll(places ...[2]int) {
	b.edits = append(b.edits, func(in *Input) {
		for i := range in.State.Members {
			in.State.Members[i].Record.Status.Revision = in.revision(in.State.Members[i])
		}
		newer(in)
	})
	for _, place := range places {
		b.has(place[0], place[1])
	}
}

// has gives a member the newest template and a pod of it.
func (b *bench) has(shard, index int) {
	b.given(shard, index)
	b.edit(shard, index, func(member *state.Member) { member.Record.Status.Revision = member.Record.Spec.Template.Revision })
}

// given gives a member the newest template, its pod is of the former one.
func (b *bench) given(shard, index int) {
	b.edits = append(b.edits, func(in *Input) {
		member := &in.State.Members[shard*(int(b.spec.Replicas)+1)+index]
		member.Record.Spec.Template.Revision = in.revision(*member)
	})
}

// unready has a member's pod not be ready, for a problem or for none that is known.
func (b *bench) unready(shard, index int, problem string) {
	b.edit(shard, index, func(member *state.Member) { member.Pods[0].Ready, member.Pods[0].Problem = false, problem })
}

func (b *bench) allowLoss() {
	b.edits = append(b.edits, func(in *Input) { in.State.LossAllowed = in.revision(in.State.Members[0]) })
}

func TestTemplatesOfAClusterThatHasNotFormed(t *testing.T) {
	t.Parallel()
	judge(t, templatesCurrent, map[string]row{
		"they are current": {want: []string{"settled"}},
		"all are given at once": {edit: newer, want: []string{
			"settled", "apply node prod-0-0 as valkey-operator", "apply node prod-0-1 as valkey-operator",
		}},
		"keys that would go with their pods are kept": {spec: ephemeral(1, 1), edit: func(in *Input) {
			newer(in)
			in.State.Members[0].Server = state.Seen(valkey.View{Info: valkey.Info{Keys: 1}})
		}, want: []string{"wait RollingOut"}},
		"members that are absent or on their way out are not asked": {edit: func(in *Input) {
			newer(in)
			in.State.Members[0].Record = nil
			in.State.Members[1].Record.Deleting = true
		}, want: []string{"settled"}},
	})
}

func TestTemplatesCurrent(t *testing.T) {
	t.Parallel()
	waits, acts := "wait RollingOut", "settled RollingOut"
	apply := func(node string) string { return "apply node " + node + " as valkey-operator" }
	handOver := "ask node prod-0-1 to take shard 0 over from its primary"
	only := func(in *Input, edit func(*v1alpha1.ValkeyClusterSpec)) { edit(&in.Spec) }
	edited := func(edit func(*v1alpha1.ValkeyClusterSpec)) func(*bench) {
		return func(b *bench) { b.edits = append(b.edits, func(in *Input) { only(in, edit) }) }
	}
	play(t, templatesCurrent, map[string]scene{
		"they are": {spec: persistent(3, 1), want: []string{"settled"}},
		"a new agent image rolls nothing": {spec: persistent(3, 1), happens: func(b *bench) {
			b.edits = append(b.edits, func(in *Input) { in.AgentImage = "valkey-operator:v2" })
		}, want: []string{"settled"}},
		"a new size rolls nothing": {spec: persistent(3, 1), happens: edited(func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Storage = spec.Storage.DeepCopy()
			spec.Storage.Size = new(resource.MustParse("20Gi"))
		}), want: []string{"settled"}},
		"another retention rolls nothing": {spec: persistent(3, 1), happens: edited(func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Storage = spec.Storage.DeepCopy()
			spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete
		}), want: []string{"settled"}},
		"another policy rolls nothing": {spec: persistent(3, 1), happens: edited(func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Storage = spec.Storage.DeepCopy()
			spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineRollingRestart
		}), want: []string{"settled"}},
		"another user rolls nothing": {spec: persistent(3, 1), happens: edited(func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Users = []v1alpha1.User{{Name: "app", Nopass: true}}
		}), want: []string{"settled"}},
		"other resources roll": {spec: persistent(3, 1), happens: edited(func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), want: []string{acts, apply("prod-0-1")}},
		"another place rolls": {spec: persistent(3, 1), happens: edited(func(spec *v1alpha1.ValkeyClusterSpec) {
			spec.Scheduling = &v1alpha1.Scheduling{PriorityClassName: "high"}
		}), want: []string{acts, apply("prod-0-1")}},
		"the first goes alone, a replica":              {spec: persistent(3, 1), happens: func(b *bench) { b.roll() }, want: []string{acts, apply("prod-0-1")}},
		"once it is well, one of each shard goes":      {spec: persistent(3, 1), happens: func(b *bench) { b.roll([2]int{0, 1}) }, want: []string{acts, handOver, apply("prod-1-1"), apply("prod-2-1")}},
		"but of three shards at a time":                {spec: persistent(9, 1), happens: func(b *bench) { b.roll([2]int{8, 1}) }, want: []string{acts, apply("prod-0-1"), apply("prod-1-1"), apply("prod-2-1")}},
		"of two replicas one":                          {spec: persistent(1, 2), happens: func(b *bench) { b.roll() }, want: []string{acts, apply("prod-0-1")}},
		"then the other, before the primary":           {spec: persistent(1, 2), happens: func(b *bench) { b.roll([2]int{0, 1}) }, want: []string{acts, apply("prod-0-2")}},
		"a replica that failed over is no replica":     {spec: persistent(1, 1), happens: func(b *bench) { b.failOver(0, 1); b.roll() }, want: []string{acts, apply("prod-0-0")}},
		"a former primary is replaced as a replica":    {spec: persistent(1, 1), happens: func(b *bench) { b.failOver(0, 1); b.roll([2]int{0, 1}) }, want: []string{acts, apply("prod-0-0")}},
		"one that was given it holds its shard's turn": {spec: persistent(1, 1), happens: func(b *bench) { b.roll(); b.given(0, 1) }, want: []string{waits}},
		"one whose node has not said anything yet": {spec: persistent(1, 1), happens: func(b *bench) {
			newerGiven(b)
			b.edit(0, 1, func(m *state.Member) { m.Record.Generation, m.Record.Status.ObservedGeneration = 3, 2 })
		}, want: []string{waits}},
		"one that was given it and is the primary by now hands over": {spec: persistent(1, 1), happens: func(b *bench) {
			b.roll([2]int{0, 1})
			b.given(0, 0)
		}, want: []string{acts, handOver}},
		"and before the others of its shard":        {spec: persistent(1, 1), happens: func(b *bench) { b.roll(); b.given(0, 0) }, want: []string{acts, handOver}},
		"also where there are more than it and one": {spec: persistent(1, 2), happens: func(b *bench) { b.roll(); b.given(0, 0) }, want: []string{acts, handOver}},
		"of two silent ones beside their primary one gets it": {spec: persistent(1, 2), happens: func(b *bench) {
			b.roll()
			for _, index := range []int{1, 2} {
				b.kill(0, index, "")
				b.unready(0, index, "")
			}
		}, want: []string{acts, apply("prod-0-1")}},
		"one that starts with it is not hurried": {spec: persistent(3, 1), happens: func(b *bench) {
			b.roll([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) {
				told(m, v1alpha1.ConditionWorkloadReady, v1alpha1.ReasonRollingOut, time.Second)
			})
		}, want: []string{waits}},
		"nobody goes while a replica is not in sync": {spec: persistent(3, 1), happens: func(b *bench) {
			b.roll([2]int{0, 1})
			b.at(2, 1).server.Silence(true)
		}, want: []string{waits}},
		"nobody goes while a voter does not know of a replica whose it is": {spec: persistent(3, 1), happens: func(b *bench) {
			b.roll([2]int{0, 1})
			replica := b.at(0, 1).server.ID()
			b.edit(2, 0, func(m *state.Member) {
				view := &m.Server.Value
				view.Table.Nodes = slices.Clone(view.Table.Nodes)
				for i, entry := range view.Table.Nodes {
					if entry.ID == replica {
						view.Table.Nodes[i].Flags.Replica, view.Table.Nodes[i].Flags.Primary = false, true
					}
				}
			})
		}, want: []string{waits}},
		"nobody goes while an agent does not answer":  {spec: persistent(3, 1), happens: func(b *bench) { b.roll([2]int{0, 1}); b.at(2, 0).mute = true }, want: []string{waits}},
		"nobody goes while a pod is not ready":        {spec: persistent(3, 1), happens: func(b *bench) { b.roll([2]int{0, 1}); b.unready(1, 0, "") }, want: []string{waits}},
		"no shard's failover begins beside another's": {spec: persistent(3, 1), happens: func(b *bench) { b.roll([2]int{0, 1}, [2]int{1, 1}, [2]int{2, 1}); b.asked(1, time.Second) }, want: []string{waits}},
		"one that is over is no hindrance": {spec: persistent(3, 1), happens: func(b *bench) {
			b.failOver(1, 1)
			b.roll([2]int{0, 1}, [2]int{1, 1}, [2]int{1, 0}, [2]int{2, 1})
			b.asked(1, time.Second)
		}, want: []string{acts, handOver}},
		"a replica was asked a moment ago":         {spec: persistent(1, 1), happens: func(b *bench) { b.roll([2]int{0, 1}); b.asked(0, failoverPause-time.Second) }, want: []string{waits}},
		"it did not take over, and is asked again": {spec: persistent(1, 1), happens: func(b *bench) { b.roll([2]int{0, 1}); b.asked(0, failoverPause) }, want: []string{acts, handOver}},
		"a replica that is about to end is no heir": {spec: persistent(1, 1), happens: func(b *bench) {
			b.roll([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) { m.Agent.Value.Server = protocol.ServerStopping })
		}, want: []string{waits}},
		"without replicas a member is restarted in place":       {spec: persistent(3, 0), happens: func(b *bench) { b.roll() }, want: []string{acts, apply("prod-0-0")}},
		"of them a minority at a time":                          {spec: persistent(7, 0), happens: func(b *bench) { b.roll([2]int{6, 0}) }, want: []string{acts, apply("prod-0-0"), apply("prod-1-0"), apply("prod-2-0")}},
		"of three shards without replicas one":                  {spec: persistent(3, 0), happens: func(b *bench) { b.roll([2]int{2, 0}) }, want: []string{acts, apply("prod-0-0")}},
		"without volumes and replicas nobody goes unasked":      {spec: ephemeral(3, 0), happens: func(b *bench) { b.roll() }, want: []string{"blocked DataLossOnRestart"}},
		"once allowed they go":                                  {spec: ephemeral(3, 0), happens: func(b *bench) { b.roll(); b.allowLoss() }, want: []string{acts, apply("prod-0-0")}},
		"what was allowed for another edit is not for this one": {spec: ephemeral(3, 0), happens: func(b *bench) { b.allowLoss(); b.roll() }, want: []string{"blocked DataLossOnRestart"}},
		"with replicas they go":                                 {spec: ephemeral(3, 1), happens: func(b *bench) { b.roll() }, want: []string{acts, apply("prod-0-1")}},
		"one that is stopped for its volume gets it at once":    {spec: rolling(3, 1), happens: func(b *bench) { b.roll(); b.away(1, 1, time.Minute) }, want: []string{acts, apply("prod-1-1")}},
		"one that is broken gets it at once, and nobody else": {spec: persistent(3, 1), happens: func(b *bench) {
			b.roll()
			b.kill(1, 1, "")
			b.unready(1, 1, "container server: ErrImagePull")
		}, want: []string{acts, apply("prod-1-1")}},
		"a broken one that has it stops the roll": {spec: persistent(3, 1), happens: func(b *bench) {
			b.roll([2]int{0, 1})
			b.kill(0, 1, "")
			b.unready(0, 1, "container server: ErrImagePull")
		}, want: []string{waits}},
		"a primary that does not run gets it at once, if nobody took over": {spec: persistent(3, 0), happens: func(b *bench) {
			b.roll()
			b.kill(1, 0, "")
			b.unready(1, 0, "container server: CrashLoopBackOff")
		}, want: []string{acts, apply("prod-1-0")}},
		"one whose server is held gets it at once": {spec: persistent(3, 0), happens: func(b *bench) {
			b.roll()
			b.kill(1, 0, protocol.ServerHeld)
			b.unready(1, 0, "")
		}, want: []string{acts, apply("prod-1-0")}},
		"one that is silent is unknown": {spec: persistent(3, 0), happens: func(b *bench) {
			b.roll()
			b.kill(1, 0, "")
			b.unready(1, 0, "")
		}, want: []string{waits}},
		"a silent one beside its primary gets it at once": {spec: persistent(3, 1), happens: func(b *bench) {
			b.roll()
			b.kill(1, 1, "")
			b.unready(1, 1, "")
		}, want: []string{acts, apply("prod-1-1")}},
		"but not beside one that is being replaced": {spec: persistent(1, 2), happens: func(b *bench) {
			b.roll()
			b.given(0, 2)
			b.kill(0, 1, "")
			b.unready(0, 1, "")
		}, want: []string{waits}},
		"a volume waits for its member to be stopped: it is, and then gets the template": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline(everybody(3, 1)...)
			b.roll()
		}, want: []string{waits}},
	})
}

func newerGiven(b *bench) {
	b.edits = append(b.edits, newer)
	b.given(0, 1)
}

// Both causes at once take one member of a shard, and one failover in all.
func TestAGrowthAndARollShareTheirTurns(t *testing.T) {
	t.Parallel()
	b := formedBench(rolling(3, 1), 1)
	b.offline(everybody(3, 1)...)
	b.roll([2]int{1, 1}, [2]int{2, 1})
	touched := map[string]bool{}
	for _, action := range Make(b.input()).Actions() {
		text := action.String()
		for _, shard := range []string{"prod-0-", "prod-1-", "prod-2-"} {
			if !strings.Contains(text, shard) {
				continue
			}
			if touched[shard] {
				t.Errorf("a second member of a shard: %s", text)
			}
			touched[shard] = true
		}
	}
	if len(touched) == 0 {
		t.Error("nobody goes")
	}
}

// A note of a roll names who goes, how far it is, and what is broken.
func TestRollNotes(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		happens func(b *bench)
		want    []string
	}{
		"it begins":  {func(b *bench) { b.roll() }, []string{"0 of 6 members have it", "node prod-0-1 is being replaced"}},
		"it goes on": {func(b *bench) { b.roll([2]int{0, 1}); b.given(1, 1) }, []string{"1 of 6 members have it", "node prod-1-1 is being replaced"}},
		"it is broken": {func(b *bench) {
			b.roll([2]int{0, 1})
			b.kill(0, 1, "")
			b.unready(0, 1, "container server: ErrImagePull: no such image")
		}, []string{"pod prod-0-1 does not run", "no such image", "mend the spec, or set it back", "shard 0 lacks a member"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := formedBench(persistent(3, 1), 1)
			row.happens(b)
			note := templatesCurrent(b.input()).Note
			for _, want := range row.want {
				if !strings.Contains(note, want) {
					t.Errorf("it does not say %q: %s", want, note)
				}
			}
		})
	}
}
