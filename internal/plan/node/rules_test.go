package node

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// outcome is what ended a track: its rule, hold and reason, and its actions in
// their own words.
type outcome struct {
	Rule    string
	Hold    plan.Hold
	Reason  string
	Actions []string
}

func lastIn(made plan.Plan, track string) outcome {
	var last outcome
	for _, step := range made {
		if step.Track != track {
			continue
		}
		last = outcome{Rule: step.Rule, Hold: step.Hold, Reason: step.Reason}
		for _, action := range step.Actions {
			last.Actions = append(last.Actions, action.String())
		}
	}
	return last
}

func TestClaimTrack(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		edit func(*Input)
		want outcome
	}{
		"a settled claim": {
			func(*Input) {},
			outcome{Rule: "fileSystemGrown", Reason: v1alpha1.ReasonVolumesBound},
		},
		"no claim: it is made": {
			func(in *Input) { in.State.Claim = nil },
			outcome{"claimExists", plan.Settled, v1alpha1.ReasonVolumesPending, []string{"create claim valkey-prod-2-1-data"}},
		},
		"no claim, and a quota refused it a moment ago": {
			func(in *Input) {
				in.State.Claim = nil
				in.State.Refusal = &state.Refusal{Size: size("1Gi"), Reason: v1alpha1.ReasonQuotaExceeded, Message: "no", At: noon.Add(-14 * time.Second)}
			},
			outcome{Rule: "claimExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonQuotaExceeded},
		},
		"no claim, and a quota refused it a while ago: it is tried again": {
			func(in *Input) {
				in.State.Claim = nil
				in.State.Refusal = &state.Refusal{Size: size("1Gi"), Reason: v1alpha1.ReasonQuotaExceeded, Message: "no", At: noon.Add(-15 * time.Second)}
			},
			outcome{"claimExists", plan.Settled, v1alpha1.ReasonVolumesPending, []string{"create claim valkey-prod-2-1-data"}},
		},
		"a claim with another cluster's data": {
			func(in *Input) { in.State.Claim.ClusterID = "id-2"; in.Spec.Storage.Size = new(size("2Gi")) },
			outcome{Rule: "claimExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonForeignVolume},
		},
		"a claim that does not say whose it is": {
			func(in *Input) { in.State.Claim.ClusterID = ""; in.State.Claim.Labels = nil },
			outcome{Rule: "claimExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonForeignVolume},
		},
		"a claim of another member": {
			func(in *Input) { in.State.Claim.Labels = name.NodeLabels("prod", 0, 1) },
			outcome{Rule: "claimExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonForeignVolume},
		},
		"a kept claim that lost its labels is taken up again": {
			func(in *Input) { in.State.Claim.Labels = nil },
			outcome{Rule: "claimMarked", Actions: []string{"mark claim valkey-prod-2-1-data"}},
		},
		"the member got another id": {
			func(in *Input) { in.State.Agent.Value.NodeID = "def" },
			outcome{Rule: "claimMarked", Actions: []string{"mark claim valkey-prod-2-1-data"}},
		},
		"an agent that cannot be asked changes no mark": {
			func(in *Input) { in.State.Agent = state.Unknown[protocol.Facts]("silent") },
			outcome{Rule: "fileSystemGrown", Reason: v1alpha1.ReasonVolumesBound},
		},
		"the claim shall go with the cluster": {
			func(in *Input) { in.Spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete },
			outcome{Rule: "claimOwnedByPolicy", Actions: []string{"make claim valkey-prod-2-1-data go with cluster prod"}},
		},
		"the claim goes with the cluster, as wished": {
			func(in *Input) {
				in.Spec.Storage.Retention.WhenDeleted = v1alpha1.RetentionDelete
				in.State.Claim.OwnerUIDs = []string{"cluster-uid"}
			},
			outcome{Rule: "fileSystemGrown", Reason: v1alpha1.ReasonVolumesBound},
		},
		"the claim shall outlive the cluster": {
			func(in *Input) { in.State.Claim.OwnerUIDs = []string{"other", "cluster-uid"} },
			outcome{Rule: "claimOwnedByPolicy", Actions: []string{"make claim valkey-prod-2-1-data outlive cluster prod"}},
		},
		"another owner of the claim is not ours to remove": {
			func(in *Input) { in.State.Claim.OwnerUIDs = []string{"other"} },
			outcome{Rule: "fileSystemGrown", Reason: v1alpha1.ReasonVolumesBound},
		},
		"a larger size is asked for, whatever the pod does": {
			func(in *Input) { in.Spec.Storage.Size = new(size("2Gi")); in.State.Pods = nil },
			outcome{"claimLargeEnough", plan.Settled, v1alpha1.ReasonVolumeExpanding, []string{"expand claim valkey-prod-2-1-data from 1Gi to 2Gi"}},
		},
		"a claim that was grown by hand is accepted": {
			func(in *Input) { in.Spec.Storage.Size = new(size("512Mi")) },
			outcome{Rule: "fileSystemGrown", Reason: v1alpha1.ReasonVolumesBound},
		},
		"no claim, and a larger volume in the shard: it is born as large": {
			func(in *Input) { in.State.Claim, in.State.ShardCapacity = nil, size("3Gi") },
			outcome{"claimExists", plan.Settled, v1alpha1.ReasonVolumesPending, []string{"create claim valkey-prod-2-1-data"}},
		},
		"what the class forbade is asked for as soon as it does not": {
			func(in *Input) {
				in.Spec.Storage.Size = new(size("2Gi"))
				in.State.Refusal = &state.Refusal{Size: size("2Gi"), Reason: v1alpha1.ReasonStorageClassNotExpandable, Message: "no", At: noon}
			},
			outcome{"claimLargeEnough", plan.Settled, v1alpha1.ReasonVolumeExpanding, []string{"expand claim valkey-prod-2-1-data from 1Gi to 2Gi"}},
		},
		"a size that a quota refused a moment ago is not asked for again": {
			func(in *Input) {
				in.Spec.Storage.Size = new(size("2Gi"))
				in.State.Refusal = &state.Refusal{Size: size("2Gi"), Reason: v1alpha1.ReasonQuotaExceeded, Message: "no", At: noon}
			},
			outcome{Rule: "claimLargeEnough", Hold: plan.Blocked, Reason: v1alpha1.ReasonQuotaExceeded},
		},
		"another size than the refused one is asked for at once": {
			func(in *Input) {
				in.Spec.Storage.Size = new(size("1536Mi"))
				in.State.Refusal = &state.Refusal{Size: size("2Gi"), Reason: v1alpha1.ReasonQuotaExceeded, Message: "no", At: noon}
			},
			outcome{"claimLargeEnough", plan.Settled, v1alpha1.ReasonVolumeExpanding, []string{"expand claim valkey-prod-2-1-data from 1Gi to 1536Mi"}},
		},
		"the class forbids growth": {
			func(in *Input) { in.Spec.Storage.Size = new(size("2Gi")); in.State.Class.Value.Expandable = false },
			outcome{Rule: "claimLargeEnough", Hold: plan.Blocked, Reason: v1alpha1.ReasonStorageClassNotExpandable},
		},
		"the file system is behind: the kubelet is nudged at once": {
			func(in *Input) { growing(in, 0, "") },
			outcome{"fileSystemGrown", plan.Wait, v1alpha1.ReasonVolumeExpanding, []string{"mark pod valkey-prod-2-1-0"}},
		},
		"the kubelet was nudged for this size": {
			func(in *Input) { growing(in, 59*time.Second, "2Gi-0") },
			outcome{Rule: "fileSystemGrown", Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding},
		},
		"the kubelet was nudged a minute ago": {
			func(in *Input) { growing(in, 61*time.Second, "2Gi-0") },
			outcome{"fileSystemGrown", plan.Wait, v1alpha1.ReasonVolumeExpanding, []string{"mark pod valkey-prod-2-1-0"}},
		},
		"the kubelet was nudged for an earlier size": {
			func(in *Input) { growing(in, 0, "1Gi-0") },
			outcome{"fileSystemGrown", plan.Wait, v1alpha1.ReasonVolumeExpanding, []string{"mark pod valkey-prod-2-1-0"}},
		},
		"no pod, no nudge": {
			func(in *Input) { growing(in, 0, ""); in.State.Pods = nil },
			outcome{Rule: "fileSystemGrown", Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding},
		},
		"a pod that does not run yet is not nudged": {
			func(in *Input) { growing(in, 0, ""); in.State.Pods[0].Phase = corev1.PodPending },
			outcome{Rule: "fileSystemGrown", Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			row.edit(&in)
			if diff := cmp.Diff(row.want, lastIn(Make(in), TrackClaim)); diff != "" {
				t.Errorf("the track ends differently (-want +got):\n%s", diff)
			}
		})
	}
}

// growing is a volume of 2Gi whose file system has been behind for a while.
func growing(in *Input, behind time.Duration, nudge string) {
	in.Spec.Storage.Size = new(size("2Gi"))
	in.State.Claim.Requested = size("2Gi")
	in.State.Claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizePending)
	in.State.Claim.Conditions = []state.ClaimCondition{condition(corev1.PersistentVolumeClaimFileSystemResizePending, "", behind)}
	in.State.Pods[0].Nudge = nudge
}

func TestWorkloadTrack(t *testing.T) {
	t.Parallel()
	made := []string{"apply StatefulSet valkey-prod-2-1"}
	for what, row := range map[string]struct {
		edit func(*Input)
		want outcome
	}{
		"a ready pod": {
			func(*Input) {},
			outcome{Rule: "podReady", Reason: v1alpha1.ReasonPodReady},
		},
		"no workload: it is made": {
			func(in *Input) { in.State.Workload = nil },
			outcome{"workloadExists", plan.Settled, v1alpha1.ReasonPodPending, made},
		},
		"no workload: it is made beside the claim, not after it": {
			func(in *Input) { in.State.Workload, in.State.Claim = nil, nil },
			outcome{"workloadExists", plan.Settled, v1alpha1.ReasonPodPending, made},
		},
		"no workload: it is made while the claim is pending": {
			func(in *Input) { in.State.Workload = nil; in.State.Claim.Phase = corev1.ClaimPending },
			outcome{"workloadExists", plan.Settled, v1alpha1.ReasonPodPending, made},
		},
		"no workload, and the claim is on its way out": {
			func(in *Input) { in.State.Workload = nil; in.State.Claim.Terminating = true },
			outcome{Rule: "workloadExists", Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeUnavailable},
		},
		"no workload, and the claim is somebody else's": {
			func(in *Input) { in.State.Workload = nil; in.State.Claim.ClusterID = "id-2" },
			outcome{Rule: "workloadExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonForeignVolume},
		},
		"no workload, and the claim lost its volume": {
			func(in *Input) { in.State.Workload = nil; in.State.Claim.Phase = corev1.ClaimLost },
			outcome{Rule: "workloadExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonVolumeUnavailable},
		},
		"a workload of the other kind": {
			func(in *Input) {
				in.State.OtherWorkload = &state.Workload{Kind: v1alpha1.WorkloadDeployment, Name: "valkey-prod-2-1"}
				in.State.Workload = nil
			},
			outcome{Rule: "workloadExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonChangeNotSupported},
		},
		"a workload of somebody else": {
			func(in *Input) { in.State.Workload.OwnerUIDs = []string{"other"}; in.State.Workload.Revision = "" },
			outcome{Rule: "workloadExists", Hold: plan.Blocked, Reason: v1alpha1.ReasonNameTaken},
		},
		"a workload on its way out": {
			func(in *Input) { in.State.Workload.Terminating = true },
			outcome{Rule: "workloadExists", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"the user asked for another template": {
			func(in *Input) { in.Spec.Template.Revision, in.State.Agent.Value.OwnsSlots = "rev-2", protocol.No },
			outcome{"templateCurrent", plan.Settled, v1alpha1.ReasonRollingOut, made},
		},
		"another agent image alone is not applied": {
			func(in *Input) { in.Spec.Template.AgentImage = "operator:next" },
			outcome{Rule: "podReady", Reason: v1alpha1.ReasonPodReady},
		},
		"the server changed its role": {
			func(in *Input) { in.State.Agent.Value.Role = protocol.RoleReplica },
			outcome{Rule: "podLabelled", Actions: []string{"mark pod valkey-prod-2-1-0"}},
		},
		"an unknown role changes no label": {
			func(in *Input) { in.State.Agent.Value.Role = "" },
			outcome{Rule: "podReady", Reason: v1alpha1.ReasonPodReady},
		},
		"a silent agent changes no label": {
			func(in *Input) { in.State.Agent = state.Unknown[protocol.Facts]("silent") },
			outcome{Rule: "podReady", Reason: v1alpha1.ReasonPodReady},
		},
		"no pod yet": {
			func(in *Input) { in.State.Pods = nil },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"a pod that is ending": {
			func(in *Input) { in.State.Pods[0].Terminating = true },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"a pod that has no worker": {
			func(in *Input) { in.State.Pods[0].Ready = false; in.State.Pods[0].Problem = "0/3 nodes are available" },
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonPodPending},
		},
		"a server that loads": {
			func(in *Input) {
				in.State.Pods[0].Ready = false
				in.State.Agent.Value.NotReady = "the server is loading"
			},
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonMembersStarting},
		},
		"a member that its agent holds": {
			func(in *Input) {
				in.State.Pods[0].Ready = false
				in.State.Agent.Value.Decision = protocol.DecisionHeldEmpty
			},
			outcome{Rule: "podReady", Hold: plan.Wait, Reason: v1alpha1.ReasonMemberHeld},
		},
		"a volume that its agent finds to be another member's": {
			func(in *Input) {
				in.State.Pods[0].Ready = false
				in.State.Agent.Value.Decision = protocol.DecisionForeignVolume
			},
			outcome{Rule: "podReady", Hold: plan.Blocked, Reason: v1alpha1.ReasonForeignVolume},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			row.edit(&in)
			if diff := cmp.Diff(row.want, lastIn(Make(in), TrackWorkload)); diff != "" {
				t.Errorf("the track ends differently (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsPlannedForANodeThatGoes(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(*Input){
		"the node is being deleted":    func(in *Input) { in.State.Deleting = true },
		"its cluster is being deleted": func(in *Input) { in.State.ClusterDeleting = true },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := grown()
			in.State.Claim, in.State.Workload, in.State.Pods = nil, nil, nil
			edit(&in)
			if made := Make(in); len(made) > 0 {
				t.Errorf("planned %v", made)
			}
		})
	}
}

func TestAnEphemeralNodeHasNoClaimTrack(t *testing.T) {
	t.Parallel()
	in := grown()
	in.Spec.Storage, in.State.Claim = v1alpha1.NodeStorage{}, nil
	for _, step := range Make(in) {
		if step.Track == TrackClaim {
			t.Errorf("rule %s was asked", step.Rule)
		}
	}
}

// Ours is the annotation's claim to data: what is asked of the API server
// carries the version that was seen.
func TestActionsOnAClaimCarryItsVersion(t *testing.T) {
	t.Parallel()
	in := grown()
	in.Spec.Storage.Size = new(size("2Gi"))
	want := plan.ExpandClaim{Claim: "valkey-prod-2-1-data", Version: "7", From: size("1Gi"), To: size("2Gi")}
	actions := Make(in).Actions()
	if len(actions) != 1 {
		t.Fatalf("planned %v", actions)
	}
	if diff := cmp.Diff(plan.Action(want), actions[0], sameQuantity); diff != "" {
		t.Errorf("action differs (-want +got):\n%s", diff)
	}
}

// A member that joins a shard must be able to hold its data; a mistyped request
// of another member is no reason to be larger.
func TestAClaimIsBornLargeEnoughForItsShard(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct{ desired, shard, want string }{
		"nobody else is there": {"1Gi", "0", "1Gi"},
		"others are smaller":   {"2Gi", "1Gi", "2Gi"},
		"others are larger":    {"1Gi", "3Gi", "3Gi"},
	} {
		in := grown()
		in.State.Claim, in.Spec.Storage.Size, in.State.ShardCapacity = nil, new(size(row.desired)), size(row.shard)
		actions := claimExists(in).Actions
		create, is := actions[0].(plan.CreateClaim)
		if !is {
			t.Fatalf("%s: planned %v", what, actions)
		}
		if got := requestedBy(create); got.Cmp(size(row.want)) != 0 {
			t.Errorf("%s: it is born with %s, want %s", what, got.String(), row.want)
		}
		refused, _ := RefusalIn(plan.Outcome{{Rule: RuleClaimExists, At: create, Err: &plan.Refusal{Reason: "no"}}})
		if refused.Size.Cmp(size(row.want)) != 0 {
			t.Errorf("%s: the refused size is %s, want %s", what, refused.Size.String(), row.want)
		}
	}
}

// A request that an older API server does not let be lowered is explained: the
// data is safe, and by what hand it can be mended.
func TestARequestThatCannotBeLoweredIsExplained(t *testing.T) {
	t.Parallel()
	in := grown()
	in.State.Claim.Requested, in.State.Claim.ResizeStatus = size("10Ti"), string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
	in.State.Refusal = &state.Refusal{Size: size("2Gi"), Reason: v1alpha1.ReasonExpansionRefused, Message: "field can not be less than previous value", At: noon}
	standing := Stand(in)
	if standing.Reason != v1alpha1.ReasonExpansionRefused || standing.Ask != nil || !strings.Contains(standing.Note, "data is safe") || !strings.Contains(standing.Note, "1.32") {
		t.Errorf("it stands %+v", standing)
	}
}
