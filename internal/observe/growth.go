package observe

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

// readShard sees how large the volumes of the node's shard are, when its own
// claim is to be made. Capacities count, and requests do not: a mistyped one must
// not spread.
func (o NodeObserver) readShard(ctx context.Context, node *v1alpha1.ValkeyNode, seen *state.Node) error {
	if !node.Spec.Storage.Enabled || seen.Claim != nil {
		return nil
	}
	claims := &corev1.PersistentVolumeClaimList{}
	labels := name.ShardSelector(node.Spec.ClusterName, int(node.Spec.Shard))
	if err := o.Reader.List(ctx, claims, client.InNamespace(node.Namespace), client.MatchingLabels(labels)); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := state.ClaimOf(&claims.Items[i])
		ours := claim.ClusterID == node.Spec.ClusterID && claim.Phase == corev1.ClaimBound && !claim.Terminating
		if ours && claim.Capacity.Cmp(seen.ShardCapacity) > 0 {
			seen.ShardCapacity = claim.Capacity
		}
	}
	return nil
}

// growthPatience: most growths are over within as long, and need no explanation.
const growthPatience = 30 * time.Second

// readResizeFailure sees what was told last of failed attempts to grow the
// volume, once the growth lasts: some failures leave no other trace.
func (o NodeObserver) readResizeFailure(ctx context.Context, seen *state.Node) {
	claim := seen.Claim
	if o.Direct == nil || claim == nil || claim.Requested.Cmp(claim.Capacity) <= 0 || claim.Phase != corev1.ClaimBound || !lasting(*seen) {
		return
	}
	events := &corev1.EventList{}
	if err := o.Direct.List(ctx, events, client.InNamespace(seen.Namespace), client.MatchingFields{"involvedObject.uid": claim.UID}); err != nil {
		return // events are optional: the note then says where to look
	}
	for i := range events.Items {
		event := &events.Items[i]
		if !strings.HasSuffix(event.Reason, "ResizeFailed") {
			continue
		}
		if told := seen.ResizeFailure; told == nil || event.LastTimestamp.After(told.Last) {
			seen.ResizeFailure = &state.ClaimEvent{Message: event.Message, First: event.FirstTimestamp.Time, Last: event.LastTimestamp.Time}
		}
	}
}

// lasting says whether the node's volume has not been as wanted for some time.
func lasting(seen state.Node) bool {
	ready := meta.FindStatusCondition(seen.Status.Conditions, v1alpha1.ConditionStorageReady)
	return ready != nil && ready.Status == metav1.ConditionFalse && seen.Now.Sub(ready.LastTransitionTime.Time) > growthPatience
}
