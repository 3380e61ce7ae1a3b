package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	nodeplan "valkey.io/valkey-operator/internal/plan/node"
)

// stopping is a formed cluster of which one volume waits for its member to be
// stopped, and the user lets it.
func stopping(in *cluster.Input) {
	in.State.Status.Formed = true
	in.Spec.Storage.Size = new(size("2Gi"))
	in.Spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineRollingRestart
	in.State.Members[0].Claim.Capacity = size("2Gi")
	in.State.Members[1].Record.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOfflineExpansionRequired, Message: "it is in use",
	}}
}

// gone has the second member be away for its volume to grow.
func gone(in *cluster.Input) {
	stopping(in)
	in.State.Members[1].Record.Spec.Stopped = true
	in.State.Members[1].Pods = nil
}

// attach gives members to their primary, as replicas that it did not know.
func attach(members ...int) []plan.Action {
	var actions []plan.Action
	for _, member := range members {
		actions = append(actions, plan.AttachReplica{Replica: plan.Server{Node: settledCluster().State.Members[member].Name}, Primary: "p"})
	}
	return actions
}

func TestClusterStatusWhileMembersAreStopped(t *testing.T) {
	t.Parallel()
	working := plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding, Note: "a node is stopped"}
	growing := map[string]string{
		"state": "Reconciling VolumeExpanding", "StorageReady": "False VolumeExpanding", "Progressing": "True VolumeExpanding",
	}
	for what, row := range map[string]struct {
		edit    func(*cluster.Input)
		offline plan.Verdict
		given   map[string]plan.Verdict
		want    map[string]string
	}{
		"a volume waits for its member to be stopped":   {edit: stopping, offline: working, want: growing},
		"a replica is stopped, and is missed by nobody": {edit: gone, offline: working, want: growing},
		"a replica comes back at another address": {
			edit: gone, offline: working, want: growing,
			given: map[string]plan.Verdict{"nodesMet": {Hold: plan.Wait, Reason: v1alpha1.ReasonMeeting, Note: "it is introduced"}},
		},
		"a replica that lost its memory is attached anew": {
			edit: gone, offline: working, want: growing,
			given: map[string]plan.Verdict{"replicasAttached": {Reason: v1alpha1.ReasonReplicasAttaching, Actions: attach(1)}},
		},
		"another replica is attached as well": {
			edit: gone, offline: working,
			given: map[string]plan.Verdict{"replicasAttached": {Reason: v1alpha1.ReasonReplicasAttaching, Actions: attach(1, 0)}},
			want: map[string]string{
				"state": "Reconciling ReplicasAttaching", "StorageReady": "False VolumeExpanding", "Progressing": "True VolumeExpanding",
				"Ready": "False ReplicasAttaching",
			},
		},
		"a shard without a replica is not served": {
			edit: func(in *cluster.Input) { gone(in); in.Spec.Replicas = 0 }, offline: working,
			given: map[string]plan.Verdict{"slotsAssigned": {Hold: plan.Wait, Reason: v1alpha1.ReasonSlotsUnassigned, Note: "the owner is stopped"}},
			want: map[string]string{
				"state": "Reconciling SlotsUnassigned", "StorageReady": "False VolumeExpanding", "Progressing": "True VolumeExpanding",
				"Ready": "False SlotsUnassigned", "SlotsAssigned": "False SlotsUnassigned", "ConfigurationWarning": "False NoWarning",
			},
		},
		"the user has to stop the members": {
			edit: func(in *cluster.Input) {
				stopping(in)
				in.Spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineManual
			},
			offline: plan.Verdict{Hold: plan.Blocked, Reason: v1alpha1.ReasonOfflineExpansionRequired, Note: "stop it"},
			want: map[string]string{
				"state": "Degraded OfflineExpansionRequired", "StorageReady": "False OfflineExpansionRequired", "Degraded": "True OfflineExpansionRequired",
			},
		},
		"a member was stopped in vain": {
			edit: stopping, offline: plan.Verdict{Hold: plan.Blocked, Reason: v1alpha1.ReasonExpansionStalled, Note: "nothing came of it"},
			want: map[string]string{
				"state": "Degraded ExpansionStalled", "StorageReady": "False ExpansionStalled", "Degraded": "True ExpansionStalled",
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := settledCluster()
			row.edit(&in)
			made := append(verdicts(row.given), plan.Step{Track: "offline", Rule: cluster.RuleOfflineVolumesGrown, Verdict: row.offline})
			checkStatus(t, in, made, nil, row.want)
		})
	}
}

// A stop and the start after it are told once each, whatever is seen in between.
func TestRestartEvents(t *testing.T) {
	t.Parallel()
	var got []string
	status := v1alpha1.ValkeyNodeStatus{}
	look := func(edit func(*nodeplan.Input)) {
		in := settledNode()
		in.State.Status = status
		edit(&in)
		made := nodeplan.Make(in)
		next := NodeStatus(status, in, made, nil)
		for _, event := range NodeEvents(status, next) {
			if event.Reason == v1alpha1.EventVolumeExpansionRestart {
				got = append(got, event.Type+" "+event.Message)
			}
		}
		status = next
	}
	podless := func(in *nodeplan.Input) { in.State.Pods, in.State.Workload.Replicas = nil, 0 }
	look(func(in *nodeplan.Input) { in.State.Workload.Replicas = 1 })
	for range 2 {
		look(func(in *nodeplan.Input) { in.State.Workload.Replicas, in.Spec.Stopped = 1, true })
	}
	for range 2 {
		look(func(in *nodeplan.Input) { podless(in); in.Spec.Stopped, in.State.Workload.Stopped = true, true })
	}
	look(func(in *nodeplan.Input) { podless(in); in.State.Workload.Stopped = true })
	for range 2 {
		look(func(in *nodeplan.Input) {
			in.State.Workload.Replicas, in.State.Pods[0].Ready, in.State.Pods[0].CreatedAt = 1, false, in.State.Now.Add(-time.Second)
		})
	}
	look(func(in *nodeplan.Input) { in.State.Workload.Replicas = 1 })
	want := []string{
		"Normal the member is stopped while its volume data grows: its driver grows no volume in use",
		"Normal the member is started again: pod pod-0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
