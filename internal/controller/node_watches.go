package controller

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

const (
	// firstBackoff and lastBackoff bound the waits after faults.
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = time.Minute
)

// SetupWithManager has the manager run the reconciler with a number of workers:
// passes go side by side, so that one that waits a second for a silent agent
// holds up no other. The context bounds the question whether StorageClasses may
// be read.
func (r *NodeReconciler) SetupWithManager(ctx context.Context, manager ctrl.Manager, workers int) error {
	classes, err := mayReadClasses(ctx, manager.GetClient())
	if err != nil {
		return err
	}
	r.Observer.ReadClasses = classes
	built := ctrl.NewControllerManagedBy(manager).
		Named("valkeynode").
		For(&v1alpha1.ValkeyNode{}, builder.WithPredicates(whenGone(r.passes.forget), predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.StatefulSet{}).
		Owns(&appsv1.Deployment{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(nodeOfLabels)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(nodeOfLabels)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, lastBackoff),
		})
	if classes {
		built = built.Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.nodesWaitingForStorage))
	}
	return built.Complete(reconcile.AsReconciler(manager.GetClient(), r))
}

// mayReadClasses asks the API server whether the operator may watch
// StorageClasses. An informer that may not list would never be in sync and
// hold up everything.
func mayReadClasses(ctx context.Context, writer client.Writer) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: storagev1.GroupName, Resource: "storageclasses", Verb: verb},
		}}
		if err := writer.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking whether StorageClasses may be read: %w", err)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// nodeOfLabels is the node that an object's labels name.
func nodeOfLabels(_ context.Context, object client.Object) []reconcile.Request {
	labels := object.GetLabels()
	shard, shardErr := strconv.Atoi(labels[name.LabelShardIndex])
	index, indexErr := strconv.Atoi(labels[name.LabelNodeIndex])
	cluster := labels[name.LabelCluster]
	if cluster == "" || shardErr != nil || indexErr != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{
		Namespace: object.GetNamespace(), Name: name.Node(cluster, shard, index),
	}}}
}

// nodesWaitingForStorage are the nodes that a changed class may help.
func (r *NodeReconciler) nodesWaitingForStorage(ctx context.Context, _ client.Object) []reconcile.Request {
	nodes := &v1alpha1.ValkeyNodeList{}
	if err := r.Client.List(ctx, nodes); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a StorageClass changed, but the nodes could not be listed")
		return nil
	}
	var waiting []reconcile.Request
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.Spec.Storage.Enabled {
			waiting = appendWaiting(waiting, node, node.Status.Conditions)
		}
	}
	return waiting
}

// clustersWaitingForStorage are the clusters that a changed class may help.
func (r *ClusterReconciler) clustersWaitingForStorage(ctx context.Context, _ client.Object) []reconcile.Request {
	clusters := &v1alpha1.ValkeyClusterList{}
	if err := r.Client.List(ctx, clusters); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a StorageClass changed, but the clusters could not be listed")
		return nil
	}
	var waiting []reconcile.Request
	for i := range clusters.Items {
		waiting = appendWaiting(waiting, &clusters.Items[i], clusters.Items[i].Status.Conditions)
	}
	return waiting
}

func appendWaiting(to []reconcile.Request, object client.Object, conditions []metav1.Condition) []reconcile.Request {
	if meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStorageReady) {
		return to
	}
	return append(to, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
}
