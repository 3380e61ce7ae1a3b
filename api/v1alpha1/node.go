package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ValkeyNode is one Valkey server with its volume and its workload. The
// operator writes it for each member of a ValkeyCluster; users read it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vkn
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.status.role`
// +kubebuilder:printcolumn:name="Shard",type=integer,JSONPath=`.spec.shard`
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.status.podName`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.storage.capacity`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.storage.used`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.storage.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ValkeyNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the cluster wants of this member.
	Spec ValkeyNodeSpec `json:"spec"`

	// Status is what is known of this member.
	//
	// +optional
	Status ValkeyNodeStatus `json:"status,omitempty,omitzero"`
}

// ValkeyNodeList is a list of nodes.
//
// +kubebuilder:object:root=true
type ValkeyNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValkeyNode `json:"items"`
}

// ValkeyNodeSpec is what the cluster wants of one member. It has two halves
// with two writers: storage (size and retention), which is applied at any
// time, and everything else, which changes only as part of a rollout.
//
// +kubebuilder:validation:XValidation:rule="self.clusterName == oldSelf.clusterName && self.shard == oldSelf.shard && self.node == oldSelf.node",message="a ValkeyNode stays the member it was made as; the operator writes these fields"
type ValkeyNodeSpec struct {
	// ClusterName is the name of the ValkeyCluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=38
	ClusterName string `json:"clusterName"`

	// ClusterID is the identity of the data that this member may serve.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ClusterID string `json:"clusterID"`

	// Shard is the index of the member's shard.
	//
	// +kubebuilder:validation:Minimum=0
	Shard int32 `json:"shard"`

	// Node is the index of the member in its shard. It says nothing of roles.
	//
	// +kubebuilder:validation:Minimum=0
	Node int32 `json:"node"`

	// Storage is the member's volume.
	//
	// +optional
	Storage NodeStorage `json:"storage,omitempty,omitzero"`

	// Stopped keeps the member's pod away while its volume grows, for drivers
	// that grow no volume in use.
	//
	// +optional
	Stopped bool `json:"stopped,omitempty"`

	// Template is how the member's pod is run.
	Template NodeTemplate `json:"template"`
}

// NodeStorage is one member's volume.
type NodeStorage struct {
	// Enabled says that the member has a volume.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// ClaimName is the name of the member's claim.
	//
	// +optional
	ClaimName string `json:"claimName,omitempty"`

	// Size the volume shall have at least.
	//
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName of the claim at birth; unset means the default class.
	//
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// AccessModes of the claim at birth; unset means ReadWriteOnce.
	//
	// +optional
	// +listType=atomic
	AccessModes []VolumeAccessMode `json:"accessModes,omitempty"`

	// Retention of the claim.
	//
	// +optional
	Retention Retention `json:"retention,omitempty,omitzero"`
}

// NodeTemplate is how a member's pod is run.
type NodeTemplate struct {
	// Revision identifies what the user asked for. The pod is replaced when
	// it changes, and only then.
	//
	// +kubebuilder:validation:MinLength=1
	Revision string `json:"revision"`

	// WorkloadType is the kind of workload.
	WorkloadType WorkloadType `json:"workloadType"`

	// Image of the server.
	Image string `json:"image"`

	// AgentImage is the image that the agent is copied from.
	AgentImage string `json:"agentImage"`

	// ConfigRevision names the file of settings that the server is started on.
	// Unset means the one of a cluster without settings that only a start takes.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ConfigRevision string `json:"configRevision,omitempty"`

	// ImagePullPolicy of the server's image.
	//
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets of the pod.
	//
	// +optional
	// +listType=atomic
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// VolumePermissions adds the container that gives the volume's files to
	// the server's user.
	//
	// +optional
	VolumePermissions bool `json:"volumePermissions,omitempty"`

	// Resources of the server container.
	//
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	// Scheduling of the pod.
	//
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`

	// TerminationGracePeriodSeconds that the user asked for.
	//
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
}

// ValkeyNodeStatus is what is known of one member.
type ValkeyNodeStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// PodName is the name of the member's pod.
	//
	// +optional
	PodName string `json:"podName,omitempty"`

	// PodIP is the address of the member's pod.
	//
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// PodUID identifies the member's pod.
	//
	// +optional
	PodUID string `json:"podUID,omitempty"`

	// Worker is the Kubernetes node that the pod runs on.
	//
	// +optional
	Worker string `json:"worker,omitempty"`

	// Revision of the template that the member's pod was made from.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// Role is primary or replica, as the server said last.
	//
	// +optional
	Role string `json:"role,omitempty"`

	// NodeID is the member's id in the Valkey cluster, as its agent said last.
	//
	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// Agent is what the agent said last of how it started the server.
	//
	// +optional
	Agent *AgentStatus `json:"agent,omitempty"`

	// Storage is the member's volume.
	//
	// +optional
	Storage *NodeStorageStatus `json:"storage,omitempty"`

	// Conditions: Ready, StorageReady, WorkloadReady.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AgentStatus is what an agent says of its server.
type AgentStatus struct {
	// Server is starting, loading, running, held, stopping or stopped.
	//
	// +optional
	Server string `json:"server,omitempty"`

	// Decision is how the agent decided at the last start of the server.
	//
	// +optional
	Decision string `json:"decision,omitempty"`

	// Files is what became of files that could not be used as they were at the last
	// start, and where they are kept.
	//
	// +optional
	Files string `json:"files,omitempty"`

	// Message explains the decision.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// NodeStorageStatus is one member's volume.
type NodeStorageStatus struct {
	// Claim is the name of the claim.
	//
	// +optional
	Claim string `json:"claim,omitempty"`

	// Phase is where the volume stands.
	//
	// +optional
	Phase StoragePhase `json:"phase,omitempty"`

	// Requested is the size that the claim asks for.
	//
	// +optional
	Requested *resource.Quantity `json:"requested,omitempty"`

	// Capacity is the size that the volume has.
	//
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// UsedPercent is the use of the file system's bytes, in steps of five.
	//
	// +optional
	UsedPercent *int32 `json:"usedPercent,omitempty"`

	// InodesUsedPercent is the use of the file system's inodes, in steps of five.
	//
	// +optional
	InodesUsedPercent *int32 `json:"inodesUsedPercent,omitempty"`

	// Used is UsedPercent as text, for example 35%.
	//
	// +optional
	Used string `json:"used,omitempty"`

	// SampledAt is when UsedPercent last changed.
	//
	// +optional
	SampledAt *metav1.Time `json:"sampledAt,omitempty"`

	// LastExpansionTime is when the volume last grew.
	//
	// +optional
	LastExpansionTime *metav1.Time `json:"lastExpansionTime,omitempty"`

	// ProgressedAt is when a volume that grows last came a step further: its
	// request, its capacity or its phase became another. That an attempt failed
	// and is repeated is no step. Unset while the volume does not grow.
	//
	// +optional
	ProgressedAt *metav1.Time `json:"progressedAt,omitempty"`

	// NextEligibleTime is when a growth that the provider limits is tried again.
	//
	// +optional
	NextEligibleTime *metav1.Time `json:"nextEligibleTime,omitempty"`
}
