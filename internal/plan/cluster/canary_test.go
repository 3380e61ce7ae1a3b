package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// growingTo is a cluster of 3x1 whose spec asks for 20Gi, where all have 10Gi. A
// growth began five seconds ago; who was told of it is the edit's matter.
func growingTo(edit func(in *Input)) func(*Input) {
	return func(in *Input) {
		sized("20Gi")(in)
		in.State.Status.Storage = &v1alpha1.StorageStatus{ExpandingSince: new(metav1.NewTime(noon.Add(-5 * time.Second)))}
		for i := range in.State.Members {
			member := &in.State.Members[i]
			member.Record.Generation = 2
			member.Agent.Value.Role = protocol.RolePrimary
			if member.Node > 0 {
				member.Agent.Value.Role = protocol.RoleReplica
			}
		}
		edit(in)
	}
}

// tell has a member's node and claim ask for a size.
func tell(in *Input, place int, size string) *state.Member {
	member := &in.State.Members[place]
	member.Record.Spec.Storage.Size = new(resource.MustParse(size))
	member.Claim.Requested = resource.MustParse(size)
	return member
}

func answered(member *state.Member, reason string) {
	member.Claim.Requested = member.Claim.Capacity
	member.Record.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionFalse, Reason: reason, Message: "no", ObservedGeneration: 2,
	}}
}

func failing(member *state.Member, message string) {
	member.Claim.Conditions = []state.ClaimCondition{{
		Type: string(corev1.PersistentVolumeClaimControllerResizeError), Status: corev1.ConditionTrue, Message: message, Since: noon.Add(-time.Second),
	}}
}

func nodes(names ...string) []string {
	told := []string{"settled VolumeExpanding"}
	for _, node := range names {
		told = append(told, "apply node "+node+" as valkey-operator-storage")
	}
	return told
}

func TestSizesCurrent(t *testing.T) {
	t.Parallel()
	rest := nodes("prod-0-0", "prod-1-0", "prod-1-1", "prod-2-0", "prod-2-1")
	held := []string{"wait VolumeExpanding"}
	rows := map[string]struct {
		edit func(*Input)
		want []string
	}{
		"nobody was told: the first replica is": {func(*Input) {}, nodes("prod-0-1")},
		"the fullest replica is first": {func(in *Input) {
			in.State.Members[3].Agent.Value.Disk = filled(60).Value.Disk
			in.State.Members[0].Agent.Value.Disk = filled(80).Value.Disk
		}, nodes("prod-1-1")},
		"use that is not known counts least": {func(in *Input) {
			for i := range in.State.Members {
				in.State.Members[i].Agent.Known = false
				in.State.Members[i].Record.Status.Role = "replica"
			}
			in.State.Members[4].Record.Status.Storage = &v1alpha1.NodeStorageStatus{UsedPercent: new(int32(0))}
		}, nodes("prod-2-0")},
		"there are primaries only: the fullest is first": {func(in *Input) {
			for i := range in.State.Members {
				in.State.Members[i].Agent.Value.Role = protocol.RolePrimary
			}
			in.State.Members[2].Agent.Value.Disk = filled(60).Value.Disk
		}, nodes("prod-1-0")},
		"the first is with its driver": {func(in *Input) { tell(in, 1, "20Gi") }, held},
		"the first has been with its driver for ten seconds": {func(in *Input) {
			tell(in, 1, "20Gi")
			in.State.Now = noon.Add(5 * time.Second)
		}, rest},
		"when the growth began is not known yet": {func(in *Input) { tell(in, 1, "20Gi"); in.State.Status.Storage = nil }, held},
		"the first one's node has not asked yet": {func(in *Input) {
			tell(in, 1, "20Gi").Claim.Requested = resource.MustParse("10Gi")
		}, held},
		"the first has passed its driver": {func(in *Input) {
			tell(in, 1, "20Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizePending)
		}, rest},
		"the first has grown": {func(in *Input) {
			member := tell(in, 1, "20Gi")
			member.Claim.Capacity = resource.MustParse("20Gi")
			member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{LastExpansionTime: new(metav1.NewTime(noon))}
		}, rest},
		"the first has grown, and its node has yet to say so": {func(in *Input) {
			member := tell(in, 1, "20Gi")
			member.Claim.Capacity = resource.MustParse("20Gi")
			member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{Capacity: new(resource.MustParse("10Gi"))}
		}, rest},
		"a volume that had the size before proves nothing": {func(in *Input) {
			tell(in, 1, "20Gi").Claim.Capacity = resource.MustParse("20Gi")
		}, nodes("prod-1-1")},
		"the size is infeasible: the others are left alone": {func(in *Input) {
			tell(in, 1, "20Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
			in.State.Now = noon.Add(time.Hour)
		}, []string{"blocked ExpansionInfeasible"}},
		"a quota refuses the first: the others are left alone": {func(in *Input) {
			answered(tell(in, 1, "20Gi"), v1alpha1.ReasonQuotaExceeded)
			in.State.Now = noon.Add(time.Hour)
		}, []string{"blocked QuotaExceeded"}},
		"what its node said of an earlier size is no answer": {func(in *Input) {
			member := tell(in, 1, "20Gi")
			answered(member, v1alpha1.ReasonQuotaExceeded)
			member.Record.Generation = 3
		}, held},
		"the provider limits the first":             {func(in *Input) { failing(tell(in, 1, "20Gi"), "modification rate") }, rest},
		"the first is in use, and its driver minds": {func(in *Input) { failing(tell(in, 1, "20Gi"), "FailedPrecondition") }, rest},
		"the first is being repeated":               {func(in *Input) { failing(tell(in, 1, "20Gi"), "Internal") }, rest},
		"the first is on its way out":               {func(in *Input) { tell(in, 1, "20Gi").Claim.Terminating = true }, rest},
		"the first cannot grow on its worker": {func(in *Input) {
			tell(in, 1, "20Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizeInfeasible)
		}, rest},
		"two at a time, and one is with its driver": {func(in *Input) {
			in.Spec.Storage.Expansion.MaxParallel = 2
			in.State.Now = noon.Add(time.Minute)
			tell(in, 1, "20Gi")
			in.State.Members[5].Agent.Value.Disk = filled(50).Value.Disk
		}, nodes("prod-2-1")},
		"one at a time, and it is with its driver": {func(in *Input) {
			in.Spec.Storage.Expansion.MaxParallel = 1
			in.State.Now = noon.Add(time.Minute)
			tell(in, 1, "20Gi")
		}, held},
		"one at a time, told a moment ago in a growth that lasts": {func(in *Input) {
			in.Spec.Storage.Expansion.MaxParallel = 1
			in.State.Now = noon.Add(time.Hour)
			told(tell(in, 1, "20Gi"), v1alpha1.ConditionStorageReady, v1alpha1.ReasonVolumeExpanding, -time.Hour)
		}, held},
		"one at a time, told long ago: nothing has begun, and others have their turn": {func(in *Input) {
			in.Spec.Storage.Expansion.MaxParallel = 1
			in.State.Now = noon.Add(time.Hour)
			told(tell(in, 1, "20Gi"), v1alpha1.ConditionStorageReady, v1alpha1.ReasonVolumeExpanding, 0)
		}, nodes("prod-0-0")},
		"one that has trouble of its own holds nobody's place": {func(in *Input) {
			in.Spec.Storage.Expansion.MaxParallel = 1
			failing(tell(in, 1, "20Gi"), "Internal")
		}, nodes("prod-0-0")},
		"all were told": {func(in *Input) {
			for i := range in.State.Members {
				tell(in, i, "20Gi")
			}
		}, []string{"settled"}},
		"a shard that grows by itself has a first one of its own": {func(in *Input) {
			sized("10Gi")(in)
			in.State.Status.Storage.Shards = []v1alpha1.ShardStorageStatus{{Shard: 1, AutoTarget: new(resource.MustParse("12Gi"))}}
		}, nodes("prod-1-1")},
	}
	for what, r := range rows {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			judge(t, sizesCurrent, map[string]row{what: {spec: persistent(3, 1), edit: growingTo(r.edit), want: r.want}})
		})
	}
	judge(t, sizesCurrent, map[string]row{
		"they are":                      {want: []string{"settled"}},
		"an ephemeral cluster has none": {spec: ephemeral(1, 1), want: []string{"settled"}},
	})
}

// The claims are all tried before the first one's node is told, and not again.
func TestAllClaimsAreTriedFirst(t *testing.T) {
	t.Parallel()
	in := freshBench(persistent(3, 1), 1).input()
	growingTo(func(in *Input) { in.State.Members[4].Claim.Requested = resource.MustParse("20Gi") })(&in)
	verdict := sizesCurrent(in)
	var tried []string
	for _, action := range verdict.Trials {
		tried = append(tried, action.String())
	}
	if len(tried) != 5 || slices.Contains(tried, "try to expand claim valkey-prod-2-0-data from 20Gi to 20Gi") {
		t.Errorf("tried are %q", tried)
	}
	tell(&in, 1, "20Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizePending)
	if again := sizesCurrent(in); len(again.Trials) != 0 || len(again.Actions) != 5 {
		t.Errorf("then tried are %v and done %v", again.Trials, again.Actions)
	}
}

func TestGrowthPossible(t *testing.T) {
	t.Parallel()
	quota := func(class, left string) func(*Input) {
		return func(in *Input) {
			in.State.Quotas = state.Seen([]state.Quota{{Name: "small", Class: class, Left: resource.MustParse(left)}})
		}
	}
	rows := map[string]struct {
		edit func(*Input)
		want []string
	}{
		"nothing is known to stand in the way":    {func(*Input) {}, []string{"settled"}},
		"the class allows it":                     {classed(state.Class{Exists: true, Expandable: true}), []string{"settled"}},
		"the class does not":                      {classed(state.Class{Name: "fixed", Exists: true}), []string{"blocked StorageClassNotExpandable"}},
		"the class is gone":                       {classed(state.Class{Name: "gone"}), []string{"blocked StorageClassMissing"}},
		"another class does not":                  {func(in *Input) { in.State.Classes = map[string]state.Class{"other": {Exists: true}} }, []string{"settled"}},
		"a quota has room for all":                {quota("", "60Gi"), []string{"settled"}},
		"a quota has room for all but one":        {quota("", "59Gi"), []string{"blocked QuotaExceeded"}},
		"a quota was lowered below what is there": {quota("", "-5Gi"), []string{"blocked QuotaExceeded"}},
		"a quota of another class":                {quota("other", "0"), []string{"settled"}},
		"a quota of the claims' class": {func(in *Input) {
			quota("fast", "59Gi")(in)
			for i := range in.State.Members {
				in.State.Members[i].Claim.ClassName = "fast"
			}
		}, []string{"blocked QuotaExceeded"}},
		"what was given already is counted already": {func(in *Input) {
			quota("", "55Gi")(in)
			in.State.Members[0].Claim.Allocated = resource.MustParse("15Gi")
		}, []string{"settled"}},
		"quotas could not be read": {func(in *Input) {
			in.State.Quotas = state.Unknown[[]state.Quota]("forbidden")
			in.State.Quotas.Value = []state.Quota{{Name: "small"}}
		}, []string{"settled"}},
		"a limit is below the size":  {limited("19Gi"), []string{"blocked LimitRangeExceeded"}},
		"a limit is just the size":   {limited("20480Mi"), []string{"settled"}},
		"a trial was refused lately": {refusedAgo("20Gi", v1alpha1.ReasonExpansionRefused, 14*time.Second), []string{"blocked ExpansionRefused"}},
		"a trial was refused a while ago": {
			refusedAgo("20Gi", v1alpha1.ReasonExpansionRefused, 15*time.Second), []string{"settled"},
		},
		"a trial of another size was refused lately": {refusedAgo("30Gi", v1alpha1.ReasonExpansionRefused, 0), []string{"settled"}},
		"a trial was refused for the class, which was mended": {func(in *Input) {
			refusedAgo("20Gi", v1alpha1.ReasonStorageClassNotExpandable, 0)(in)
			classed(state.Class{Exists: true, Expandable: true})(in)
		}, []string{"settled"}},
		"the growth has begun: quotas are asked by then": {func(in *Input) { quota("", "0")(in); tell(in, 1, "20Gi") }, []string{"settled"}},
		"the growth has begun, and the class does not allow the rest": {func(in *Input) {
			tell(in, 1, "20Gi")
			classed(state.Class{Name: "fixed", Exists: true})(in)
		}, []string{"blocked StorageClassNotExpandable"}},
		"nothing grows": {func(in *Input) { sized("10Gi")(in); quota("", "0")(in) }, []string{"settled"}},
	}
	for what, r := range rows {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			judge(t, growthPossible, map[string]row{what: {spec: persistent(3, 1), edit: growingTo(r.edit), want: r.want}})
		})
	}
}

func classed(class state.Class) func(*Input) {
	return func(in *Input) { in.State.Classes = map[string]state.Class{"": class} }
}

func limited(most string) func(*Input) {
	return func(in *Input) {
		in.State.Limits = state.Seen([]state.ClaimLimit{{Name: "caps", Max: resource.MustParse(most)}})
	}
}

func refusedAgo(size, reason string, ago time.Duration) func(*Input) {
	return func(in *Input) {
		in.State.Refusal = &state.Refusal{Size: resource.MustParse(size), Reason: reason, Message: "no", At: noon.Add(-ago)}
	}
}

func TestTheRefusalOfATrialIsKept(t *testing.T) {
	t.Parallel()
	tried := plan.TryExpandClaim{Claim: "data", To: resource.MustParse("20Gi")}
	said := &plan.Refusal{Reason: v1alpha1.ReasonQuotaExceeded, Message: "no"}
	refusal, refused := RefusalIn(plan.Outcome{{Rule: RuleSizesCurrent, Err: said, At: tried}})
	if !refused || refusal.Reason != said.Reason || refusal.Size.String() != "20Gi" {
		t.Errorf("kept is %+v, %t", refusal, refused)
	}
	for what, outcome := range map[string]plan.Outcome{
		"another rule's":    {{Rule: "objectsCurrent", Err: said, At: tried}},
		"another action's":  {{Rule: RuleSizesCurrent, Err: said, At: plan.EnsureNode{}}},
		"no refusal at all": {{Rule: RuleSizesCurrent, Done: 1}},
	} {
		if _, refused := RefusalIn(outcome); refused {
			t.Errorf("%s is kept", what)
		}
	}
}

// One shard grows by itself to more than a limit allows, and another's first volume
// has passed its driver: the second goes on, and what is in the first one's way is told.
func TestAGrowthThatIsNotPossibleHoldsNoOther(t *testing.T) {
	t.Parallel()
	in := freshBench(persistent(2, 2), 1).input()
	in.State.Status.Storage = &v1alpha1.StorageStatus{
		ExpandingSince: new(metav1.NewTime(noon.Add(-time.Minute))),
		Shards: []v1alpha1.ShardStorageStatus{
			{Shard: 0, AutoTarget: new(resource.MustParse("30Gi"))}, {Shard: 1, AutoTarget: new(resource.MustParse("12Gi"))},
		},
	}
	limited("20Gi")(&in)
	tell(&in, 3, "12Gi").Claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizePending)
	step, asked := Make(in).Step(RuleSizesCurrent)
	if !asked || step.Hold != plan.Blocked || step.Reason != v1alpha1.ReasonLimitRangeExceeded {
		t.Errorf("it says %s %s: %s", step.Hold, step.Reason, step.Note)
	}
	if len(step.Actions) != 2 || len(step.Trials) != 0 {
		t.Errorf("it does %v", step.Actions)
	}
	if refused, is := RefusedGrowth(in); !is || refused.Reason != v1alpha1.ReasonLimitRangeExceeded {
		t.Errorf("refused is %t: %s", is, refused.Reason)
	}
}
