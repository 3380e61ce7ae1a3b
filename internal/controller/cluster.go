package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/observe"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/report"
	"valkey.io/valkey-operator/internal/valkey"
)

// +kubebuilder:rbac:groups=valkey.io,resources=valkeyclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=valkey.io,resources=valkeyclusters/status,verbs=get;patch
// +kubebuilder:rbac:groups=valkey.io,resources=valkeyclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=valkey.io,resources=valkeynodes,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=resourcequotas;limitranges,verbs=list
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// The claims are patched by way of trial alone. Quotas, limits and classes are
// optional: what may not be read is left to the API server's own checks.

// ClusterReconciler makes ValkeyClusters be as their specs want them.
type ClusterReconciler struct {
	Client     client.Client
	Observer   observe.ClusterObserver
	Dial       valkey.Dialer
	Command    apply.Commander
	Events     record.EventRecorder
	AgentImage string
	// Lanes is on how many members a step is carried out side by side.
	Lanes int

	passes    passLog
	failOvers failOvers
	births    births
	settings  settings
	refusals  refusals
}

// lanes side by side let a small cluster form at once, and spare the API server
// a large one's burst.
const lanes = 8

// NewClusterReconciler wires a reconciler to a manager.
func NewClusterReconciler(manager ctrl.Manager, agentImage string) *ClusterReconciler {
	return &ClusterReconciler{
		Client: manager.GetClient(),
		Observer: observe.ClusterObserver{
			Reader: manager.GetClient(), Direct: manager.GetAPIReader(),
			Dial: valkey.DialServer, Ask: observe.AskAgent, Now: time.Now,
		},
		Dial:       valkey.DialServer,
		Command:    apply.CommandAgent,
		Events:     recorder(manager),
		AgentImage: agentImage, Lanes: lanes,
	}
}

// Reconcile makes one pass: observe, plan, apply, report, and when next.
func (r *ClusterReconciler) Reconcile(ctx context.Context, object *v1alpha1.ValkeyCluster) (ctrl.Result, error) {
	snapshot, credentials, err := r.Observer.Snapshot(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	recordUse(snapshot)
	key := client.ObjectKeyFromObject(object)
	snapshot.FailOvers, snapshot.Refusal = r.failOvers.of(key), r.refusals.of(snapshot.UID)
	snapshot.Unowned = r.births.unowned(snapshot.UID)
	r.settings.tell(key, &snapshot)
	in := cluster.Input{Spec: object.Spec, State: snapshot, AgentImage: r.AgentImage}
	made := cluster.Make(in)
	same := r.passes.write(ctx, key, made, snapshot.Now)
	r.failOvers.keep(key, snapshot.Now, made)
	hands := apply.Applier{Client: r.Client, Namespace: object.Namespace, Dial: r.Dial, Command: r.Command, Login: credentials.Operator, Lanes: r.Lanes}
	outcome := hands.Run(ctx, made)
	r.refusals.keepCluster(snapshot, outcome)
	r.settings.keep(key, snapshot, made, outcome)
	r.births.keep(snapshot, int(object.Spec.Shards), made, outcome)
	if err := r.report(ctx, object, report.Cluster(in, made, outcome)); err != nil {
		return unreported(err)
	}
	return nextPass(made.Next(same), outcome)
}

// report writes the status if it differs, and the events of the difference.
// The status must still be the one that was observed: a pass that saw an older
// one would tell again what has been told.
func (r *ClusterReconciler) report(ctx context.Context, object *v1alpha1.ValkeyCluster, next v1alpha1.ValkeyClusterStatus) error {
	recordCluster(object, next)
	if equality.Semantic.DeepEqual(object.Status, next) {
		return nil
	}
	changed := object.DeepCopy()
	changed.Status = next
	err := r.Client.Status().Patch(ctx, changed, ifUnchanged(object), client.FieldOwner(name.FieldManager))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of cluster %s: %w", object.Name, err)
	}
	countExpansion(object, next)
	for _, event := range report.ClusterEvents(object.Status, next) {
		r.Events.Event(object, event.Type, event.Reason, event.Message)
	}
	return nil
}

// forget drops what is kept of a cluster that is gone.
func (r *ClusterReconciler) forget(key client.ObjectKey) {
	r.passes.forget(key)
	r.failOvers.forget(key)
	r.births.forget(key)
	r.settings.forget(key)
	forgetCluster(key)
}

// SetupWithManager has the manager run the reconciler with a number of workers.
// The context bounds the question whether StorageClasses may be read.
func (r *ClusterReconciler) SetupWithManager(ctx context.Context, manager ctrl.Manager, workers int) error {
	classes, err := mayReadClasses(ctx, manager.GetClient())
	if err != nil {
		return err
	}
	r.Observer.ReadClasses = classes
	toCluster := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		owner := object.GetLabels()[name.LabelCluster]
		if owner == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: owner}}}
	})
	built := ctrl.NewControllerManagedBy(manager).
		Named("valkeycluster").
		For(&v1alpha1.ValkeyCluster{}, builder.WithPredicates(whenGone(r.forget), predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&v1alpha1.ValkeyNode{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Watches(&corev1.Pod{}, toCluster).
		Watches(&corev1.PersistentVolumeClaim{}, toCluster).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: workers,
			// The library's own back-off grows to a quarter of an hour, in which nothing of the cluster would be healed.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, lastBackoff),
		})
	if classes {
		built = built.Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.clustersWaitingForStorage))
	}
	return built.Complete(reconcile.AsReconciler(manager.GetClient(), r))
}
