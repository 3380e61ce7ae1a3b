package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Scheduling says on which workers pods may run. NodeSelector, tolerations,
// affinity, topologySpreadConstraints and priorityClassName mean what they mean
// in a pod; node and zone add to them.
type Scheduling struct {
	// NodeSelector lists labels that a worker must have.
	//
	// +optional
	// +mapType=atomic
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations let members run on tainted workers.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity attracts members to workers or keeps them off.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints spread the members, beside what node and zone
	// do. One for the same topologyKey and whenUnsatisfiable as theirs takes
	// their place.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PriorityClassName is the priority class of the pods.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Node says how members go about workers, which Kubernetes calls nodes.
	//
	// +optional
	Node Placement `json:"node,omitempty,omitzero"`

	// Zone says how members go about zones: workers with the same label
	// topology.kubernetes.io/zone.
	//
	// +optional
	Zone Placement `json:"zone,omitempty,omitzero"`
}

// Placement is how members go about one kind of place.
type Placement struct {
	// Spread says which members keep apart.
	//
	// +optional
	Spread Spread `json:"spread,omitempty,omitzero"`
}

// Spread says which members keep apart.
type Spread struct {
	// Shard says how the members of one shard keep apart, so that losing one
	// place does not lose them all. Preferred, which unset means, takes a
	// shared place rather than none. Required lets a pod wait until there is
	// one that keeps the shard even. Disabled does not care.
	//
	// +optional
	Shard SpreadMode `json:"shard,omitempty"`
}

// SpreadMode is how strictly members keep apart.
//
// +kubebuilder:validation:Enum=Disabled;Preferred;Required
type SpreadMode string

// The three modes.
const (
	// SpreadDisabled: members do not keep apart.
	SpreadDisabled SpreadMode = "Disabled"
	// SpreadPreferred: members keep apart where they can.
	SpreadPreferred SpreadMode = "Preferred"
	// SpreadRequired: a pod waits rather than share a place.
	SpreadRequired SpreadMode = "Required"
)

// DisruptionBudget says whether drains go by the cluster.
type DisruptionBudget struct {
	// Mode Cluster, which unset means, lets a drain take one pod of the
	// cluster at a time, and only while all others are ready. Disabled removes
	// the budget: drains may then take all members of a shard at once.
	//
	// +optional
	Mode DisruptionMode `json:"mode,omitempty"`
}

// DisruptionMode is how drains go by a cluster.
//
// +kubebuilder:validation:Enum=Cluster;Disabled
type DisruptionMode string

// The two modes.
const (
	// DisruptionCluster: one pod of the cluster at a time.
	DisruptionCluster DisruptionMode = "Cluster"
	// DisruptionDisabled: drains do not ask.
	DisruptionDisabled DisruptionMode = "Disabled"
)
