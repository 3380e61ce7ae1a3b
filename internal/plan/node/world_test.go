package node

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// world is a small Kubernetes: it carries out actions and, at each tick, does
// what the binder, the resizer, the kubelet and the workload controllers do.
type world struct {
	in       Input
	provided resource.Quantity // what the storage pool has for a volume at most
	lowered  []string          // requests that went down, which only a roll-back may
}

func (w *world) perform(action plan.Action) {
	claim := w.in.State.Claim
	switch act := action.(type) {
	case plan.CreateClaim:
		w.in.State.Claim = &state.Claim{
			Name: *act.Claim.Name, Version: "1", Labels: act.Claim.Labels, Phase: corev1.ClaimPending, ClassName: "fast",
			Cluster: act.Claim.Labels[name.LabelCluster], ClusterID: act.Claim.Annotations[name.AnnotationClusterID],
			Shape: act.Claim.Annotations[name.AnnotationShape], Requested: requestedBy(act),
		}
		for _, owner := range act.Claim.OwnerReferences {
			w.in.State.Claim.OwnerUIDs = append(w.in.State.Claim.OwnerUIDs, string(*owner.UID))
		}
	case plan.ExpandClaim:
		if act.To.Cmp(claim.Requested) < 0 && claim.ResizeStatus != string(corev1.PersistentVolumeClaimControllerResizeInfeasible) {
			w.lowered = append(w.lowered, act.String())
		}
		claim.Requested = act.To
		claim.ResizeStatus, claim.Conditions = "", nil
	case plan.OwnClaim:
		claim.OwnerUIDs = slices.DeleteFunc(claim.OwnerUIDs, func(uid string) bool { return uid == act.Owner.UID })
		if act.Owned {
			claim.OwnerUIDs = append(claim.OwnerUIDs, act.Owner.UID)
		}
	case plan.MarkClaim:
		w.mark(claim, act)
	case plan.MarkPod:
		w.markPod(act)
	case plan.Ensure:
		w.in.State.Workload = &state.Workload{
			Kind: w.in.Spec.Template.WorkloadType, Name: act.Name, OwnerUIDs: []string{w.in.State.UID}, Revision: w.in.Spec.Template.Revision, Replicas: 1,
		}
		w.in.State.Pods = nil
	}
}

func (w *world) mark(claim *state.Claim, act plan.MarkClaim) {
	labels := map[string]string{}
	for _, from := range []map[string]string{claim.Labels, act.Labels} {
		maps.Copy(labels, from)
	}
	claim.Labels = labels
	if id, marked := act.Annotations[name.AnnotationNodeID]; marked {
		claim.NodeID = id
	}
	if shape, marked := act.Annotations[name.AnnotationShape]; marked {
		claim.Shape = shape
	}
}

func (w *world) markPod(act plan.MarkPod) {
	pod := &w.in.State.Pods[0]
	if role, marked := act.Labels[name.LabelRole]; marked {
		pod.Labels = map[string]string{name.LabelRole: role}
	}
	if nudge, marked := act.Annotations[name.AnnotationResizeNudge]; marked {
		pod.Nudge = nudge
		w.kubelet()
	}
}

// tick lets a minute pass.
func (w *world) tick() {
	w.in.State.Now = w.in.State.Now.Add(time.Minute)
	if w.in.State.Workload != nil && len(w.in.State.Pods) == 0 {
		w.in.State.Pods = []state.Pod{{Name: "pod", UID: "pod-uid", Phase: corev1.PodPending}}
	}
	if claim := w.in.State.Claim; claim != nil {
		w.storage(claim)
	}
	if len(w.in.State.Pods) == 1 && w.in.State.Claim != nil && w.in.State.Claim.Phase == corev1.ClaimBound {
		pod := &w.in.State.Pods[0]
		pod.Phase, pod.IP, pod.Ready = corev1.PodRunning, "10.0.0.7", true
		w.in.State.Agent = state.Seen(protocol.Facts{NodeID: "abc", Role: protocol.RolePrimary})
	}
}

func (w *world) storage(claim *state.Claim) {
	pods := len(w.in.State.Pods) > 0
	switch {
	case claim.Phase == corev1.ClaimPending && pods:
		claim.Phase, claim.Capacity = corev1.ClaimBound, claim.Requested
	case claim.Phase != corev1.ClaimBound || claim.Requested.Cmp(claim.Capacity) <= 0:
	case claim.Requested.Cmp(w.provided) > 0:
		claim.ResizeStatus = string(corev1.PersistentVolumeClaimControllerResizeInfeasible)
	case claim.ResizeStatus != string(corev1.PersistentVolumeClaimNodeResizePending):
		claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizePending)
		claim.Conditions = []state.ClaimCondition{{Type: string(corev1.PersistentVolumeClaimFileSystemResizePending), Status: corev1.ConditionTrue, Since: w.in.State.Now}}
	}
}

// kubelet grows the file system of a volume that its pod mounts.
func (w *world) kubelet() {
	claim := w.in.State.Claim
	if claim.ResizeStatus == string(corev1.PersistentVolumeClaimNodeResizePending) {
		claim.Capacity, claim.ResizeStatus, claim.Conditions = claim.Requested, "", nil
	}
}

// settle makes passes until nothing is planned any more, and returns whether
// that came to be.
func (w *world) settle(t *rapid.T) bool {
	const passes = 40
	for range passes {
		w.tick()
		made := Make(w.in)
		again := Make(w.in)
		if got, want := actionsOf(again), actionsOf(made); !slices.Equal(got, want) {
			t.Fatalf("planning twice gave %v and %v", want, got)
		}
		for _, action := range made.Actions() {
			w.perform(action)
		}
		if made.Settled() {
			return true
		}
	}
	return false
}

func actionsOf(made plan.Plan) []string {
	var actions []string
	for _, action := range made.Actions() {
		actions = append(actions, action.String())
	}
	return actions
}

func (w *world) mustSettle(t *rapid.T) {
	if !w.settle(t) {
		t.Fatalf("not settled: %+v, claim %+v", Make(w.in), w.in.State.Claim)
	}
}

// Whatever sizes are wished for, a node comes to rest, no claim ever shrinks,
// and an impossible wish is forgotten once it is taken back.
func TestNodeConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{in: grown(), provided: size("16Gi")}
		w.in.State.Claim, w.in.State.Workload, w.in.State.Pods = nil, nil, nil
		w.in.State.Agent = state.Unknown[protocol.Facts]("no pod runs")
		w.mustSettle(t)
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			before := w.in.State.Claim.Capacity
			w.edit(t)
			w.settle(t)
			if w.in.State.Claim.Capacity.Cmp(before) < 0 {
				t.Fatalf("the volume shrank from %s to %s", before.String(), w.in.State.Claim.Capacity.String())
			}
		}
		w.in.Spec.Storage.Size = new(size("1Gi"))
		w.mustSettle(t)
		if len(w.lowered) > 0 {
			t.Fatalf("requests went down: %v", w.lowered)
		}
		// Kubernetes allows no request below the least step above the capacity.
		least := w.provided.DeepCopy()
		least.Add(size("1Gi"))
		if w.in.State.Claim.Requested.Cmp(least) > 0 {
			t.Fatalf("the claim still asks for %s, which it can never have", w.in.State.Claim.Requested.String())
		}
	})
}

func (w *world) edit(t *rapid.T) {
	w.in.Spec.Storage.Size = resource.NewQuantity(int64(rapid.IntRange(1, 24).Draw(t, "gibibytes"))<<30, resource.BinarySI)
	w.in.Spec.Storage.Retention.WhenDeleted = rapid.SampledFrom([]v1alpha1.RetentionPolicy{"", v1alpha1.RetentionRetain, v1alpha1.RetentionDelete}).Draw(t, "retention")
	if rapid.Bool().Draw(t, "pod lost") {
		w.in.State.Pods = nil
		w.in.State.Agent = state.Unknown[protocol.Facts]("no pod runs")
	}
	if rapid.Bool().Draw(t, "somebody asks for more") {
		w.in.State.Claim.Requested.Add(size("1Gi"))
	}
}
