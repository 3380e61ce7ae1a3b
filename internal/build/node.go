package build

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// WorkloadType is the kind of workload that a spec asks for.
func WorkloadType(spec v1alpha1.ValkeyClusterSpec) v1alpha1.WorkloadType {
	switch {
	case spec.WorkloadType != "":
		return spec.WorkloadType
	case StorageEnabled(spec):
		return v1alpha1.WorkloadStatefulSet
	default:
		return v1alpha1.WorkloadDeployment
	}
}

// StorageEnabled says whether a spec asks for volumes.
func StorageEnabled(spec v1alpha1.ValkeyClusterSpec) bool {
	return spec.Storage != nil && spec.Storage.Enabled
}

// NodeSpec is what a cluster wants of one member, but for the half that
// NodeStorageHalf holds.
func NodeSpec(c Cluster, shard, node int) v1alpha1.ValkeyNodeSpec {
	spec := v1alpha1.ValkeyNodeSpec{
		ClusterName: c.Name, ClusterID: c.ID, Shard: int32(shard), Node: int32(node),
		Template: v1alpha1.NodeTemplate{
			WorkloadType: WorkloadType(c.Spec), Image: c.Spec.Image, AgentImage: c.AgentImage, ConfigRevision: c.ConfigRevision,
			ImagePullPolicy: c.Spec.ImagePullPolicy, ImagePullSecrets: c.Spec.ImagePullSecrets,
			VolumePermissions: c.Spec.VolumePermissions, Resources: c.Spec.Resources, Scheduling: c.Spec.Scheduling,
			TerminationGracePeriodSeconds: c.Spec.TerminationGracePeriodSeconds,
		},
	}
	if StorageEnabled(c.Spec) {
		spec.Storage = v1alpha1.NodeStorage{
			Enabled: true, ClaimName: name.Claim(name.Node(c.Name, shard, node)),
			StorageClassName: c.Spec.Storage.StorageClassName, AccessModes: c.Spec.Storage.AccessModes,
		}
	}
	spec.Template.Revision = TemplateRevision(spec)
	return spec
}

// Node is the ValkeyNode of a member with the template half of its spec.
func Node(c Cluster, spec v1alpha1.ValkeyNodeSpec) *unstructured.Unstructured {
	node := emptyNode(c, spec)
	node.Labels = name.NodeLabels(c.Name, int(spec.Shard), int(spec.Node))
	node.OwnerReferences = []metav1.OwnerReference{OwnerReference(c)}
	node.Spec = spec
	return fields(node)
}

// NodeStorageHalf is the ValkeyNode of a member with its size and retention,
// which change at any time and have a field manager of their own.
func NodeStorageHalf(c Cluster, shard, node int, size resource.Quantity) *unstructured.Unstructured {
	half := emptyNode(c, v1alpha1.ValkeyNodeSpec{Shard: int32(shard), Node: int32(node)})
	out := fields(half)
	storage := map[string]any{"size": size.String()}
	if policy := c.Spec.Storage.Retention.WhenDeleted; policy != "" {
		storage["retention"] = map[string]any{"whenDeleted": string(policy)}
	}
	out.Object["spec"] = map[string]any{"storage": storage}
	return out
}

// Stop is the part of a member's ValkeyNode that says whether it is stopped, since
// when, and for which size that was in vain; empty for none. It has a field manager
// of its own, and rests on the version of the node that was seen.
type Stop struct {
	Shard, Node int
	Version     string
	Stopped     bool
	At          time.Time // when it is stopped
	InVain      string
}

// NodeStop is the ValkeyNode of a member with the fields of a Stop.
func NodeStop(c Cluster, stop Stop) *unstructured.Unstructured {
	node := emptyNode(c, v1alpha1.ValkeyNodeSpec{Shard: int32(stop.Shard), Node: int32(stop.Node)})
	node.ResourceVersion = stop.Version
	switch {
	case stop.Stopped:
		node.Annotations = map[string]string{name.AnnotationStoppedAt: stop.At.UTC().Format(time.RFC3339)}
	case stop.InVain != "":
		node.Annotations = map[string]string{name.AnnotationStoppedInVain: stop.InVain}
	}
	out := fields(node)
	out.Object["spec"] = map[string]any{"stopped": stop.Stopped}
	return out
}

func emptyNode(c Cluster, spec v1alpha1.ValkeyNodeSpec) *v1alpha1.ValkeyNode {
	return &v1alpha1.ValkeyNode{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ValkeyNode"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name.Node(c.Name, int(spec.Shard), int(spec.Node))},
	}
}

// fields are the fields of an object that are set.
func fields(node *v1alpha1.ValkeyNode) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(node)
	if err != nil { // our own type always converts
		panic(fmt.Sprintf("converting node %s: %v", node.Name, err))
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return &unstructured.Unstructured{Object: content}
}
