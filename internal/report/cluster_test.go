package report

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// settledCluster is a persistent cluster of 1x1 with ready pods; its servers
// are left out, since the verdicts about them are given.
func settledCluster() cluster.Input {
	in := cluster.Input{
		Spec: v1alpha1.ValkeyClusterSpec{
			Shards: 1, Replicas: 1, Image: "valkey/valkey:9.1.2",
			Storage: &v1alpha1.Storage{Enabled: true, Size: new(size("1Gi"))},
			Users:   []v1alpha1.User{{Name: name.UserDefault, Enabled: new(false)}},
		},
		State: state.Cluster{Now: noon, Name: "prod", Generation: 3, Status: v1alpha1.ValkeyClusterStatus{ClusterID: "id-1"}},
	}
	for node := range 2 {
		member := name.Node("prod", 0, node)
		in.State.Members = append(in.State.Members, state.Member{
			Name: member, Node: node, Wanted: true,
			Record: &state.NodeRecord{
				Spec:   v1alpha1.ValkeyNodeSpec{Storage: v1alpha1.NodeStorage{Enabled: true, ClaimName: name.Claim(member), Size: new(size("1Gi"))}},
				Status: v1alpha1.ValkeyNodeStatus{Storage: &v1alpha1.NodeStorageStatus{Phase: v1alpha1.StorageSatisfied, UsedPercent: new(int32(10 * (node + 1)))}},
			},
			Claim: &state.Claim{Name: name.Claim(member), Phase: corev1.ClaimBound, Requested: size("1Gi"), Capacity: size("1Gi")},
			Pods:  []state.Pod{{Name: member, Phase: corev1.PodRunning, Ready: true}},
			// Both answer; what they say is in the verdicts.
			Server: state.Seen(valkey.View{}), Agent: state.Seen(protocol.Facts{}),
		})
	}
	return in
}

// verdicts is a plan in which every rule is settled but the given ones.
func verdicts(given map[string]plan.Verdict) plan.Plan {
	var made plan.Plan
	for _, rule := range []string{
		"namesFree", "identityRecorded", "passwordsExist", "objectsCurrent", "nodesExist", "templatesCurrent", "sizesGiven", "growthPossible", "sizesCurrent", "sizeNotBelowCapacity",
		"userPasswordsFound", "membersAnswer", "nodesMet", "primariesPresent", "dataPresent", "slotsAssigned", "replicasAttached", "ghostsForgotten",
	} {
		made = append(made, plan.Step{Track: rule, Rule: rule, Verdict: given[rule]})
	}
	return made
}

// told is what a status says, condition by condition.
func told(status v1alpha1.ValkeyClusterStatus) map[string]string {
	out := map[string]string{"state": fmt.Sprintf("%s %s", status.State, status.Reason)}
	for _, condition := range status.Conditions {
		out[condition.Type] = fmt.Sprintf("%s %s", condition.Status, condition.Reason)
	}
	return out
}

func TestClusterStatus(t *testing.T) {
	t.Parallel()
	formed := func(in *cluster.Input) { in.State.Status.Formed = true }
	waiting := func(reason string) plan.Verdict {
		return plan.Verdict{Hold: plan.Wait, Reason: reason, Note: "it takes time"}
	}
	blocked := func(reason string) plan.Verdict {
		return plan.Verdict{Hold: plan.Blocked, Reason: reason, Note: "a person must act"}
	}
	refused := plan.Outcome{{Rule: "objectsCurrent", Err: &plan.Refusal{Reason: v1alpha1.ReasonQuotaExceeded, Message: "no room", Err: errors.New("no")}}}
	smaller := func(in *cluster.Input) { formed(in); in.Spec.Storage.Size = new(size("500Mi")) }
	growing := func(in *cluster.Input) { formed(in); in.Spec.Storage.Size = new(size("2Gi")) }
	stuck := func(in *cluster.Input) {
		growing(in)
		in.State.Members[1].Record.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionStorageReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStorageClassNotExpandable, Message: "the class does not",
		}}
	}
	type changes = map[string]string
	for what, row := range map[string]struct {
		edit     func(*cluster.Input)
		verdicts map[string]plan.Verdict
		outcome  plan.Outcome
		// want are the differences to a cluster that is well.
		want changes
	}{
		"all is well": {},
		"it forms": {verdicts: map[string]plan.Verdict{"slotsAssigned": waiting(v1alpha1.ReasonSlotsUnassigned)}, want: changes{
			"state": "Initializing Forming", "Ready": "False Forming", "ClusterFormed": "False Forming",
			"SlotsAssigned": "False SlotsUnassigned", "Progressing": "True SlotsUnassigned",
		}},
		"a name is taken": {verdicts: map[string]plan.Verdict{"namesFree": blocked(v1alpha1.ReasonNameTaken)}, want: changes{
			"state": "Failed NameTaken", "Ready": "False NameTaken", "ClusterFormed": "False Forming", "Degraded": "True NameTaken",
		}},
		"identities conflict": {verdicts: map[string]plan.Verdict{"identityRecorded": blocked(v1alpha1.ReasonIdentityConflict)}, want: changes{
			"state": "Failed IdentityConflict", "Ready": "False IdentityConflict", "ClusterFormed": "False Forming", "Degraded": "True IdentityConflict",
		}},
		"a member of a formed cluster is gone": {edit: formed, verdicts: map[string]plan.Verdict{"membersAnswer": waiting(v1alpha1.ReasonMemberUnreachable)}, want: changes{
			"state": "Degraded MemberUnreachable", "Ready": "False MemberUnreachable", "Degraded": "True MemberUnreachable", "Progressing": "True MemberUnreachable",
		}},
		"a shard's data is lost": {edit: formed, verdicts: map[string]plan.Verdict{"dataPresent": blocked(v1alpha1.ReasonShardLost)}, want: changes{
			"state": "Degraded ShardLost", "Ready": "False ShardLost", "Degraded": "True ShardLost",
		}},
		"replicas are attached again": {edit: formed, verdicts: map[string]plan.Verdict{"replicasAttached": waiting(v1alpha1.ReasonReplicasAttaching)}, want: changes{
			"state": "Reconciling ReplicasAttaching", "Ready": "False ReplicasAttaching", "Progressing": "True ReplicasAttaching",
		}},
		"ghosts are forgotten, which disturbs nobody": {edit: formed, verdicts: map[string]plan.Verdict{"ghostsForgotten": waiting(v1alpha1.ReasonForgetting)}, want: changes{
			"state": "Reconciling Forgetting", "Progressing": "True Forgetting",
		}},
		"a pod is not ready": {edit: func(in *cluster.Input) { formed(in); in.State.Members[0].Pods[0].Ready = false }, want: changes{
			"state": "Reconciling PodsNotReady", "Ready": "False PodsNotReady",
		}},
		"an edit is not supported": {edit: formed, verdicts: map[string]plan.Verdict{"templatesCurrent": blocked(v1alpha1.ReasonChangeNotSupported)}, want: changes{
			"state": "Degraded ChangeNotSupported", "Degraded": "True ChangeNotSupported",
		}},
		"volumes grow, and clients are served": {edit: growing, want: changes{
			"state": "Reconciling VolumeExpanding", "StorageReady": "False VolumeExpanding", "Progressing": "True VolumeExpanding",
		}},
		"a volume cannot grow, and clients are served": {edit: stuck, want: changes{
			"state": "Degraded StorageClassNotExpandable", "StorageReady": "False StorageClassNotExpandable", "Degraded": "True StorageClassNotExpandable",
		}},
		"a wish to shrink is refused, and nothing is wrong": {edit: smaller, verdicts: map[string]plan.Verdict{"sizeNotBelowCapacity": blocked(v1alpha1.ReasonVolumeShrinkRefused)}, want: changes{
			"StorageReady": "True VolumeShrinkRefused",
		}},
		"a claim has no volume yet": {edit: func(in *cluster.Input) { in.State.Members[1].Claim.Capacity = size("0") }, want: changes{
			"state": "Reconciling VolumesPending", "StorageReady": "False VolumesPending", "Progressing": "True VolumesPending",
		}},
		"an ephemeral cluster": {edit: func(in *cluster.Input) { in.Spec.Storage = nil }, want: changes{"StorageReady": "True StorageDisabled"}},
		"an object is refused": {
			edit: formed, verdicts: map[string]plan.Verdict{"objectsCurrent": {Reason: v1alpha1.ReasonForming, Actions: []plan.Action{plan.Ensure{Kind: "Service", Name: "x"}}}},
			outcome: refused, want: changes{
				"state": "Degraded ObjectRefused", "Ready": "False ObjectRefused", "Degraded": "True ObjectRefused", "Progressing": "True Forming",
			},
		},
		"an edit is carried out": {
			edit: formed, verdicts: map[string]plan.Verdict{"objectsCurrent": {Reason: v1alpha1.ReasonForming, Actions: []plan.Action{plan.Ensure{Kind: "Secret", Name: "x"}}}},
			want: changes{"state": "Reconciling Forming", "Progressing": "True Forming"},
		},
		"the default user is open": {edit: func(in *cluster.Input) { in.Spec.Users = nil }, want: changes{"ConfigurationWarning": "True DefaultUserOpen"}},
		"a password is missing": {edit: formed, verdicts: map[string]plan.Verdict{"userPasswordsFound": waiting(v1alpha1.ReasonPasswordSecretMissing)}, want: changes{
			"state": "Reconciling PasswordSecretMissing", "Progressing": "True PasswordSecretMissing", "ConfigurationWarning": "True PasswordSecretMissing",
		}},
		"a server refuses a user": {
			edit: func(in *cluster.Input) { in.State.Members[0].Agent.Value.RefusedUsers = []string{"shop"} },
			want: changes{"ConfigurationWarning": "True UserRefused"},
		},
		"a shard is on one worker": {
			edit: func(in *cluster.Input) {
				for i := range in.State.Members {
					in.State.Members[i].Pods[0].Worker = "worker-1"
				}
			},
			want: changes{"ConfigurationWarning": "True ShardOnOneWorker"},
		},
		"data may take more than the memory limit": {
			edit: func(in *cluster.Input) {
				in.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: size("64Mi")}
				in.Spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": "100mb"}
			},
			want: changes{"ConfigurationWarning": "True MemoryBelowMaxmemory"},
		},
		"servers are given too little time to stop": {
			edit: func(in *cluster.Input) {
				in.Spec.TerminationGracePeriodSeconds = new(int64(30))
				in.State.Members[0].Agent = state.Seen(protocol.Facts{Files: &protocol.Files{SaveSeconds: 20}})
			},
			want: changes{"ConfigurationWarning": "True GracePeriodShort"},
		},
		"three shards fail over by themselves": {edit: func(in *cluster.Input) { in.Spec.Shards = 3 }, want: changes{"ConfigurationWarning": "False NoWarning"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := settledCluster()
			if row.edit != nil {
				row.edit(&in)
			}
			checkStatus(t, in, verdicts(row.verdicts), row.outcome, row.want)
		})
	}
}

// checkStatus compares a status with that of a cluster that is well, but for
// some changes, and looks a second time.
func checkStatus(t *testing.T, in cluster.Input, made plan.Plan, outcome plan.Outcome, changes map[string]string) {
	t.Helper()
	want := map[string]string{
		"state": "Ready Healthy", "Ready": "True Healthy", "ClusterFormed": "True Healthy", "SlotsAssigned": "True SlotsAssigned",
		"StorageReady": "True VolumesBound", "Degraded": "False Healthy", "Progressing": "False Settled", "ConfigurationWarning": "True NoAutomaticFailover",
		"AutoExpansion": "False Disabled",
	}
	maps.Copy(want, changes)
	status := Cluster(in, made, outcome)
	if diff := cmp.Diff(want, told(status)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if status.ObservedGeneration != 3 || status.ClusterID != "id-1" {
		t.Errorf("generation %d, identity %q", status.ObservedGeneration, status.ClusterID)
	}
	in.State.Status, in.State.Now = status, noon.Add(time.Hour)
	if diff := cmp.Diff(status, Cluster(in, made, outcome), sameQuantity); diff != "" {
		t.Errorf("the same world later gives another status (-first +second):\n%s", diff)
	}
}

func TestClusterStorage(t *testing.T) {
	t.Parallel()
	in := settledCluster()
	in.State.Status.Formed = true
	in.State.Members[1].Claim.Capacity = size("2Gi")
	in.Spec.Storage.Size = new(size("2Gi"))
	in.State.Members[0].Record.Spec.Storage.Size = new(size("2Gi"))
	status := Cluster(in, verdicts(nil), nil)
	storage := status.Storage
	if storage.Capacity.Min.String() != "1Gi" || storage.Capacity.Max.String() != "2Gi" || storage.Used != "20%" || storage.RequestedSize.String() != "2Gi" {
		t.Errorf("it is %+v", storage)
	}
	if storage.ExpandingSince == nil || !storage.ExpandingSince.Time.Equal(noon) || storage.ExpandedAt != nil {
		t.Errorf("the growth began %v and ended %v", storage.ExpandingSince, storage.ExpandedAt)
	}
	message := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStorageReady).Message
	if want := "growing from 1Gi to 2Gi: 1 of 2 volumes are done; valkey-prod-0-0-data 1Gi"; message != want {
		t.Errorf("it says %q, want %q", message, want)
	}
	if storage.Phase != v1alpha1.StorageRequesting || storage.Volumes[0].Phase != v1alpha1.StorageRequesting || storage.Volumes[1].Phase != v1alpha1.StorageSatisfied {
		t.Errorf("phases %s: %s, %s", storage.Phase, storage.Volumes[0].Phase, storage.Volumes[1].Phase)
	}
}

// A hundred members and more are told in counts and exceptions.
func TestManyVolumesAreListedByException(t *testing.T) {
	t.Parallel()
	in := settledCluster()
	in.State.Status.Formed = true
	for node := 2; node < 150; node++ {
		member := in.State.Members[1]
		member.Name, member.Node = name.Node("prod", 0, node), node
		in.State.Members = append(in.State.Members, member)
	}
	if listed := len(Cluster(in, verdicts(nil), nil).Storage.Volumes); listed != 0 {
		t.Errorf("%d satisfied volumes are listed", listed)
	}
	in.State.Members[7].Record = nil
	if volumes := Cluster(in, verdicts(nil), nil).Storage.Volumes; len(volumes) != 1 || volumes[0].Node != "prod-0-7" {
		t.Errorf("listed are %+v", volumes)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	in := settledCluster()
	in.State.Status.Formed = true
	long := plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonMemberUnreachable, Note: strings.Repeat("ä", 40000)}
	for _, condition := range Cluster(in, verdicts(map[string]plan.Verdict{"membersAnswer": long}), nil).Conditions {
		if len(condition.Message) > 1100 {
			t.Errorf("%s has a message of %d bytes", condition.Type, len(condition.Message))
		}
	}
}

// A status that lost its conditions is no reason to fall over.
func TestAMissedAnswerKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	in := settledCluster()
	in.State.Status.Formed = true
	silent := map[string]plan.Verdict{"membersAnswer": {Hold: plan.Wait, Reason: v1alpha1.ReasonMemberUnreachable, Note: "silent"}}
	known := in
	known.State.Status = Cluster(in, verdicts(nil), nil)
	in.State.Members[1].Server.Known = false
	known.State.Members = in.State.Members
	if got := told(Cluster(known, verdicts(silent), nil))["Ready"]; got != "True Healthy" {
		t.Errorf("after a missed answer Ready is %s", got)
	}
	if got := told(Cluster(in, verdicts(silent), nil))["Ready"]; got != "False MemberUnreachable" {
		t.Errorf("without any conditions before, Ready is %s", got)
	}
}

func TestAClusterBeingDeletedKeepsItsStatus(t *testing.T) {
	t.Parallel()
	in := settledCluster()
	in.State.Status = Cluster(in, verdicts(nil), nil)
	in.State.Deleting = true
	if diff := cmp.Diff(in.State.Status, Cluster(in, nil, nil), sameQuantity); diff != "" {
		t.Error(diff)
	}
}

func TestTheReasonOfAPodThatIsNotReadyIsItsAgents(t *testing.T) {
	t.Parallel()
	in := settledCluster()
	in.State.Members[0].Pods[0].Ready = false
	in.State.Members[0].Agent = state.Seen(protocol.Facts{NotReady: "it is loading"})
	if message := Cluster(in, verdicts(nil), nil).Message; !strings.Contains(message, "prod-0-0") || !strings.Contains(message, "it is loading") {
		t.Errorf("it says %q", message)
	}
}
