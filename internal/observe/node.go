package observe

import (
	"context"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

// NodeObserver reads all that decisions about a ValkeyNode need.
type NodeObserver struct {
	// Reader reads from a cache that holds all claims and workloads, ours or
	// not: a name that somebody else took must be seen.
	Reader client.Reader
	// Direct is not cached; it reads the events of a workload that makes no
	// pod and of a volume that does not grow. Nil, or without the right to list
	// them, it is done without.
	Direct client.Reader
	// ReadClasses says that StorageClasses may be read. Without the right to
	// list them the cache would wait for ever.
	ReadClasses bool
	// Ask asks the agent at an address for its facts.
	Ask func(ctx context.Context, address string) (protocol.Facts, error)
	Now func() time.Time
}

// AskAgent asks the agent at an address over HTTP, each time on a connection
// of its own: pods come and go, and an idle connection to one that went would
// be found dead only by waiting.
func AskAgent(ctx context.Context, address string) (protocol.Facts, error) {
	return protocol.Get(ctx, agentClient, address)
}

var agentClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Snapshot reads everything that decisions about a node rest on. It returns an
// error only when the API server could not be read; what else could not be
// seen is unknown in the snapshot.
func (o NodeObserver) Snapshot(ctx context.Context, node *v1alpha1.ValkeyNode) (state.Node, error) {
	seen := state.Node{
		Now: o.Now(), Namespace: node.Namespace, Name: node.Name, UID: string(node.UID),
		Deleting: node.DeletionTimestamp != nil, Generation: node.Generation, Status: node.Status,
	}
	for _, read := range []func(context.Context, *v1alpha1.ValkeyNode, *state.Node) error{
		o.readCluster, o.readClaim, o.readShard, o.readClass, o.readWorkloads, o.readPods,
	} {
		if err := read(ctx, node, &seen); err != nil {
			return state.Node{}, fmt.Errorf("observing node %s: %w", node.Name, err)
		}
	}
	o.readProblem(ctx, node, &seen)
	o.readResizeFailure(ctx, &seen)
	seen.Agent = o.agent(ctx, node, seen)
	return seen, nil
}

// readCluster sees the cluster that the node belongs to. A cluster of the same
// name that took the place of the node's own is not it: the node is about to
// be collected with the one it belonged to.
func (o NodeObserver) readCluster(ctx context.Context, node *v1alpha1.ValkeyNode, seen *state.Node) error {
	cluster := &v1alpha1.ValkeyCluster{}
	err := o.get(ctx, node, node.Spec.ClusterName, cluster)
	if apierrors.IsNotFound(err) {
		seen.ClusterDeleting = true
		return nil
	}
	if err != nil {
		return err
	}
	seen.ClusterUID = string(cluster.UID)
	seen.ClusterDeleting = cluster.DeletionTimestamp != nil || belongsToAnother(node, cluster)
	seen.Shape = name.Shape(cluster.Spec.Shards, cluster.Spec.Replicas)
	return nil
}

// belongsToAnother says whether the node is owned by a cluster, but not by
// this one. An orphaned node, which has no owner, belongs to whoever names it.
func belongsToAnother(node *v1alpha1.ValkeyNode, cluster *v1alpha1.ValkeyCluster) bool {
	another := false
	for _, owner := range node.OwnerReferences {
		if owner.Kind != "ValkeyCluster" {
			continue
		}
		if owner.UID == cluster.UID {
			return false
		}
		another = true
	}
	return another
}

func (o NodeObserver) readClaim(ctx context.Context, node *v1alpha1.ValkeyNode, seen *state.Node) error {
	if !node.Spec.Storage.Enabled {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := o.get(ctx, node, node.Spec.Storage.ClaimName, claim)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	known := state.ClaimOf(claim)
	seen.Claim = &known
	return nil
}

// readClass sees the claim's class. Whatever stands in the way makes it
// unknown and stops nothing: admission knows the class too.
func (o NodeObserver) readClass(ctx context.Context, _ *v1alpha1.ValkeyNode, seen *state.Node) error {
	seen.Class = state.Unknown[state.Class]("the claim names no class")
	if seen.Claim != nil {
		seen.Class = readClass(ctx, o.Reader, o.ReadClasses, seen.Claim.ClassName)
	}
	return nil
}

// readClass sees a StorageClass, if it may be read at all.
func readClass(ctx context.Context, from client.Reader, allowed bool, className string) state.Fact[state.Class] {
	switch {
	case className == "":
		return state.Unknown[state.Class]("the claim names no class")
	case !allowed:
		return state.Unknown[state.Class]("StorageClasses may not be read")
	}
	class := &storagev1.StorageClass{}
	err := from.Get(ctx, client.ObjectKey{Name: className}, class)
	switch {
	case apierrors.IsNotFound(err):
		return state.Seen(state.Class{Name: className})
	case err != nil:
		return state.Unknown[state.Class](err.Error())
	}
	return state.Seen(state.Class{
		Name: class.Name, Exists: true,
		Expandable: class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion,
	})
}

func (o NodeObserver) readWorkloads(ctx context.Context, node *v1alpha1.ValkeyNode, seen *state.Node) error {
	set, deployment := &appsv1.StatefulSet{}, &appsv1.Deployment{}
	setErr := o.get(ctx, node, name.Workload(node.Name), set)
	deploymentErr := o.get(ctx, node, name.Workload(node.Name), deployment)
	for _, err := range []error{setErr, deploymentErr} {
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if setErr == nil {
		workload := workloadOf(node, v1alpha1.WorkloadStatefulSet, &set.ObjectMeta, set.Spec.Replicas)
		readTemplate(&workload, set.Spec.Template)
		keepWorkload(seen, node, workload)
	}
	if deploymentErr == nil {
		workload := workloadOf(node, v1alpha1.WorkloadDeployment, &deployment.ObjectMeta, deployment.Spec.Replicas)
		readTemplate(&workload, deployment.Spec.Template)
		workload.Problem = deploymentProblem(deployment)
		keepWorkload(seen, node, workload)
	}
	return nil
}

func readTemplate(workload *state.Workload, template corev1.PodTemplateSpec) {
	workload.PodRevision = template.Annotations[name.AnnotationTemplateRevision]
	if grace := template.Spec.TerminationGracePeriodSeconds; grace != nil {
		workload.GraceSeconds = *grace
	}
}

func keepWorkload(seen *state.Node, node *v1alpha1.ValkeyNode, workload state.Workload) {
	if workload.Kind == node.Spec.Template.WorkloadType {
		seen.Workload = &workload
		return
	}
	seen.OtherWorkload = &workload
}

// workloadOf is a workload as far as decisions need it. Kubernetes reads
// replicas that are not set as one.
func workloadOf(node *v1alpha1.ValkeyNode, kind v1alpha1.WorkloadType, object *metav1.ObjectMeta, replicas *int32) state.Workload {
	workload := state.Workload{
		Kind: kind, Name: object.Name, UID: string(object.UID), Version: object.ResourceVersion, Replicas: 1,
		Revision:    object.Annotations[name.AnnotationTemplateRevision],
		Stopped:     object.Annotations[name.AnnotationStopped] != "",
		Labels:      object.Labels,
		ClusterID:   object.Annotations[name.AnnotationClusterID],
		Orphaned:    metav1.GetControllerOf(object) == nil,
		Earlier:     goesWithEarlier(object, "ValkeyNode", node),
		Terminating: object.DeletionTimestamp != nil,
	}
	if replicas != nil {
		workload.Replicas = *replicas
	}
	for _, owner := range object.OwnerReferences {
		workload.OwnerUIDs = append(workload.OwnerUIDs, string(owner.UID))
	}
	return workload
}

func deploymentProblem(deployment *appsv1.Deployment) string {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// readProblem sees why a StatefulSet makes no pod: unlike a Deployment, it says
// so in events only.
func (o NodeObserver) readProblem(ctx context.Context, node *v1alpha1.ValkeyNode, seen *state.Node) {
	workload := seen.Workload
	if o.Direct == nil || workload == nil || workload.Kind != v1alpha1.WorkloadStatefulSet || len(seen.Pods) > 0 {
		return
	}
	events := &corev1.EventList{}
	refused := client.MatchingFields{"involvedObject.uid": workload.UID, "reason": "FailedCreate"}
	if err := o.Direct.List(ctx, events, client.InNamespace(node.Namespace), refused); err != nil {
		return // events are optional: the note then says where to look
	}
	newest := time.Time{}
	for i := range events.Items {
		if at := events.Items[i].LastTimestamp.Time; at.After(newest) {
			newest, workload.Problem = at, events.Items[i].Message
		}
	}
}

func (o NodeObserver) readPods(ctx context.Context, node *v1alpha1.ValkeyNode, seen *state.Node) error {
	pods := &corev1.PodList{}
	labels := name.NodeSelector(node.Spec.ClusterName, int(node.Spec.Shard), int(node.Spec.Node))
	if err := o.Reader.List(ctx, pods, client.InNamespace(node.Namespace), client.MatchingLabels(labels)); err != nil {
		return err
	}
	for i := range pods.Items {
		seen.Pods = append(seen.Pods, state.PodOf(&pods.Items[i]))
	}
	return nil
}

// agent asks the agent of the one live pod. An answer that is not this
// member's is none: the address may be another pod's by now.
func (o NodeObserver) agent(ctx context.Context, node *v1alpha1.ValkeyNode, seen state.Node) state.Fact[protocol.Facts] {
	pod, live := seen.LivePod()
	if !live || pod.IP == "" || pod.Phase != corev1.PodRunning || seen.Deleting {
		return state.Unknown[protocol.Facts]("no pod runs")
	}
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	facts, err := o.Ask(ctx, pod.IP)
	if err != nil {
		return state.Unknown[protocol.Facts](err.Error())
	}
	if facts.ClusterID != node.Spec.ClusterID || facts.Shard != int(node.Spec.Shard) || facts.Node != int(node.Spec.Node) {
		return state.Unknown[protocol.Facts]("another member answers at " + pod.IP)
	}
	return state.Seen(facts)
}

func (o NodeObserver) get(ctx context.Context, node *v1alpha1.ValkeyNode, objectName string, into client.Object) error {
	return o.Reader.Get(ctx, client.ObjectKey{Namespace: node.Namespace, Name: objectName}, into)
}
