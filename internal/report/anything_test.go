package report

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	nodeplan "valkey.io/valkey-operator/internal/plan/node"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// Whatever a schema lets a user write, and whatever was seen or not seen of the
// world: deciding and reporting come to an end, and to the same one twice.
func TestAnythingCanBePlannedAndReported(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := cluster.Input{Spec: anySpec(t), State: anyCluster(t), AgentImage: "agent"}
		in.State.Members = anyMembers(t, in)
		made := cluster.Make(in)
		if again := cluster.Make(in); !reflect.DeepEqual(made, again) {
			t.Errorf("two plans:\n%v\n%v", made, again)
		}
		status := Cluster(in, made, anyOutcome(t, made))
		ClusterEvents(in.State.Status, status)
		for _, member := range in.State.Members {
			if member.Record != nil {
				planNode(t, in, member)
			}
		}
	})
}

func planNode(t *rapid.T, in cluster.Input, member state.Member) {
	node := nodeplan.Input{Spec: member.Record.Spec, State: state.Node{
		Now: noon, Name: member.Name, UID: "uid", Status: member.Record.Status, Claim: member.Claim, Pods: member.Pods, Agent: member.Agent,
		Shape: name.Shape(in.Spec.Shards, in.Spec.Replicas), ClusterUID: rapid.SampledFrom([]string{"", "cluster-uid"}).Draw(t, "owner"),
		Class: state.Fact[state.Class]{
			Known: rapid.Bool().Draw(t, "class known"),
			Value: state.Class{Exists: rapid.Bool().Draw(t, "class exists"), Expandable: rapid.Bool().Draw(t, "class grows")},
		},
	}}
	if rapid.Bool().Draw(t, "workload") {
		node.State.Workload = &state.Workload{OwnerUIDs: []string{"uid"}, Terminating: rapid.Bool().Draw(t, "going")}
	}
	made := nodeplan.Make(node)
	if again := nodeplan.Make(node); !reflect.DeepEqual(made, again) {
		t.Errorf("two plans of node %s:\n%v\n%v", member.Name, made, again)
	}
	for _, action := range made.Actions() {
		if expand, is := action.(plan.ExpandClaim); is && expand.To.Cmp(member.Claim.Capacity) <= 0 {
			t.Errorf("%s, which the volume has: %s", expand, member.Claim.Capacity.String())
		}
	}
	NodeEvents(node.State.Status, NodeStatus(node.State.Status, node, made, anyOutcome(t, made)))
}

// anyOutcome has one of the steps fail, or none.
func anyOutcome(t *rapid.T, made plan.Plan) plan.Outcome {
	var outcome plan.Outcome
	for _, step := range made {
		if len(step.Actions) == 0 {
			continue
		}
		result := plan.Result{Rule: step.Rule, Done: len(step.Actions)}
		if rapid.IntRange(0, 5).Draw(t, "luck") == 0 {
			result.Err = &plan.Refusal{Reason: v1alpha1.ReasonQuotaExceeded, Message: "no", Err: nil}
			result.Done, result.At = 0, step.Actions[0]
		}
		outcome = append(outcome, result)
	}
	return outcome
}

func anySize(t *rapid.T) resource.Quantity {
	return resource.MustParse(rapid.SampledFrom([]string{"1", "500Mi", "1Gi", "1.5Gi", "2G", "2Gi", "999Pi", "1e3"}).Draw(t, "size"))
}

func anySpec(t *rapid.T) v1alpha1.ValkeyClusterSpec {
	spec := v1alpha1.ValkeyClusterSpec{
		Shards: rapid.Int32Range(1, 5).Draw(t, "shards"), Replicas: rapid.Int32Range(0, 5).Draw(t, "replicas"),
		Image:           rapid.StringN(1, 40, -1).Draw(t, "image"),
		ImagePullPolicy: rapid.SampledFrom([]corev1.PullPolicy{"", corev1.PullAlways, corev1.PullNever}).Draw(t, "pull"),
		WorkloadType:    rapid.SampledFrom([]v1alpha1.WorkloadType{"", v1alpha1.WorkloadStatefulSet, v1alpha1.WorkloadDeployment}).Draw(t, "workload type"),
		Config: rapid.MapOfN(rapid.StringMatching(`[a-z][a-z0-9-]{0,20}`), rapid.Map(rapid.StringN(0, 20, -1), func(s string) v1alpha1.ConfigValue {
			return v1alpha1.ConfigValue(s)
		}), 0, 4).Draw(t, "config"),
		VolumePermissions: rapid.Bool().Draw(t, "permissions"),
	}
	if rapid.Bool().Draw(t, "has scheduling") {
		spec.Scheduling = &v1alpha1.Scheduling{
			NodeSelector: rapid.MapOfN(rapid.String(), rapid.String(), 0, 2).Draw(t, "selector"), PriorityClassName: rapid.String().Draw(t, "priority"),
			Affinity: rapid.SampledFrom([]*corev1.Affinity{nil, {}}).Draw(t, "affinity"), Tolerations: []corev1.Toleration{{}},
		}
	}
	if rapid.Bool().Draw(t, "has storage") {
		spec.Storage = &v1alpha1.Storage{Enabled: rapid.Bool().Draw(t, "enabled")}
		if spec.Storage.Enabled || rapid.Bool().Draw(t, "sized") {
			spec.Storage.Size = new(anySize(t))
		}
		spec.Storage.AutoExpansion = anyAutoExpansion(t)
		spec.Storage.Retention.WhenDeleted = rapid.SampledFrom([]v1alpha1.RetentionPolicy{"", v1alpha1.RetentionRetain, v1alpha1.RetentionDelete}).Draw(t, "retention")
	}
	for range rapid.IntRange(0, 2).Draw(t, "users") {
		spec.Users = append(spec.Users, v1alpha1.User{
			Name: rapid.StringMatching(`[A-Za-z0-9_.@-]{1,10}`).Draw(t, "user"), Nopass: rapid.Bool().Draw(t, "nopass"),
			Enabled: rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "on"),
		})
	}
	return spec
}

func anyCluster(t *rapid.T) state.Cluster {
	seen := state.Cluster{
		Now: noon, Namespace: "shop", Name: "prod", UID: "cluster-uid", FreshID: "fresh", Deleting: rapid.IntRange(0, 9).Draw(t, "deleting") == 0,
		Passwords: rapid.SampledFrom([]map[string]string{nil, {}, {name.UserOperator: "a"}, {name.UserOperator: "a", name.UserReplication: "b"}}).Draw(t, "passwords"),
		Objects:   rapid.SampledFrom([]map[string]state.Object{nil, {"Service/valkey-prod": {}}, {"Service/valkey-prod": {Foreign: true}}}).Draw(t, "objects"),
	}
	seen.Status.ClusterID = rapid.SampledFrom([]string{"", "id-1"}).Draw(t, "identity")
	seen.Status.Formed = rapid.Bool().Draw(t, "formed")
	if rapid.Bool().Draw(t, "grew") {
		seen.Status.Storage = &v1alpha1.StorageStatus{ExpandingSince: new(metav1.NewTime(noon))}
	}
	seen.Quotas.Known, seen.Quotas.Value = rapid.Bool().Draw(t, "quotas known"), []state.Quota{{Name: "small", Left: anySize(t)}}
	seen.Limits.Known, seen.Limits.Value = rapid.Bool().Draw(t, "limits known"), []state.ClaimLimit{{Name: "caps", Max: anySize(t)}}
	if rapid.Bool().Draw(t, "refused") {
		seen.Refusal = &state.Refusal{Size: anySize(t), Reason: v1alpha1.ReasonQuotaExceeded, Message: "no", At: noon}
	}
	return seen
}

// anyMembers are members of which anything may be there or missing.
func anyMembers(t *rapid.T, in cluster.Input) []state.Member {
	var members []state.Member
	built := build.Cluster{Namespace: "shop", Name: "prod", UID: "cluster-uid", ID: "id-1", Spec: in.Spec}
	for i := range rapid.IntRange(0, int(in.Spec.Shards*(in.Spec.Replicas+1))).Draw(t, "members") {
		shard, node := i/int(in.Spec.Replicas+1), i%int(in.Spec.Replicas+1)
		member := state.Member{Name: name.Node("prod", shard, node), Shard: shard, Node: node, Wanted: rapid.IntRange(0, 9).Draw(t, "wanted") > 0}
		if rapid.Bool().Draw(t, "node") {
			member.Record = &state.NodeRecord{Spec: build.NodeSpec(built, shard, node), Deleting: rapid.IntRange(0, 9).Draw(t, "going") == 0}
			if rapid.Bool().Draw(t, "has a size") {
				member.Record.Spec.Storage.Size = new(anySize(t))
			}
		}
		if rapid.Bool().Draw(t, "claim") {
			member.Claim = anyClaim(t, member.Name)
		}
		for range rapid.IntRange(0, 2).Draw(t, "pods") {
			member.Pods = append(member.Pods, state.Pod{
				IP:    rapid.SampledFrom([]string{"", "10.0.0.1", "fd00::1"}).Draw(t, "ip"),
				Phase: rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodRunning, corev1.PodFailed}).Draw(t, "phase"), Terminating: rapid.Bool().Draw(t, "ending"),
			})
		}
		member.Server, member.Agent = anyServer(t), anyAgent(t)
		members = append(members, member)
	}
	return members
}

func anyClaim(t *rapid.T, node string) *state.Claim {
	return &state.Claim{
		Name: name.Claim(node), ClusterID: rapid.SampledFrom([]string{"", "id-1", "id-2"}).Draw(t, "claim's identity"),
		Phase:     rapid.SampledFrom([]corev1.PersistentVolumeClaimPhase{"", corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost}).Draw(t, "claim phase"),
		Requested: anySize(t), Capacity: rapid.SampledFrom([]resource.Quantity{{}, resource.MustParse("1Gi"), anySize(t)}).Draw(t, "capacity"),
		ResizeStatus: rapid.SampledFrom([]string{"", "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizePending", "NodeResizeInfeasible", "new"}).Draw(t, "resize"),
		Conditions: []state.ClaimCondition{{
			Type:   rapid.SampledFrom([]string{"Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError", "new"}).Draw(t, "condition"),
			Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}).Draw(t, "is"),
		}},
	}
}

func anyServer(t *rapid.T) state.Fact[valkey.View] {
	view := valkey.View{TableKnown: rapid.Bool().Draw(t, "table known"), ClusterKnown: rapid.Bool().Draw(t, "cluster known")}
	ids := []valkey.NodeID{"", "a", "b", "c"}
	for range rapid.IntRange(0, 3).Draw(t, "lines") {
		view.Table.Nodes = append(view.Table.Nodes, valkey.NodeEntry{
			ID: rapid.SampledFrom(ids).Draw(t, "id"), PrimaryID: rapid.SampledFrom(ids).Draw(t, "primary"),
			Flags: valkey.NodeFlags{
				Myself: rapid.Bool().Draw(t, "myself"), Primary: rapid.Bool().Draw(t, "is primary"), Replica: rapid.Bool().Draw(t, "is replica"),
				Failed: rapid.Bool().Draw(t, "failed"), Handshake: rapid.Bool().Draw(t, "handshake"),
			},
			Slots: rapid.SampledFrom([]valkey.Slots{nil, valkey.AllSlots(), {{First: 5, Last: 9}}}).Draw(t, "slots"),
		})
	}
	return state.Fact[valkey.View]{Known: rapid.Bool().Draw(t, "server known"), Value: view}
}

func anyAgent(t *rapid.T) state.Fact[protocol.Facts] {
	return state.Fact[protocol.Facts]{Known: rapid.Bool().Draw(t, "agent known"), Value: protocol.Facts{
		NodeID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "agent's id"),
		Server: rapid.SampledFrom([]protocol.ServerState{"", protocol.ServerHeld, protocol.ServerStopped, protocol.ServerRunning, "new"}).Draw(t, "server state"),
		Disk:   anyDisk(t, time.Second), DiskBefore: anyDisk(t, 11*time.Second),
		Files: rapid.SampledFrom([]*protocol.Files{nil, {}, {WriteFailed: true}, {RewriteFailed: true, NextBytes: 1 << 40}, {Log: true, LogBytes: 1 << 30, NextBytes: 1}}).Draw(t, "files"),
	}}
}

func anyDisk(t *rapid.T, ago time.Duration) *protocol.Disk {
	disk := rapid.SampledFrom([]protocol.Disk{{}, {TotalBytes: 10, AvailableBytes: 20}, {TotalBytes: -1}, {TotalBytes: 1 << 30}, {TotalBytes: 1 << 30, AvailableBytes: 1 << 28}}).Draw(t, "disk")
	disk.SampledAt = noon.Add(-ago)
	return rapid.SampledFrom([]*protocol.Disk{nil, &disk}).Draw(t, "seen")
}

func anyAutoExpansion(t *rapid.T) *v1alpha1.AutoExpansion {
	return rapid.SampledFrom([]*v1alpha1.AutoExpansion{
		nil,
		{},
		{Mode: v1alpha1.AutoExpansionAuto},
		{Mode: v1alpha1.AutoExpansionAuto, MaxSize: new(anySize(t)), ThresholdPercent: 50},
		{Mode: v1alpha1.AutoExpansionRecommend},
		{Mode: v1alpha1.AutoExpansionRecommend, MaxSize: new(anySize(t)), Increment: "1Gi"},
	}).Draw(t, "auto")
}
