package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// provider is what stands behind the claims: it does what it was told at any pace, and
// knows how much it can give.
type provider struct {
	in   Input
	most resource.Quantity
	// stuck are members whose volumes never grow, and say so.
	stuck map[string]bool
}

func anyProvider(t *rapid.T) *provider {
	shards, replicas := rapid.Int32Range(1, 6).Draw(t, "shards"), rapid.Int32Range(0, 2).Draw(t, "replicas")
	p := &provider{in: freshBench(persistent(shards, replicas), 1).input(), stuck: map[string]bool{}}
	p.in.Spec.Storage.Expansion.MaxParallel = rapid.Int32Range(0, 4).Draw(t, "parallel")
	sized("20Gi")(&p.in)
	p.most = resource.MustParse(rapid.SampledFrom([]string{"15Gi", "20Gi", "1Ti"}).Draw(t, "most"))
	for i := range p.in.State.Members {
		member := &p.in.State.Members[i]
		member.Agent = rapid.SampledFrom([]state.Fact[protocol.Facts]{filled(10), filled(60), filled(97), state.Unknown[protocol.Facts]("silent")}).Draw(t, "agent")
		p.stuck[member.Name] = rapid.IntRange(0, 5).Draw(t, "stuck") == 0
	}
	return p
}

// tell has the nodes that a plan names ask for their sizes, and their claims too.
func (p *provider) tell(actions []plan.Action) {
	for _, action := range actions {
		told, is := action.(plan.EnsureNode)
		if !is {
			continue
		}
		i := slices.IndexFunc(p.in.State.Members, func(m state.Member) bool { return m.Name == told.Node })
		member := &p.in.State.Members[i]
		size := p.in.target(*member)
		member.Record.Spec.Storage.Size, member.Claim.Requested = &size, size
	}
}

// work lets the driver do something about some of the claims.
func (p *provider) work(t *rapid.T) {
	p.in.State.Now = p.in.State.Now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "seconds")) * time.Second)
	for i := range p.in.State.Members {
		member := &p.in.State.Members[i]
		claim := member.Claim
		if claim.Requested.Cmp(claim.Capacity) <= 0 || rapid.Bool().Draw(t, "slow") {
			continue
		}
		switch {
		case claim.Requested.Cmp(p.most) > 0:
			claim.Allocated, claim.ResizeStatus = claim.Requested, string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
		case p.stuck[member.Name]:
			failing(member, "Internal: try again")
		default:
			claim.Capacity, claim.Conditions, claim.ResizeStatus = claim.Requested, nil, ""
			member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{LastExpansionTime: new(metav1.NewTime(p.in.State.Now))}
		}
	}
}

func (p *provider) infeasible() int {
	count := 0
	for _, member := range p.in.State.Members {
		if member.Claim.ResizeStatus != "" {
			count++
		}
	}
	return count
}

// pass makes one pass over the storage rules, as a plan would, and carries it out.
func (p *provider) pass(t *rapid.T) (moved bool) {
	made := plan.Make([]plan.Track[Input]{{Name: "storage", Rules: []plan.Rule[Input]{
		{Name: "sizesGiven", Judge: sizesGiven}, {Name: RuleGrowthPossible, Judge: growthPossible}, {Name: RuleSizesCurrent, Judge: sizesCurrent},
	}}}, p.in)
	if step, asked := made.Step(RuleSizesCurrent); asked {
		if busy, most := p.in.busy()+len(step.Actions), p.in.parallel(); len(step.Actions) > 0 && busy > most && len(step.Trials) == 0 {
			t.Fatalf("%d volumes are with the driver, of %d", busy, most)
		}
		if p.infeasible() > 0 && len(step.Actions) > 0 {
			t.Fatalf("a size that is known to be infeasible is told to more: %v", step.Actions)
		}
	}
	p.tell(made.Actions())
	if p.in.State.Status.Storage == nil && len(made.Actions()) > 0 {
		p.in.State.Status.Storage = &v1alpha1.StorageStatus{ExpandingSince: new(metav1.NewTime(p.in.State.Now))}
	}
	return len(made.Actions()) > 0
}

// Whatever the driver does and whatever is not known: in the end every volume that can
// grow has grown, or a refusal holds those that were not asked. Nobody waits for a
// volume with trouble of its own.
func TestAnyGrowthEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := anyProvider(t)
		for range 120 {
			p.pass(t)
			p.work(t)
		}
		p.checkEnd(t)
	})
}

// checkEnd fails the test when a volume that can grow has not grown, or more of them
// were asked in vain than must be: one is, or a few when the first was slow to
// answer, and those whose disks are full.
func (p *provider) checkEnd(t *rapid.T) {
	want := resource.MustParse("20Gi")
	possible, full := p.most.Cmp(want) >= 0, 0
	for _, member := range p.in.State.Members {
		if member.Claim.Requested.Cmp(member.Claim.Capacity) < 0 {
			t.Fatalf("claim %s asks for less than it has", member.Claim.Name)
		}
		if possible && member.Claim.Capacity.Cmp(want) < 0 && !p.stuck[member.Name] {
			t.Fatalf("the volume of %s never grew", member.Name)
		}
		if used(member) >= fullPercent {
			full++
		}
	}
	if !possible && p.infeasible() > full+p.in.parallel()+1 {
		t.Fatalf("%d volumes were asked in vain", p.infeasible())
	}
}

// Trouble with volumes takes nothing from what else there is to do, and what is not
// known is no reason to do anything else.
func TestVolumesBlockNothingElse(t *testing.T) {
	t.Parallel()
	others := func(in Input) string {
		var told []string
		for _, step := range Make(in) {
			if step.Track != "storage" && step.Track != "offline" {
				told = append(told, fmt.Sprint(step.Track, step.Rule, step.Hold, step.Actions))
			}
		}
		return fmt.Sprint(told)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := freshBench(persistent(rapid.Int32Range(1, 3).Draw(t, "shards"), 1), 1)
		b.formed = rapid.Bool().Draw(t, "formed")
		if rapid.Bool().Draw(t, "somebody is down") {
			b.kill(0, 0, "")
		}
		well, ill := b.input(), b.input()
		sized("20Gi")(&well)
		sized("20Gi")(&ill)
		for i := range ill.State.Members {
			claim := ill.State.Members[i].Claim
			claim.ResizeStatus = rapid.SampledFrom([]string{"", "ControllerResizeInfeasible", "NodeResizeInfeasible", "Pondering"}).Draw(t, "status")
			claim.Requested = resource.MustParse(rapid.SampledFrom([]string{"10Gi", "20Gi", "1Ti"}).Draw(t, "requested"))
		}
		ill.State.Quotas = state.Seen([]state.Quota{{Name: "none"}})
		ill.State.Classes = map[string]state.Class{"": {Exists: rapid.Bool().Draw(t, "class"), Expandable: rapid.Bool().Draw(t, "grows")}}
		if got, want := others(ill), others(well); got != want {
			t.Fatalf("with trouble it is\n%s\nwithout\n%s", got, want)
		}
	})
}
