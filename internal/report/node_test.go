package report

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	nodeplan "valkey.io/valkey-operator/internal/plan/node"
	"valkey.io/valkey-operator/internal/state"
)

var (
	noon         = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	sameQuantity = cmp.Comparer(func(a, b resource.Quantity) bool { return a.Equal(b) })
)

func size(text string) resource.Quantity { return resource.MustParse(text) }

// settledNode is a node with a ready pod and a volume of 1Gi, a third full.
func settledNode() nodeplan.Input {
	labels := name.NodeLabels("prod", 0, 1)
	podLabels := name.NodeLabels("prod", 0, 1)
	podLabels[name.LabelRole] = "replica"
	return nodeplan.Input{
		Spec: v1alpha1.ValkeyNodeSpec{
			ClusterName: "prod", ClusterID: "id-1", Shard: 0, Node: 1,
			Storage:  v1alpha1.NodeStorage{Enabled: true, ClaimName: "data", Size: new(size("1Gi"))},
			Template: v1alpha1.NodeTemplate{Revision: "r", WorkloadType: v1alpha1.WorkloadStatefulSet},
		},
		State: state.Node{
			Now: noon, Name: "prod-0-1", UID: "node-uid", ClusterUID: "cluster-uid", Shape: "3x1", Generation: 4,
			Claim: &state.Claim{
				Name: "data", Version: "7", Labels: labels, ClusterID: "id-1", NodeID: "abc", Shape: "3x1",
				Phase: corev1.ClaimBound, ClassName: "fast", Requested: size("1Gi"), Capacity: size("1Gi"),
			},
			Class:    state.Seen(state.Class{Name: "fast", Exists: true, Expandable: true}),
			Workload: &state.Workload{Replicas: 1, Kind: v1alpha1.WorkloadStatefulSet, Revision: "r", OwnerUIDs: []string{"node-uid"}},
			Pods:     []state.Pod{{Name: "pod-0", UID: "pod-uid", IP: "10.0.0.7", Worker: "worker-1", Phase: corev1.PodRunning, Ready: true, Labels: podLabels}},
			Agent: state.Seen(protocol.Facts{
				NodeID: "abc", Role: protocol.RoleReplica, Server: protocol.ServerRunning, Decision: protocol.DecisionStart, Ready: true,
				Disk: &protocol.Disk{TotalBytes: 1000, AvailableBytes: 666, TotalInodes: 100, FreeInodes: 99},
			}),
		},
	}
}

// pass is the status after one pass in which every action succeeds, unless
// failure is what the last action of the claim's track met.
func pass(prev v1alpha1.ValkeyNodeStatus, in nodeplan.Input, failure error) v1alpha1.ValkeyNodeStatus {
	in.State.Status = prev
	made := nodeplan.Make(in)
	var outcome plan.Outcome
	for _, step := range made {
		if len(step.Actions) == 0 {
			continue
		}
		result := plan.Result{Rule: step.Rule, Done: len(step.Actions)}
		if step.Track == nodeplan.TrackClaim && failure != nil {
			result = plan.Result{Rule: step.Rule, Err: failure, At: step.Actions[0]}
		}
		outcome = append(outcome, result)
	}
	return NodeStatus(prev, in, made, outcome)
}

func settledStatus() v1alpha1.ValkeyNodeStatus {
	return pass(v1alpha1.ValkeyNodeStatus{}, settledNode(), nil)
}

func TestNodeStatusOfASettledNode(t *testing.T) {
	t.Parallel()
	condition := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(noon),
		}
	}
	want := v1alpha1.ValkeyNodeStatus{
		ObservedGeneration: 4, PodName: "pod-0", PodUID: "pod-uid", PodIP: "10.0.0.7", Worker: "worker-1", Revision: "r", Role: "replica", NodeID: "abc",
		Agent: &v1alpha1.AgentStatus{Server: "running", Decision: "Start"},
		Storage: &v1alpha1.NodeStorageStatus{
			Claim: "data", Phase: v1alpha1.StorageSatisfied, Requested: new(size("1Gi")), Capacity: new(size("1Gi")),
			UsedPercent: new(int32(30)), InodesUsedPercent: new(int32(0)), Used: "30%", SampledAt: new(metav1.NewTime(noon)),
		},
		Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionReady, v1alpha1.ReasonPodReady, "pod pod-0 is ready"),
			condition(v1alpha1.ConditionWorkloadReady, v1alpha1.ReasonPodReady, "pod pod-0 is ready"),
			condition(v1alpha1.ConditionStorageReady, v1alpha1.ReasonVolumesBound, "claim data has 1Gi"),
		},
	}
	if diff := cmp.Diff(want, settledStatus(), sameQuantity); diff != "" {
		t.Errorf("status differs (-want +got):\n%s", diff)
	}
}

// A pass in which nothing happened changes no byte, however much later it is.
func TestNodeStatusRests(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(*nodeplan.Input){
		"an hour later":       func(in *nodeplan.Input) { in.State.Now = noon.Add(time.Hour) },
		"the agent is silent": func(in *nodeplan.Input) { in.State.Agent = state.Unknown[protocol.Facts]("silent") },
		"some bytes more":     func(in *nodeplan.Input) { in.State.Agent.Value.Disk.AvailableBytes = 651 },
		"some bytes less":     func(in *nodeplan.Input) { in.State.Agent.Value.Disk.AvailableBytes = 719 },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			prev, in := settledStatus(), settledNode()
			edit(&in)
			next := pass(prev, in, nil)
			if diff := cmp.Diff(prev, next, sameQuantity); diff != "" {
				t.Errorf("status changed (-before +after):\n%s", diff)
			}
			if events := NodeEvents(prev, next); len(events) > 0 {
				t.Errorf("events without a change: %v", events)
			}
		})
	}
}

func TestNodeConditions(t *testing.T) {
	t.Parallel()
	quota := &plan.Refusal{Reason: v1alpha1.ReasonQuotaExceeded, Message: "exceeded quota: small", Err: errors.New("403")}
	type short struct {
		Ready, Workload, Storage string
		Phase                    v1alpha1.StoragePhase
	}
	const ready = "True PodReady"
	for what, row := range map[string]struct {
		edit    func(*nodeplan.Input)
		failure error
		want    short
	}{
		"a growth leaves Ready True": {
			func(in *nodeplan.Input) { in.Spec.Storage.Size = new(size("2Gi")) }, nil,
			short{ready, ready, "False VolumeExpanding", v1alpha1.StorageRequesting},
		},
		"a quota refuses a growth": {
			func(in *nodeplan.Input) { in.Spec.Storage.Size = new(size("2Gi")) }, quota,
			short{ready, ready, "False QuotaExceeded", v1alpha1.StorageRejected},
		},
		"a fault of the machinery says nothing of the volume": {
			func(in *nodeplan.Input) { in.Spec.Storage.Size = new(size("2Gi")) }, errors.New("connection refused"),
			short{ready, ready, "True VolumesBound", v1alpha1.StorageRequesting},
		},
		"a class refuses a growth": {
			func(in *nodeplan.Input) {
				in.Spec.Storage.Size = new(size("2Gi"))
				in.State.Class.Value.Expandable = false
			}, nil,
			short{ready, ready, "False StorageClassNotExpandable", v1alpha1.StorageRejected},
		},
		"a claim that was grown by hand is accepted": {
			func(in *nodeplan.Input) { in.Spec.Storage.Size = new(size("512Mi")) }, nil,
			short{ready, ready, "True VolumesBound", v1alpha1.StorageSatisfied},
		},
		"a volume that grew": {
			func(in *nodeplan.Input) {
				in.Spec.Storage.Size = new(size("2Gi"))
				in.State.Claim.Requested, in.State.Claim.Capacity = size("2Gi"), size("2Gi")
			}, nil,
			short{ready, ready, "True VolumeExpanded", v1alpha1.StorageSatisfied},
		},
		"a claim of somebody else": {
			func(in *nodeplan.Input) { in.State.Claim.ClusterID = "id-2" }, nil,
			short{ready, ready, "False ForeignVolume", v1alpha1.StorageSatisfied},
		},
		"a pod that is gone": {
			func(in *nodeplan.Input) { in.State.Pods = nil }, nil,
			short{"False PodPending", "False PodPending", "True VolumesBound", v1alpha1.StorageSatisfied},
		},
		"a template to be applied leaves the running pod Ready": {
			func(in *nodeplan.Input) {
				in.Spec.Template.Revision, in.State.Agent.Value.OwnsSlots = "r2", protocol.No
			}, nil,
			short{ready, "False RollingOut", "True VolumesBound", v1alpha1.StorageSatisfied},
		},
		"a member that is held": {
			func(in *nodeplan.Input) {
				in.State.Pods[0].Ready = false
				in.State.Agent.Value.Decision = protocol.DecisionHeldEmpty
			}, nil,
			short{"False MemberHeld", "False MemberHeld", "True VolumesBound", v1alpha1.StorageSatisfied},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := settledNode()
			row.edit(&in)
			next := pass(settledStatus(), in, row.failure)
			brief := func(kind string) string {
				condition := meta.FindStatusCondition(next.Conditions, kind)
				return string(condition.Status) + " " + condition.Reason
			}
			got := short{brief(v1alpha1.ConditionReady), brief(v1alpha1.ConditionWorkloadReady), brief(v1alpha1.ConditionStorageReady), next.Storage.Phase}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLastExpansionTimeIsWhenTheCapacityRose(t *testing.T) {
	t.Parallel()
	in := settledNode()
	in.State.Now = noon.Add(time.Hour)
	in.State.Claim.Capacity = size("2Gi")
	next := pass(settledStatus(), in, nil)
	if got := next.Storage.LastExpansionTime; got == nil || !got.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("last expansion time is %v", got)
	}
	in.State.Now = noon.Add(2 * time.Hour)
	later := pass(next, in, nil)
	if diff := cmp.Diff(next, later, sameQuantity); diff != "" {
		t.Errorf("an hour after the growth the status changed (-before +after):\n%s", diff)
	}
}

func TestAKeptClaimIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		edit func(*nodeplan.Input)
		want bool
	}{
		"a kept claim":             {func(*nodeplan.Input) {}, true},
		"no claim":                 {func(in *nodeplan.Input) { in.State.Claim = nil }, false},
		"a claim that never ran":   {func(in *nodeplan.Input) { in.State.Claim.NodeID = "" }, false},
		"a claim of somebody else": {func(in *nodeplan.Input) { in.State.Claim.ClusterID = "id-2" }, false},
	} {
		in := settledNode()
		in.State.Pods, in.State.Workload = nil, nil
		in.State.Agent = state.Unknown[protocol.Facts]("no pod runs")
		row.edit(&in)
		told := false
		for _, event := range NodeEvents(v1alpha1.ValkeyNodeStatus{}, pass(v1alpha1.ValkeyNodeStatus{}, in, nil)) {
			told = told || event.Reason == v1alpha1.EventVolumeAdopted
		}
		if told != row.want {
			t.Errorf("%s: told of an adoption: %t", what, told)
		}
	}
}

// A claim that took the place of another is not the old one grown.
func TestANewClaimIsNoGrowth(t *testing.T) {
	t.Parallel()
	in := settledNode()
	in.State.Claim = nil
	between := pass(settledStatus(), in, nil)
	in = settledNode()
	in.State.Claim.Requested, in.State.Claim.Capacity = size("2Gi"), size("2Gi")
	next := pass(between, in, nil)
	if next.Storage.LastExpansionTime != nil {
		t.Errorf("the volume grew at %v", next.Storage.LastExpansionTime)
	}
	for _, event := range NodeEvents(between, next) {
		if event.Reason == v1alpha1.ReasonVolumeExpanded {
			t.Errorf("told %v", event)
		}
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		before      *int32
		part, whole int64
		want        *int32
	}{
		"the first sample is rounded down":  {nil, 34, 100, new(int32(30))},
		"it rises at once":                  {new(int32(30)), 35, 100, new(int32(35))},
		"it falls a little late":            {new(int32(35)), 33, 100, new(int32(35))},
		"it falls then":                     {new(int32(35)), 32, 100, new(int32(30))},
		"full is full":                      {new(int32(95)), 100, 100, new(int32(100))},
		"more than all is all":              {nil, 120, 100, new(int32(100))},
		"without a whole the old one stays": {new(int32(35)), 1, 0, new(int32(35))},
		"without a whole there is none":     {nil, 1, 0, nil},
	} {
		if diff := cmp.Diff(row.want, step(row.before, row.part, row.whole)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestNodeEvents(t *testing.T) {
	t.Parallel()
	quota := &plan.Refusal{Reason: v1alpha1.ReasonQuotaExceeded, Message: "exceeded quota: small", Err: errors.New("403")}
	grow := func(in *nodeplan.Input) { in.Spec.Storage.Size = new(size("2Gi")) }
	for what, row := range map[string]struct {
		edit    func(*nodeplan.Input)
		failure error
		want    []Event
	}{
		"a growth begins": {grow, nil, []Event{{
			corev1.EventTypeNormal, v1alpha1.ReasonVolumeExpanding, "claim data: the volume grows from 1Gi to 2Gi",
		}}},
		"a growth is refused": {grow, quota, []Event{{
			corev1.EventTypeWarning, v1alpha1.EventVolumeExpansionBlocked, "QuotaExceeded: exceeded quota: small",
		}}},
		"a volume has grown": {
			func(in *nodeplan.Input) {
				grow(in)
				in.State.Claim.Requested, in.State.Claim.Capacity = size("2Gi"), size("2Gi")
			}, nil,
			[]Event{{corev1.EventTypeNormal, v1alpha1.ReasonVolumeExpanded, "claim data grew from 1Gi to 2Gi"}},
		},
		"a pod is lost: no event of ours, its own say it": {
			func(in *nodeplan.Input) { in.State.Pods = nil }, nil, nil,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := settledNode()
			row.edit(&in)
			prev := settledStatus()
			next := pass(prev, in, row.failure)
			if diff := cmp.Diff(row.want, NodeEvents(prev, next)); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
			if again := NodeEvents(next, pass(next, in, row.failure)); len(again) > 0 {
				t.Errorf("told twice: %v", again)
			}
		})
	}
}

func TestAForeignClaimIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	in := settledNode()
	in.State.Claim.ClusterID = "id-2"
	events := NodeEvents(settledStatus(), pass(settledStatus(), in, nil))
	if len(events) != 1 || events[0].Reason != v1alpha1.ReasonForeignVolume || events[0].Type != corev1.EventTypeWarning {
		t.Errorf("events are %v", events)
	}
}

// A growth that comes no further is dated by its last step, whatever is tried meanwhile.
func TestAGrowthIsDatedByItsLastStep(t *testing.T) {
	t.Parallel()
	earlier, now := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon)
	size := func(s string) *resource.Quantity { return new(resource.MustParse(s)) }
	told := func(phase v1alpha1.StoragePhase, requested, capacity string, at *metav1.Time) *v1alpha1.NodeStorageStatus {
		return &v1alpha1.NodeStorageStatus{Phase: phase, Requested: size(requested), Capacity: size(capacity), ProgressedAt: at}
	}
	const resizing, retrying, pending = v1alpha1.StorageControllerResizing, v1alpha1.StorageRetrying, v1alpha1.StorageFileSystemPending
	for what, row := range map[string]struct {
		before, now *v1alpha1.NodeStorageStatus
		want        *metav1.Time
	}{
		"nothing grows":                       {told(v1alpha1.StorageSatisfied, "1Gi", "1Gi", nil), told(v1alpha1.StorageSatisfied, "1Gi", "1Gi", nil), nil},
		"it begins":                           {told(v1alpha1.StorageSatisfied, "1Gi", "1Gi", nil), told(resizing, "2Gi", "1Gi", nil), &now},
		"it is to begin":                      {told(v1alpha1.StorageSatisfied, "1Gi", "1Gi", nil), told(v1alpha1.StorageRequesting, "1Gi", "1Gi", nil), &now},
		"it stands still":                     {told(resizing, "2Gi", "1Gi", &earlier), told(resizing, "2Gi", "1Gi", &earlier), &earlier},
		"an attempt fails":                    {told(resizing, "2Gi", "1Gi", &earlier), told(retrying, "2Gi", "1Gi", &earlier), &earlier},
		"another attempt is made":             {told(retrying, "2Gi", "1Gi", &earlier), told(resizing, "2048Mi", "1Gi", &earlier), &earlier},
		"the driver has done its part":        {told(resizing, "2Gi", "1Gi", &earlier), told(pending, "2Gi", "1Gi", &earlier), &now},
		"another size is asked for":           {told(resizing, "2Gi", "1Gi", &earlier), told(resizing, "3Gi", "1Gi", &earlier), &now},
		"a part has grown":                    {told(resizing, "3Gi", "1Gi", &earlier), told(resizing, "3Gi", "2Gi", &earlier), &now},
		"it is over":                          {told(pending, "2Gi", "1Gi", &earlier), told(v1alpha1.StorageSatisfied, "2Gi", "2Gi", &earlier), nil},
		"it was not told when it came so far": {told(resizing, "2Gi", "1Gi", nil), told(resizing, "2Gi", "1Gi", nil), &now},
	} {
		if diff := cmp.Diff(row.want, progressedAt(row.before, row.now, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}
