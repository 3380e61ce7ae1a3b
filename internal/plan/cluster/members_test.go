package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// scene is a rule asked about a bench to which something happened.
type scene struct {
	spec    v1alpha1.ValkeyClusterSpec
	fresh   bool
	happens func(*bench)
	want    []string
}

func play(t *testing.T, rule func(Input) plan.Verdict, scenes map[string]scene) {
	t.Helper()
	for what, s := range scenes {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			start := formedBench
			if s.fresh {
				start = freshBench
			}
			b := start(s.spec, 1)
			if s.happens != nil {
				s.happens(b)
			}
			verdict := rule(b.input())
			noted(t, verdict)
			if diff := cmp.Diff(s.want, b.tell(verdict)); diff != "" {
				t.Errorf("(-want +got):\n%s\nnote: %s", diff, verdict.Note)
			}
		})
	}
}

func TestMembersAnswer(t *testing.T) {
	t.Parallel()
	play(t, membersAnswer, map[string]scene{
		"everybody answers":                {spec: persistent(3, 1), want: []string{"settled"}},
		"a fresh member does not yet":      {spec: persistent(3, 1), fresh: true, happens: func(b *bench) { b.kill(0, 1, "") }, want: []string{"wait MembersStarting"}},
		"a member of a formed one is gone": {spec: persistent(3, 1), happens: func(b *bench) { b.at(0, 1).podless = true }, want: []string{"wait MemberUnreachable"}},
		"a server answers, its agent does not": {
			spec: persistent(3, 1), happens: func(b *bench) { b.at(0, 1).mute = true },
			want: []string{"wait MemberUnreachable"},
		},
		"an agent answers, its server does not": {
			spec: persistent(3, 1), happens: func(b *bench) { b.kill(0, 1, protocol.ServerLoading) },
			want: []string{"wait MemberUnreachable"},
		},
		"a member is held": {spec: persistent(3, 1), happens: func(b *bench) { b.kill(0, 0, protocol.ServerHeld) }, want: []string{"wait MemberHeld"}},
	})
}

func TestMembersAreLookedAtAsOftenAsItHelps(t *testing.T) {
	t.Parallel()
	created := func(ago time.Duration) func(*Input) {
		return func(in *Input) { in.State.Members[1].Pods[0].CreatedAt = noon.Add(-ago) }
	}
	for what, row := range map[string]struct {
		happens func(*bench)
		want    time.Duration
	}{
		"its pod was just made":          {func(b *bench) { b.edits = append(b.edits, created(time.Second)) }, plan.LookGossip},
		"its pod has run for long":       {func(b *bench) { b.edits = append(b.edits, created(time.Hour)) }, plan.LookServer},
		"it has no pod, which will wake": {func(b *bench) { b.at(0, 1).podless = true }, plan.LookWorld},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := freshBench(persistent(1, 1), 1)
			b.kill(0, 1, "")
			row.happens(b)
			if got := membersAnswer(b.input()).Look; got != row.want {
				t.Errorf("looked at again after %s, want %s", got, row.want)
			}
		})
	}
}

func TestUnheardEndsAfterAWhile(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		waited time.Duration
		want   bool
	}{
		"an answer was missed":          {0, true},
		"nothing is heard for a minute": {time.Minute, true},
		"nothing is heard for long":     {unheardTime + time.Second, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := formedBench(persistent(3, 1), 1)
			b.kill(0, 1, "")
			in := b.input()
			if row.waited > 0 {
				in.State.Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMemberUnreachable,
					LastTransitionTime: metav1.NewTime(noon.Add(-row.waited)),
				}}
			}
			if got := Unheard(in); got != row.want {
				t.Errorf("unheard is %t, want %t", got, row.want)
			}
		})
	}
}

func TestNodesMet(t *testing.T) {
	t.Parallel()
	play(t, nodesMet, map[string]scene{
		"everybody knows everybody": {spec: persistent(3, 1), want: []string{"settled"}},
		"one member alone":          {spec: ephemeral(1, 0), fresh: true, want: []string{"settled"}},
		"nobody knows anybody: the hub first": {spec: persistent(3, 0), fresh: true, want: []string{
			"wait Meeting", "introduce node prod-1-0 at 10.0.0.2 to node prod-0-0", "introduce node prod-2-0 at 10.0.0.3 to node prod-0-0",
		}},
		"introductions that are under way are not repeated": {
			spec: persistent(2, 0), fresh: true, happens: func(b *bench) { b.meet(0, 1) },
			want: []string{"wait Meeting"},
		},
		"a silent member holds nobody up": {
			spec: persistent(3, 0), fresh: true, happens: func(b *bench) { b.at(1, 0).server.Silence(true) },
			want: []string{"wait Meeting", "introduce node prod-2-0 at 10.0.0.3 to node prod-0-0"},
		},
		"a member whose agent is another cluster's is not introduced": {
			spec: persistent(2, 0), fresh: true, happens: func(b *bench) { b.at(1, 0).mute = true },
			want: []string{"settled"},
		},
		"a member is known under an older address": {spec: persistent(3, 0), happens: func(b *bench) {
			for _, s := range b.seats {
				s.server.Kill()
			}
			for i, address := range []string{"10.1.0.1:6379", "10.1.0.2:6379", "10.1.0.3:6379"} {
				b.seats[i].server.Start(valkeytest.Start{Address: address})
			}
		}, want: []string{"wait Meeting", "introduce node prod-1-0 at 10.1.0.2 to node prod-0-0", "introduce node prod-2-0 at 10.1.0.3 to node prod-0-0"}},
		"a blank newcomer is introduced to one that owns slots": {
			spec: ephemeral(3, 0), happens: func(b *bench) { b.replace(0, 0, "10.1.0.1:6379") },
			want: []string{"wait Meeting", "introduce node prod-0-0 at 10.1.0.1 to node prod-1-0"},
		},
	})
}

// meet introduces one seat's server to another's.
func (b *bench) meet(via, other int) {
	server, err := b.servers.Dial(b.context(), valkey.Target{Address: b.seats[via].server.Address()})
	if err == nil {
		err = server.Meet(b.context(), b.input().State.Members[other].Pods[0].IP, 6379, 16379)
	}
	if err != nil {
		panic(err)
	}
}

func TestGhostsForgotten(t *testing.T) {
	t.Parallel()
	forgetAll := func(nodes ...string) []string {
		told := []string{"settled Forgetting"}
		for _, node := range nodes {
			told = append(told, "make node "+node+" forget GHOST")
		}
		return told
	}
	play(t, ghostsForgotten, map[string]scene{
		"nobody is a ghost":                 {spec: persistent(3, 1), want: []string{"settled"}},
		"a dead member is no ghost":         {spec: persistent(3, 1), happens: func(b *bench) { b.kill(0, 1, ""); b.advance(30) }, want: []string{"settled"}},
		"a replica was replaced, just now":  {spec: ephemeral(3, 1), happens: func(b *bench) { b.replace(0, 1, "10.1.0.1:6379") }, want: []string{"settled"}},
		"a replica was replaced and failed": {spec: ephemeral(3, 1), happens: replacedReplica, want: forgetAll("prod-0-0", "prod-1-0", "prod-1-1", "prod-2-0", "prod-2-1")},
		"somebody is silent: it may be the ghost": {spec: ephemeral(3, 1), happens: func(b *bench) {
			replacedReplica(b)
			b.at(2, 1).server.Silence(true)
		}, want: []string{"settled"}},
		"an old pod may still run": {
			spec: ephemeral(3, 1), happens: func(b *bench) { replacedReplica(b); b.at(0, 1).doubled = true },
			want: []string{"settled"},
		},
		"a replica still follows the ghost": {
			spec: ephemeral(1, 1), happens: func(b *bench) { b.replace(0, 0, "10.1.0.1:6379"); b.advance(30) },
			want: []string{"settled"},
		},
		"of two shards one was replaced, which nobody can vote failed": {spec: ephemeral(2, 0), happens: func(b *bench) {
			b.markGhost(0, 0)
			b.replace(0, 0, "10.1.0.1:6379")
			b.advance(30)
		}, want: forgetAll("prod-1-0")},
	})
}

// A server tells nobody that it gave another one up: who waits for that has to look.
func TestAGhostIsLookedAtUntilItIsGone(t *testing.T) {
	t.Parallel()
	b := formedBench(ephemeral(3, 1), 1)
	if look := ghostsForgotten(b.input()).Look; look != 0 {
		t.Errorf("nobody is a ghost, and it is looked at again after %s", look)
	}
	b.replace(0, 1, "10.1.0.1:6379")
	if look := ghostsForgotten(b.input()).Look; look == 0 || look > plan.LookWorld {
		t.Errorf("a ghost is looked at again after %s", look)
	}
}

func replacedReplica(b *bench) {
	b.markGhost(0, 1)
	b.replace(0, 1, "10.1.0.1:6379")
	b.advance(30)
}
