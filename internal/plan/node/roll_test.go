package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// outdated is a node whose workload has the newest template and whose pod has not.
func outdated(in *Input) {
	in.Spec.Template.Revision, in.State.Workload.Revision, in.State.Workload.PodRevision = "rev-2", "rev-2", "rev-2"
	in.State.Pods[0].Revision = "rev-1"
}

// replaced is one whose pod was taken away for a new template a while ago.
func replaced(in *Input, since time.Duration) {
	in.State.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionWorkloadReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRollingOut,
		LastTransitionTime: metav1.NewTime(noon.Add(-since)),
	}}
	in.State.Pods = nil
}

func TestNewTemplate(t *testing.T) {
	t.Parallel()
	applied := outcome{"templateCurrent", plan.Settled, v1alpha1.ReasonRollingOut, []string{"apply StatefulSet valkey-prod-2-1"}}
	held := outcome{Rule: "templateCurrent", Hold: plan.Wait, Reason: v1alpha1.ReasonFailingOver}
	replacing := outcome{Rule: "podCurrent", Hold: plan.Wait, Reason: v1alpha1.ReasonRollingOut}
	deleted := outcome{"podCurrent", plan.Settled, v1alpha1.ReasonRollingOut, []string{"delete pod valkey-prod-2-1-0"}}
	ready := outcome{Rule: "podReady", Reason: v1alpha1.ReasonPodReady}
	for what, row := range map[string]struct {
		edit func(*Input)
		want outcome
	}{
		"it owns no slots: it is applied":       {func(in *Input) { in.Spec.Template.Revision = "rev-2" }, applied},
		"it owns slots that a replica may take": {func(in *Input) { in.Spec.Template.Revision, in.State.Agent.Value.OwnsSlots = "rev-2", protocol.Yes }, held},
		"its agent does not know":               {func(in *Input) { in.Spec.Template.Revision, in.State.Agent.Value.OwnsSlots = "rev-2", "" }, held},
		"its agent does not answer": {func(in *Input) {
			in.Spec.Template.Revision, in.State.Agent = "rev-2", state.Unknown[protocol.Facts]("silent")
		}, held},
		"it owns slots, and no shard has a replica": {func(in *Input) {
			in.Spec.Template.Revision, in.State.Agent.Value.OwnsSlots, in.State.Shape = "rev-2", protocol.Yes, "3x0"
		}, applied},
		"somebody else scaled it to nothing: that is left alone": {func(in *Input) {
			in.Spec.Template.Revision, in.State.Workload.Replicas, in.State.Pods = "rev-2", 0, nil
		}, outcome{Rule: "templateCurrent", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending}},
		"its container does not run": {func(in *Input) {
			in.Spec.Template.Revision, in.State.Agent = "rev-2", state.Unknown[protocol.Facts]("silent")
			in.State.Pods[0].Ready, in.State.Pods[0].Problem = false, "container server: CrashLoopBackOff"
		}, applied},
		"its server is held, whatever its table says": {func(in *Input) {
			in.Spec.Template.Revision = "rev-2"
			in.State.Agent.Value.OwnsSlots, in.State.Agent.Value.Server = protocol.Yes, protocol.ServerHeld
		}, applied},
		"its pod is ready: the workload's controller replaces it": {outdated, replacing},
		"its pod is broken: it is deleted": {func(in *Input) {
			outdated(in)
			in.State.Pods[0].Ready, in.State.Pods[0].Problem = false, "container server: ErrImagePull"
		}, deleted},
		"its pod is not ready, and owns slots by now": {func(in *Input) {
			outdated(in)
			in.State.Pods[0].Ready, in.State.Agent.Value.OwnsSlots = false, protocol.Yes
		}, replacing},
		"a Deployment replaces a broken one by itself": {func(in *Input) {
			outdated(in)
			in.Spec.Template.WorkloadType, in.State.Workload.Kind = v1alpha1.WorkloadDeployment, v1alpha1.WorkloadDeployment
			in.State.Pods[0].Ready, in.State.Pods[0].Problem = false, "container server: ErrImagePull"
		}, replacing},
		"an operator that wrote no revision on pods made it": {func(*Input) {}, ready},
		"its new pod is about to be made":                    {func(in *Input) { replaced(in, longestReplaced) }, outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonRollingOut}},
		"no new pod is made, and that is told as what it is": {func(in *Input) { replaced(in, longestReplaced+time.Second) }, outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending}},
		"its new pod does not run, and that is told as what it is": {func(in *Input) {
			pods := in.State.Pods
			replaced(in, time.Second)
			in.State.Pods = pods
			in.State.Pods[0].Ready, in.State.Pods[0].Problem, in.State.Pods[0].CreatedAt = false, "0/3 nodes are available", noon
		}, outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			in.State.Agent.Value.OwnsSlots, in.State.Workload.Replicas = protocol.No, 1
			row.edit(&in)
			if diff := cmp.Diff(row.want, lastIn(Make(in), TrackWorkload)); diff != "" {
				t.Errorf("the track ends differently (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodRevision(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		pod, ofPods string
		want        string
		known       bool
	}{
		"made from the workload's template":                         {"rev-2", "rev-2", "rev-2", true},
		"made from an older one":                                    {"rev-1", "rev-2", "rev-1", true},
		"nobody wrote it down, on workload or pod":                  {"", "", "rev-2", true},
		"an older one, made by an operator that wrote nothing down": {"", "rev-2", "", false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			in.State.Workload.Revision, in.State.Workload.PodRevision = "rev-2", row.ofPods
			got, known := PodRevision(in, state.Pod{Revision: row.pod})
			if got != row.want || known != row.known {
				t.Errorf("%q, known %t", got, known)
			}
		})
	}
}
