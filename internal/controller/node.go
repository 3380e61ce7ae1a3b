package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/observe"
	"valkey.io/valkey-operator/internal/plan"
	nodeplan "valkey.io/valkey-operator/internal/plan/node"
	"valkey.io/valkey-operator/internal/report"
)

// What the node controller reads and writes. StorageClasses are optional:
// without them the API server's own checks decide.
//
// +kubebuilder:rbac:groups=valkey.io,resources=valkeynodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=valkey.io,resources=valkeynodes/status,verbs=patch
// +kubebuilder:rbac:groups=valkey.io,resources=valkeynodes/finalizers,verbs=update
// +kubebuilder:rbac:groups=valkey.io,resources=valkeyclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets;deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list;create;patch

// NodeReconciler runs one pass for a ValkeyNode at a time.
type NodeReconciler struct {
	Client   client.Client
	Observer observe.NodeObserver
	Events   record.EventRecorder

	refusals refusals
	passes   passLog
}

// NewNodeReconciler wires a reconciler to a manager.
func NewNodeReconciler(manager ctrl.Manager) *NodeReconciler {
	return &NodeReconciler{
		Client: manager.GetClient(),
		Observer: observe.NodeObserver{
			Reader: manager.GetClient(), Direct: manager.GetAPIReader(), Ask: observe.AskAgent, Now: time.Now,
		},
		Events: recorder(manager),
	}
}

// recorder writes events of the core API: those of the newer one leave empty
// the lastTimestamp that users sort by.
func recorder(manager ctrl.Manager) record.EventRecorder {
	return manager.GetEventRecorderFor(name.ManagedBy) //nolint:staticcheck // the newer API's events cannot be sorted by time
}

// Reconcile is one pass: observe, plan, apply, report, and say when to look
// again.
func (r *NodeReconciler) Reconcile(ctx context.Context, node *v1alpha1.ValkeyNode) (ctrl.Result, error) {
	snapshot, err := r.Observer.Snapshot(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	snapshot.Refusal = r.refusals.of(snapshot.UID)
	in := nodeplan.Input{Spec: node.Spec, State: snapshot}
	steps := nodeplan.Make(in)
	if len(steps) == 0 {
		return ctrl.Result{}, nil
	}
	same := r.passes.write(ctx, client.ObjectKeyFromObject(node), steps, snapshot.Now)
	outcome := apply.Applier{Client: r.Client, Namespace: node.Namespace}.Run(ctx, steps)
	r.refusals.keepNode(snapshot, outcome)
	if err := r.report(ctx, node, report.NodeStatus(node.Status, in, steps, outcome)); err != nil {
		return unreported(err)
	}
	return nextPass(steps.Next(same), outcome)
}

// report writes the status if it differs, and then tells what happened. It
// insists on the version of the node that was seen: a pass that began on an
// older status than its own last one would tell the same events twice.
func (r *NodeReconciler) report(ctx context.Context, node *v1alpha1.ValkeyNode, next v1alpha1.ValkeyNodeStatus) error {
	prev := node.Status
	if equality.Semantic.DeepEqual(prev, next) {
		return nil
	}
	changed := node.DeepCopy()
	changed.Status = next
	err := r.Client.Status().Patch(ctx, changed, ifUnchanged(node), client.FieldOwner(name.FieldManager))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of node %s: %w", node.Name, err)
	}
	countStop(node, next)
	for _, event := range report.NodeEvents(prev, next) {
		r.Events.Event(node, event.Type, event.Reason, shortened(event.Message))
	}
	return nil
}

// ifUnchanged patches what differs from an object, if nobody has changed that
// since.
func ifUnchanged(object client.Object) client.Patch {
	return client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
}

// unreported says when to look again after a status that could not be written:
// at once if the pass saw an object that had changed by then.
func unreported(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: staleLook}, nil
	}
	return ctrl.Result{}, err
}

// longestNote is the length in bytes that the API allows an event's note.
const longestNote = 1024

func shortened(note string) string {
	if len(note) <= longestNote {
		return note
	}
	return strings.ToValidUTF8(note[:longestNote], "")
}

// nextPass says when to look again: when the plan wants to, if all of it could
// be done. A stale plan is made anew at once; a refusal waits for the world; any
// other error backs off.
func nextPass(next time.Duration, outcome plan.Outcome) (ctrl.Result, error) {
	for _, result := range outcome {
		var refusal *plan.Refusal
		switch {
		case result.Err == nil:
		case errors.As(result.Err, &refusal):
			next = max(next, plan.LookWorld)
		case errors.Is(result.Err, apply.ErrStale):
			next = min(next, staleLook)
		default:
			return ctrl.Result{}, result.Err
		}
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// staleLook gives the cache time to see what changed; it usually has by then.
const staleLook = 100 * time.Millisecond
