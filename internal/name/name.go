// Package name holds every name, label, annotation, port and path that the
// operator gives to things, once. It decides nothing and reads nothing.
package name

import (
	"fmt"
	"net"
	"strconv"

	"valkey.io/valkey-operator/internal/agent/protocol"
)

// Labels of every child object.
const (
	LabelName       = "app.kubernetes.io/name"
	LabelInstance   = "app.kubernetes.io/instance"
	LabelComponent  = "app.kubernetes.io/component"
	LabelPartOf     = "app.kubernetes.io/part-of"
	LabelManagedBy  = "app.kubernetes.io/managed-by"
	LabelCluster    = "valkey.io/cluster"
	LabelShardIndex = "valkey.io/shard-index"
	LabelNodeIndex  = "valkey.io/node-index"
	// LabelRole stands on pods only: primary or replica, as the server said last.
	LabelRole = "valkey.io/role"
)

// Values of the labels above.
const (
	App       = "valkey"
	ManagedBy = "valkey-operator"
	Component = "server"
)

// Annotations.
const (
	// AnnotationClusterID stands on claims: the identity of their data; and on
	// workloads: the one that their member was told.
	AnnotationClusterID = "valkey.io/cluster-id"
	// AnnotationNodeID stands on claims: the id of the member in the Valkey cluster.
	AnnotationNodeID = "valkey.io/node-id"
	// AnnotationShape stands on claims: shards and replicas of their cluster, for example 3x1.
	AnnotationShape = "valkey.io/shape"
	// AnnotationTemplateRevision stands on workloads: the revision that was applied
	// last; and on their pods: the one that they were made from.
	AnnotationTemplateRevision = "valkey.io/template-revision"
	// AnnotationAllowDataLoss stands on ValkeyClusters: the template revision for which
	// members without volume and replica may be replaced, whose keys go with their pods.
	AnnotationAllowDataLoss = "valkey.io/allow-data-loss-on-restart"
	// AnnotationStopped stands on workloads whose pod the operator keeps away.
	AnnotationStopped = "valkey.io/stopped"
	// AnnotationStoppedInVain stands on ValkeyNodes: the size that the volume did
	// not get although the member was stopped for it.
	AnnotationStoppedInVain = "valkey.io/stopped-in-vain"
	// AnnotationStoppedAt stands on ValkeyNodes that are stopped: since when.
	AnnotationStoppedAt = "valkey.io/stopped-at"
	// AnnotationStartEmpty stands on ValkeyNodes: the hold, as the agent names it, in
	// which a person lets the member start without its data.
	AnnotationStartEmpty = "valkey.io/start-empty"
	// AnnotationResizeNudge stands on pods: changing it makes the kubelet look at once.
	AnnotationResizeNudge = "valkey.io/resize-nudge"
)

// Field managers of server-side apply.
const (
	// FieldManager owns everything but what the others own.
	FieldManager = "valkey-operator"
	// FieldManagerStorage owns a ValkeyNode's size and retention, which change at any time.
	FieldManagerStorage = "valkey-operator-storage"
	// FieldManagerStop owns whether a ValkeyNode is stopped, and whether that was in vain.
	FieldManagerStop = "valkey-operator-stop"
)

// Ports of a member's pod, and their names.
const (
	PortClient         = 6379
	PortClusterBus     = 16379
	PortAgent          = protocol.Port
	PortNameClient     = "client"
	PortNameClusterBus = "cluster-bus"
	PortNameAgent      = "agent"
)

// System users of every cluster.
const (
	UserOperator    = "_operator"
	UserReplication = "_replication"
	// UserDefault is the user of a connection that did not log in.
	UserDefault = "default"
)

// Containers of a member's pod.
const (
	ContainerServer            = "server"
	ContainerInstallAgent      = "install-agent"
	ContainerVolumePermissions = "volume-permissions"
)

// Paths in a member's pod.
const (
	PathData   = "/data"
	PathAgent  = "/agent-bin"
	PathConfig = "/etc/valkey/config"
	PathACL    = "/etc/valkey/acl"
	PathSystem = "/etc/valkey/system"
	PathRun    = "/run/valkey"
)

// Keys in ConfigMaps and Secrets, which are file names below the paths above;
// ConfigFile names the others.
const (
	KeyMembers = "members.json"
	KeyACL     = "users.acl"
)

// ServerUID is the user and group that servers run as: the official image's.
const ServerUID = 999

// Service is the client Service, the ConfigMap and the PodDisruptionBudget of a cluster.
func Service(cluster string) string { return "valkey-" + cluster }

// HeadlessService publishes all members' addresses, ready or not.
func HeadlessService(cluster string) string { return "valkey-" + cluster + "-nodes" }

// ACLSecret holds the rendered ACL file.
func ACLSecret(cluster string) string { return "internal-" + cluster + "-acl" }

// PasswordsSecret holds the system users' generated passwords, a key a user.
func PasswordsSecret(cluster string) string { return "internal-" + cluster + "-system-passwords" }

// Node is the ValkeyNode of a member.
func Node(cluster string, shard, node int) string {
	return fmt.Sprintf("%s-%d-%d", cluster, shard, node)
}

// Workload is the StatefulSet or Deployment of a ValkeyNode.
func Workload(node string) string { return "valkey-" + node }

// Claim is the first claim of a ValkeyNode.
func Claim(node string) string { return Workload(node) + "-data" }

// ClientAddress is where the server of the pod with an IP address answers.
func ClientAddress(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(PortClient)) }

// Shape says how many shards and replicas a cluster has, for example 3x1.
func Shape(shards, replicas int32) string { return fmt.Sprintf("%dx%d", shards, replicas) }

// ClusterLabels stand on every object of a cluster.
func ClusterLabels(cluster string) map[string]string {
	return map[string]string{
		LabelName:      App,
		LabelInstance:  cluster,
		LabelComponent: Component,
		LabelPartOf:    App,
		LabelManagedBy: ManagedBy,
		LabelCluster:   cluster,
	}
}

// NodeLabels stand on every object of a member.
func NodeLabels(cluster string, shard, node int) map[string]string {
	labels := ClusterLabels(cluster)
	labels[LabelShardIndex] = fmt.Sprint(shard)
	labels[LabelNodeIndex] = fmt.Sprint(node)
	return labels
}

// Selector is the part of the labels that selects a cluster's members.
func Selector(cluster string) map[string]string {
	return map[string]string{LabelName: App, LabelManagedBy: ManagedBy, LabelCluster: cluster}
}

// ShardSelector is the part of the labels that selects a shard's members.
func ShardSelector(cluster string, shard int) map[string]string {
	selector := Selector(cluster)
	selector[LabelShardIndex] = fmt.Sprint(shard)
	return selector
}

// NodeSelector is the part of the labels that selects one member's pod.
func NodeSelector(cluster string, shard, node int) map[string]string {
	selector := ShardSelector(cluster, shard)
	selector[LabelNodeIndex] = fmt.Sprint(node)
	return selector
}
