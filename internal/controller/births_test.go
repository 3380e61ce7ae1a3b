package controller

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

func TestSlotsOfANewClusterAreNobodysUntilGiven(t *testing.T) {
	t.Parallel()
	snapshot := state.Cluster{Namespace: "shop", Name: "prod", UID: "uid", FreshID: "fresh"}
	acts := func(rule string, action plan.Action) plan.Plan {
		return plan.Plan{{Rule: rule, Verdict: plan.Verdict{Actions: []plan.Action{action}}}}
	}
	identity := func(id string) plan.Plan {
		return acts(cluster.RuleIdentityRecorded, plan.RecordIdentity{Cluster: "prod", ClusterID: id})
	}
	give := acts("slotsAssigned", plan.AssignSlots{To: plan.Server{Node: "prod-1-0"}, Shard: 1})
	done := plan.Outcome{{Rule: cluster.RuleIdentityRecorded, Done: 1}}
	failed := plan.Outcome{{Rule: cluster.RuleIdentityRecorded, Err: errors.New("conflict")}, {Rule: "slotsAssigned", Err: errors.New("no answer")}}
	born := func(b *births) { b.keep(snapshot, 2, identity("fresh"), done) }
	for what, row := range map[string]struct {
		happens func(*births)
		want    map[int]bool
	}{
		"nothing is remembered":              {func(*births) {}, nil},
		"its identity was made here":         {born, map[int]bool{0: true, 1: true}},
		"its identity could not be written":  {func(b *births) { b.keep(snapshot, 2, identity("fresh"), failed) }, nil},
		"its identity is that of old claims": {func(b *births) { b.keep(snapshot, 2, identity("kept"), done) }, nil},
		"a shard's slots were given":         {func(b *births) { born(b); b.keep(snapshot, 2, give, nil) }, map[int]bool{0: true}},
		"a shard's slots may have been given": {
			func(b *births) { born(b); b.keep(snapshot, 2, give, failed) }, map[int]bool{0: true},
		},
		"it has formed": {func(b *births) {
			born(b)
			formed := snapshot
			formed.Status = v1alpha1.ValkeyClusterStatus{Formed: true}
			b.keep(formed, 2, nil, nil)
		}, nil},
		"it is gone":          {func(b *births) { born(b); b.forget(client.ObjectKey{Namespace: "shop", Name: "prod"}) }, nil},
		"another one is gone": {func(b *births) { born(b); b.forget(client.ObjectKey{Namespace: "shop", Name: "x"}) }, map[int]bool{0: true, 1: true}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := &births{}
			row.happens(b)
			if diff := cmp.Diff(row.want, b.unowned("uid")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
