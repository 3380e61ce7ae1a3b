package state

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

// Node is everything observed of one ValkeyNode: the input of its plan.
type Node struct {
	Now       time.Time `json:"now"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Deleting  bool      `json:"deleting,omitempty"`
	// Generation of the spec, and the status that was written last.
	Generation int64                     `json:"generation,omitempty"`
	Status     v1alpha1.ValkeyNodeStatus `json:"status"`
	// ClusterUID is the UID of the owning ValkeyCluster; ClusterDeleting says
	// that it is gone or on its way out.
	ClusterUID      string `json:"clusterUID,omitempty"`
	ClusterDeleting bool   `json:"clusterDeleting,omitempty"`
	// Shape of the cluster, for example 3x1.
	Shape string `json:"shape,omitempty"`

	// Claim is nil when there is none.
	Claim *Claim `json:"claim,omitempty"`
	// Class is the claim's StorageClass, as far as it may be read.
	Class Fact[Class] `json:"class"`
	// ResizeFailure is the newest event of a failed attempt to grow the claim's
	// volume. It is looked for only when a growth lasts; nil when there is none or
	// it could not be read.
	ResizeFailure *ClaimEvent `json:"resizeFailure,omitempty"`
	// ShardCapacity is the largest volume of the members of the shard, of which a
	// new one must hold the data; zero when there is none.
	ShardCapacity resource.Quantity `json:"shardCapacity"`
	// Refusal is what the API server said last to a claim of a size that it
	// refused; nil when it never did, or gave in since.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Workload is the member's StatefulSet or Deployment; nil when there is none.
	Workload *Workload `json:"workload,omitempty"`
	// OtherWorkload is one of the other kind with the same name: it would run a second pod.
	OtherWorkload *Workload `json:"otherWorkload,omitempty"`
	// Pods are all pods of the member, finished and terminating ones too.
	Pods []Pod `json:"pods,omitempty"`
	// Agent is what the agent of the one live pod says.
	Agent Fact[protocol.Facts] `json:"agent"`
}

// Refusal is the API server's no to a claim of a size.
type Refusal struct {
	Size    resource.Quantity `json:"size"`
	Reason  string            `json:"reason"`
	Message string            `json:"message"`
	At      time.Time         `json:"at"`
}

// Class is a StorageClass.
type Class struct {
	Name       string `json:"name"`
	Exists     bool   `json:"exists"`
	Expandable bool   `json:"expandable"`
}

// Workload is a StatefulSet or Deployment.
type Workload struct {
	Kind    v1alpha1.WorkloadType `json:"kind"`
	Name    string                `json:"name"`
	UID     string                `json:"uid"`
	Version string                `json:"version,omitempty"` // resource version
	// Revision of the template that was applied last.
	Revision string `json:"revision,omitempty"`
	// PodRevision is what stands on the pods made from that template: the revision,
	// or nothing where an operator applied it which did not write it down.
	PodRevision string `json:"podRevision,omitempty"`
	// Replicas is how many pods it shall have.
	Replicas int32 `json:"replicas"`
	// GraceSeconds is how long its pod has to end before it is killed.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// Stopped says that the operator keeps its pod away. One without replicas
	// that is not was scaled by somebody else.
	Stopped bool              `json:"stopped,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// ClusterID is the identity of the cluster that it was made for.
	ClusterID string `json:"clusterID,omitempty"`
	// OwnerUIDs are the UIDs of its owners; Orphaned says that none of them is
	// its controller.
	OwnerUIDs []string `json:"ownerUIDs,omitempty"`
	Orphaned  bool     `json:"orphaned,omitempty"`
	// Earlier says that its controller was a ValkeyNode of the same name before
	// this one: it goes with that.
	Earlier     bool `json:"earlier,omitempty"`
	Terminating bool `json:"terminating,omitempty"`
	// Problem is why it cannot make its pod, in its controller's own words.
	Problem string `json:"problem,omitempty"`
}

// OwnedBy says whether an object with this UID is among the owners.
func (w Workload) OwnedBy(uid string) bool { return slices.Contains(w.OwnerUIDs, uid) }

// LivePod is the one pod of the member that is neither finished nor
// terminating, and whether there is exactly one.
func (n Node) LivePod() (Pod, bool) { return LivePod(n.Pods) }
