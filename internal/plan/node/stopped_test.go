package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// stoppedNode is a member that is stopped for its volume: its pod is gone.
func stoppedNode(in *Input) {
	in.Spec.Stopped = true
	in.State.Workload.Replicas, in.State.Workload.Stopped = 0, true
	in.State.Pods = nil
}

// returning is one whose pod was made a while ago and is not ready yet.
func returning(in *Input, age time.Duration) {
	in.State.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionWorkloadReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonVolumeExpanding,
		LastTransitionTime: metav1.NewTime(noon.Add(-longestAway)),
	}}
	in.State.Pods[0].Ready, in.State.Pods[0].CreatedAt = false, noon.Add(-age)
}

func TestStoppedMember(t *testing.T) {
	t.Parallel()
	away := outcome{Rule: "podWanted", Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding}
	ends := outcome{"podWanted", plan.Settled, v1alpha1.ReasonVolumeExpanding, []string{"scale StatefulSet valkey-prod-2-1 to 0"}}
	held := outcome{Rule: "podWanted", Hold: plan.Wait, Reason: v1alpha1.ReasonFailingOver}
	back := outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding}
	for what, row := range map[string]struct {
		edit func(*Input)
		want outcome
	}{
		"it is to be stopped: its pod is taken away": {
			func(in *Input) { in.Spec.Stopped, in.State.Workload.Replicas = true, 1 },
			ends,
		},
		"a Deployment is scaled as well": {
			func(in *Input) {
				in.Spec.Stopped, in.State.Workload.Replicas = true, 1
				in.Spec.Template.WorkloadType, in.State.Workload.Kind = v1alpha1.WorkloadDeployment, v1alpha1.WorkloadDeployment
			},
			outcome{"podWanted", plan.Settled, v1alpha1.ReasonVolumeExpanding, []string{"scale Deployment valkey-prod-2-1 to 0"}},
		},
		"it owns slots by now: it stays": {
			func(in *Input) {
				in.Spec.Stopped, in.State.Workload.Replicas, in.State.Agent.Value.OwnsSlots = true, 1, protocol.Yes
			}, held,
		},
		"its agent does not know whether it owns slots": {
			func(in *Input) {
				in.Spec.Stopped, in.State.Workload.Replicas, in.State.Agent.Value.OwnsSlots = true, 1, ""
			}, held,
		},
		"its agent does not answer": {
			func(in *Input) {
				in.Spec.Stopped, in.State.Workload.Replicas = true, 1
				in.State.Agent = state.Unknown[protocol.Facts]("silent")
			}, held,
		},
		"it owns slots, and no shard has a replica": {
			func(in *Input) {
				in.Spec.Stopped, in.State.Workload.Replicas, in.State.Agent.Value.OwnsSlots = true, 1, protocol.Yes
				in.State.Shape = "3x0"
			}, ends,
		},
		"its pod does not run yet": {
			func(in *Input) {
				in.Spec.Stopped, in.State.Workload.Replicas, in.State.Pods[0].Phase = true, 1, corev1.PodPending
				in.State.Agent = state.Unknown[protocol.Facts]("no pod runs")
			}, ends,
		},
		"it is stopped": {stoppedNode, away},
		"it is stopped, and its pod is ending": {
			func(in *Input) {
				pods := in.State.Pods
				stoppedNode(in)
				in.State.Pods = pods
				in.State.Pods[0].Terminating = true
			}, away,
		},
		"it is stopped, and somebody deleted its workload: it is made without a pod": {
			func(in *Input) { stoppedNode(in); in.State.Workload = nil },
			outcome{"workloadExists", plan.Settled, v1alpha1.ReasonPodPending, []string{"apply StatefulSet valkey-prod-2-1"}},
		},
		"it is to run again": {
			func(in *Input) { stoppedNode(in); in.Spec.Stopped = false },
			outcome{"podWanted", plan.Settled, v1alpha1.ReasonVolumeExpanding, []string{"scale StatefulSet valkey-prod-2-1 to 1"}},
		},
		"it is to run again, but its claim is on its way out": {
			func(in *Input) { stoppedNode(in); in.Spec.Stopped, in.State.Claim.Terminating = false, true },
			outcome{Rule: "podWanted", Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeUnavailable},
		},
		"somebody else scaled it to nothing: that is left alone": {
			func(in *Input) { stoppedNode(in); in.Spec.Stopped, in.State.Workload.Stopped = false, false },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"its pod starts after the stop": {func(in *Input) { returning(in, comingBackTime) }, back},
		"its pod is about to be made after the stop": {
			func(in *Input) { returning(in, 0); in.State.Pods = nil }, back,
		},
		"no pod comes back after the stop": {
			func(in *Input) { returning(in, 0); in.State.Pods = nil; in.State.Now = noon.Add(time.Second) },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"its former pod never ends, for its worker is lost": {
			func(in *Input) {
				returning(in, 0)
				in.State.Pods[0].Terminating = true
				in.State.Now = noon.Add(time.Second)
			},
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"its pod takes too long": {
			func(in *Input) { returning(in, comingBackTime+time.Second) },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonMembersStarting},
		},
		"its pod has a problem": {
			func(in *Input) { returning(in, 0); in.State.Pods[0].Problem = "0/3 nodes are available" },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"its pod is refused": {
			func(in *Input) { returning(in, 0); in.State.Pods, in.State.Workload.Problem = nil, "exceeded quota" },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonObjectRefused},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			in.State.Agent.Value.OwnsSlots = protocol.No
			row.edit(&in)
			if diff := cmp.Diff(row.want, lastIn(Make(in), TrackWorkload)); diff != "" {
				t.Errorf("the track ends differently (-want +got):\n%s", diff)
			}
		})
	}
}

// What is scaled is what was seen.
func TestScaleCarriesTheVersion(t *testing.T) {
	t.Parallel()
	in := grown()
	in.Spec.Stopped, in.State.Agent.Value.OwnsSlots = true, protocol.No
	in.State.Workload = &state.Workload{
		Kind: v1alpha1.WorkloadStatefulSet, Name: "valkey-prod-2-1", Version: "9", Replicas: 1, Revision: "rev-1", OwnerUIDs: []string{"node-uid"},
	}
	want := plan.Action(plan.ScaleWorkload{Kind: v1alpha1.WorkloadStatefulSet, Name: "valkey-prod-2-1", Version: "9"})
	actions := Make(in).Actions()
	if len(actions) != 1 {
		t.Fatalf("planned %v", actions)
	}
	if diff := cmp.Diff(want, actions[0]); diff != "" {
		t.Errorf("action differs (-want +got):\n%s", diff)
	}
}
