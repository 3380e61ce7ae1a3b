package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// A ValkeyNode that is deleted with --cascade=orphan leaves its workload
// without a controller to the ValkeyNode that is made in its place.
func TestAWorkloadWithoutAController(t *testing.T) {
	t.Parallel()
	adopted := outcome{"workloadExists", plan.Settled, v1alpha1.ReasonPodPending, []string{"adopt StatefulSet valkey-prod-2-1"}}
	taken := outcome{Rule: "workloadExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonNameTaken}
	for what, row := range map[string]struct {
		edit func(*state.Workload)
		want outcome
	}{
		"this member's":                     {func(*state.Workload) {}, adopted},
		"this member's, with another owner": {func(w *state.Workload) { w.OwnerUIDs = []string{"other"} }, adopted},
		"somebody else controls it":         {func(w *state.Workload) { w.OwnerUIDs, w.Orphaned = []string{"other"}, false }, taken},
		"the ValkeyNode before this one still controls it": {
			func(w *state.Workload) { w.OwnerUIDs, w.Orphaned, w.Earlier = []string{"other"}, false, true },
			outcome{Rule: "workloadExists", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"another member's":               {func(w *state.Workload) { w.Labels[name.LabelNodeIndex] = "0" }, taken},
		"not the operator's":             {func(w *state.Workload) { delete(w.Labels, name.LabelManagedBy) }, taken},
		"made for other data":            {func(w *state.Workload) { w.ClusterID = "id-2" }, taken},
		"it does not say for which data": {func(w *state.Workload) { w.ClusterID = "" }, taken},
		"on its way out": {
			func(w *state.Workload) { w.Terminating = true },
			outcome{Rule: "workloadExists", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			in.State.Workload.OwnerUIDs, in.State.Workload.Orphaned = nil, true
			row.edit(in.State.Workload)
			if diff := cmp.Diff(row.want, lastIn(Make(in), TrackWorkload)); diff != "" {
				t.Errorf("the track ends differently (-want +got):\n%s", diff)
			}
		})
	}
}

// The object that was seen is adopted, by this very ValkeyNode.
func TestAdoptionNamesTheWorkloadThatWasSeen(t *testing.T) {
	t.Parallel()
	in := grown()
	in.State.Workload.OwnerUIDs, in.State.Workload.Orphaned = nil, true
	want := plan.Adopt{Kind: "StatefulSet", Name: "valkey-prod-2-1", UID: "set-uid"}
	want.Owner.APIVersion, want.Owner.Kind = "valkey.io/v1alpha1", "ValkeyNode"
	want.Owner.Name, want.Owner.UID = "prod-2-1", "node-uid"
	want.Owner.Controller, want.Owner.BlockOwnerDeletion = new(true), new(true)
	if diff := cmp.Diff([]plan.Action{want}, Make(in).Actions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
