package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ValkeyCluster is a Valkey cluster: shards that each own a part of the key
// space, each with a primary and its replicas. It is what users write.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vkc;valkey,categories=all
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Shards",type=string,JSONPath=`.status.shardsReady`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.storage.requestedSize`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.storage.capacity.min`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.storage.used`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 38",message="metadata.name must have at most 38 characters, so that the names of pods and volumes made from it stay valid; choose a shorter name"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a lower-case letter and hold only lower-case letters, digits and '-' (no dots), since Services are named after it"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.endsWith('-nodes')",message="metadata.name must not end in '-nodes': that name belongs to the headless Service of another cluster; choose another name"
// +kubebuilder:validation:XValidation:rule="has(self.spec.storage) || !has(oldSelf.spec.storage) || !oldSelf.spec.storage.enabled",message="spec.storage cannot be removed while storage is enabled: members would lose their volumes; put the block back"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage) || has(oldSelf.spec.storage) || !self.spec.storage.enabled",message="spec.storage.enabled of a live cluster cannot be changed yet; create a new cluster with storage and move the data to it"
type ValkeyCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	Spec ValkeyClusterSpec `json:"spec"`

	// Status is what the operator sees and does. It is written by the operator
	// alone.
	//
	// +optional
	Status ValkeyClusterStatus `json:"status,omitempty,omitzero"`
}

// ValkeyClusterList is a list of clusters.
//
// +kubebuilder:object:root=true
type ValkeyClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ValkeyCluster `json:"items"`
}

// ValkeyClusterSpec is what the user wants.
//
// +kubebuilder:validation:XValidation:rule="self.shards == oldSelf.shards",message="spec.shards of a live cluster cannot be changed yet; set it back to its former value"
// +kubebuilder:validation:XValidation:rule="self.replicas == oldSelf.replicas",message="spec.replicas of a live cluster cannot be changed yet; set it back to its former value"
// +kubebuilder:validation:XValidation:rule="has(self.workloadType) == has(oldSelf.workloadType) && (!has(self.workloadType) || self.workloadType == oldSelf.workloadType)",message="spec.workloadType of a live cluster cannot be changed yet; set it back to its former value"
type ValkeyClusterSpec struct {
	// Shards is the number of shards: the 16384 slots of the key space are
	// divided evenly among them. With three or more shards the servers fail
	// over by themselves; with one or two the operator decides for them. It
	// cannot be changed on a live cluster yet.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	Shards int32 `json:"shards"`

	// Replicas is the number of replicas of each shard, besides its primary.
	// With 0, losing a member makes its part of the key space unavailable
	// until it is back. It cannot be changed on a live cluster yet.
	//
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	Replicas int32 `json:"replicas"`

	// Image of the Valkey server, version 8.0 or newer. Another image, as any
	// change of what pods are made from, is rolled out: one member of a shard
	// at a time, replicas first, and a primary after a replica took its place.
	//
	// +kubebuilder:default="valkey/valkey:9.1.2"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// ImagePullPolicy of the server's image. Unset means the Kubernetes
	// default for its tag.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets name Secrets of the cluster's namespace that hold the
	// credentials of image registries.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// WorkloadType is the kind of workload that runs each member. Unset means
	// StatefulSet when storage is enabled and Deployment otherwise. A volume
	// works with both. It cannot be changed on a live cluster yet.
	//
	// +optional
	WorkloadType WorkloadType `json:"workloadType,omitempty"`

	// Storage says whether members keep their data on volumes. Without it the
	// cluster is ephemeral.
	//
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// VolumePermissions adds a container that runs as root before the server
	// and gives the volume's files to the server's user. It is for drivers
	// that ignore fsGroup (some NFS and host-path ones) and needs a namespace
	// whose Pod Security level allows it.
	//
	// +optional
	VolumePermissions bool `json:"volumePermissions,omitempty"`

	// Config holds settings of valkey.conf, for example
	// maxmemory-policy: allkeys-lru. Settings that the operator owns are
	// refused, and so are a maxclients below 100 and a cluster-node-timeout
	// below 1000. What servers take while they run is given to them at once, to
	// one first: if it refuses a setting, condition Degraded says ConfigRefused
	// with its words, and no server and no file is changed. What only a start
	// takes, such as io-threads, and the removal of any setting replace the
	// members one by one. Settings that come with another image or other
	// resources are given to each member together with these.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][a-z0-9-]{0,62}$'))",message="spec.config: names of settings hold only lower-case letters, digits and '-'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(self[k].contains('\\n') || self[k].contains('\\r')))",message="spec.config: a value must be one line; remove the line break"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['include','loadmodule','port','tls-port','bind','bind-source-addr','protected-mode','unixsocket','unixsocketgroup','unixsocketperm','daemonize','supervised','pidfile','logfile','syslog-enabled','dir','dbfilename','rdb-del-sync-files','appendonly','appendfilename','appenddirname','appendfsync','save','aclfile','user','requirepass','masterauth','masteruser','primaryauth','primaryuser','replicaof','slaveof','rename-command','shutdown-on-sigterm','shutdown-on-sigint'] || k.startsWith('tls-') || k.startsWith('rdma-') || k.startsWith('cluster-announce-') || k.startsWith('replica-announce-') || k.startsWith('slave-announce-') || k in ['cluster-enabled','cluster-config-file','cluster-port','cluster-replica-no-failover','cluster-slave-no-failover','cluster-allow-replica-migration','enable-debug-command','enable-module-command','enable-protected-configs']))",message="spec.config: this setting belongs to the operator (files, ports, addresses, persistence, users, TLS and cluster identity do); remove it, and use spec.storage and spec.users instead"
	// +kubebuilder:validation:XValidation:rule="!('maxclients' in self) || self['maxclients'].matches('^[1-9][0-9]{2,}$')",message="spec.config: maxclients must be at least 100: the connections between members, those of the operator and of the probes count, and without them nobody could set it back"
	// +kubebuilder:validation:XValidation:rule="!('cluster-node-timeout' in self) || self['cluster-node-timeout'].matches('^[1-9][0-9]{3,}$')",message="spec.config: cluster-node-timeout must be at least 1000 (milliseconds): members that are merely slow would be replaced by replicas that lack their last writes"
	Config map[string]ConfigValue `json:"config,omitempty"`

	// Resources of the server container: requests and limits of CPU and
	// memory.
	//
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	// Scheduling says on which workers the members may run.
	//
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`

	// PodDisruptionBudget says whether drains of workers go by the cluster. A
	// change takes effect at once and replaces no pod.
	//
	// +optional
	PodDisruptionBudget DisruptionBudget `json:"podDisruptionBudget,omitempty,omitzero"`

	// TerminationGracePeriodSeconds is how long a server that is stopped has to
	// hand over and to save its data before it is killed, in seconds. Unset
	// means as long as the operator reckons that it takes, 60 or more.
	//
	// +optional
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=3600
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Users are the ACL users of the cluster. While the list does not name
	// the user "default", that user may do everything without a password, and
	// condition ConfigurationWarning says so. Changes reach the running
	// servers within about a minute, without a restart.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Users []User `json:"users,omitempty"`
}

// ConfigValue is the value of one setting, as it stands in valkey.conf.
//
// +kubebuilder:validation:MaxLength=1024
type ConfigValue string

// WorkloadType is the kind of workload that runs a member.
//
// +kubebuilder:validation:Enum=StatefulSet;Deployment
type WorkloadType string

// The two kinds.
const (
	// WorkloadStatefulSet runs each member in a StatefulSet of one pod, whose name never changes.
	WorkloadStatefulSet WorkloadType = "StatefulSet"
	// WorkloadDeployment runs each member in a Deployment of one pod, which is gone before its successor is made.
	WorkloadDeployment WorkloadType = "Deployment"
)

// User is one ACL user.
//
// +kubebuilder:validation:XValidation:rule="!self.name.startsWith('_')",message="spec.users: names that begin with '_' belong to the operator; choose another name"
// +kubebuilder:validation:XValidation:rule="!(has(self.nopass) && self.nopass && has(self.passwordSecret))",message="spec.users: a user has either a passwordSecret or nopass, not both; remove one of them"
// +kubebuilder:validation:XValidation:rule="(has(self.nopass) && self.nopass) || has(self.passwordSecret) || (has(self.enabled) && !self.enabled)",message="spec.users: an enabled user needs a passwordSecret; or set nopass: true to let anybody in by that name"
type User struct {
	// Name of the user.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.@-]+$`
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// Enabled users may log in. Unset means true.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// PasswordSecret names the Secret, in the cluster's namespace, that holds
	// the passwords.
	//
	// +optional
	PasswordSecret *PasswordSecret `json:"passwordSecret,omitempty"`

	// Nopass lets anybody log in by this name, with any password.
	//
	// +optional
	Nopass bool `json:"nopass,omitempty"`

	// Permissions are ACL rules as in the server's ACL SETUSER, for example
	// "~cache:* +@read +@write". Unset gives none. Passwords do not belong
	// here.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f]*$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)(^| )(>|<|#|!|nopass|resetpass|reset|on|off)')",message="spec.users: permissions hold command, key and channel rules only; passwords come from passwordSecret, on and off from enabled"
	Permissions string `json:"permissions,omitempty"`
}

// PasswordSecret points at passwords in a Secret.
type PasswordSecret struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Keys of the Secret whose values are valid passwords; more than one lets
	// old and new work side by side. Unset means the one key that is called
	// like the user.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Keys []string `json:"keys,omitempty"`
}

// ClusterState is the one-word summary of a cluster.
type ClusterState string

// The states of a cluster.
const (
	// StateInitializing: the cluster is being formed for the first time.
	StateInitializing ClusterState = "Initializing"
	// StateReconciling: the cluster serves while a change is carried out.
	StateReconciling ClusterState = "Reconciling"
	// StateReady: the cluster serves and nothing is left to do.
	StateReady ClusterState = "Ready"
	// StateDegraded: something is down or refused; see reason and message.
	StateDegraded ClusterState = "Degraded"
	// StateFailed: nothing more can be done without a person.
	StateFailed ClusterState = "Failed"
)

// ValkeyClusterStatus is what the operator sees.
type ValkeyClusterStatus struct {
	// State sums the conditions up in one word.
	//
	// +optional
	State ClusterState `json:"state,omitempty"`

	// Reason is the reason of the condition that decided the state.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says what is going on, naming objects and the remedy.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// ObservedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ClusterID is the identity of the data. It is made once, stands on every
	// claim and volume, and is taken up again with retained claims.
	//
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Formed is true once the cluster has served all slots, for good.
	//
	// +optional
	Formed bool `json:"formed,omitempty"`

	// Shards is the number of shards wanted.
	//
	// +optional
	Shards int32 `json:"shards,omitempty"`

	// ReadyShards is the number of shards whose slots are served and whose
	// members are all in sync.
	//
	// +optional
	ReadyShards int32 `json:"readyShards,omitempty"`

	// ShardsReady is ReadyShards and Shards as text, for example 3/3.
	//
	// +optional
	ShardsReady string `json:"shardsReady,omitempty"`

	// Rollout says how far a new template of the pods has got; unset when every
	// member runs the newest.
	//
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// Storage sums up the volumes.
	//
	// +optional
	Storage *StorageStatus `json:"storage,omitempty"`

	// Conditions: Ready, Progressing, Degraded, ClusterFormed, SlotsAssigned,
	// StorageReady, AutoExpansion, ConfigurationWarning.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutStatus is how far a new template of the pods has got.
type RolloutStatus struct {
	// Since is when the rollout was first seen.
	Since metav1.Time `json:"since"`

	// Updated is the number of members that run the newest template.
	Updated int32 `json:"updated"`

	// Members is the number of members in all.
	Members int32 `json:"members"`

	// StoppedBy names the pod that does not run, for which nobody else is
	// replaced, and why it does not.
	//
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`
}

// StorageStatus sums up the volumes of a cluster.
type StorageStatus struct {
	// RequestedSize is the size that the spec asks for.
	//
	// +optional
	RequestedSize *resource.Quantity `json:"requestedSize,omitempty"`

	// Capacity is the range of what the volumes really have.
	//
	// +optional
	Capacity *CapacityRange `json:"capacity,omitempty"`

	// Used is the fullest volume's use in percent, for example 35%, in steps
	// of five.
	//
	// +optional
	Used string `json:"used,omitempty"`

	// Phase is Satisfied when every volume has the size asked for; else the
	// phase of the volume that is furthest behind.
	//
	// +optional
	Phase StoragePhase `json:"phase,omitempty"`

	// RecommendedSize is the size that the volumes should have by what
	// autoExpansion with mode Recommend sees.
	//
	// +optional
	RecommendedSize *resource.Quantity `json:"recommendedSize,omitempty"`

	// Ceiling is the smallest size that the driver was seen to refuse.
	// Automatic growth stays below it for a day.
	//
	// +optional
	Ceiling *StorageCeiling `json:"ceiling,omitempty"`

	// Shards has a line for each shard whose volumes shall have another size
	// than the spec's, or grew by themselves.
	//
	// +optional
	// +listType=map
	// +listMapKey=shard
	// +kubebuilder:validation:MaxItems=500
	Shards []ShardStorageStatus `json:"shards,omitempty"`

	// ExpandingSince is when the running growth was first seen.
	//
	// +optional
	ExpandingSince *metav1.Time `json:"expandingSince,omitempty"`

	// ExpandedAt is when the last growth reached every volume.
	//
	// +optional
	ExpandedAt *metav1.Time `json:"expandedAt,omitempty"`

	// Volumes has a line for each member: all of them up to 100 members, only
	// those that are not satisfied beyond.
	//
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=3000
	Volumes []VolumeStatus `json:"volumes,omitempty"`
}

// StorageCeiling is a size that cannot be had.
type StorageCeiling struct {
	// Size that the driver refused.
	Size resource.Quantity `json:"size"`
	// Since is when it was refused last.
	Since metav1.Time `json:"since"`
}

// ShardStorageStatus is what is remembered of the volumes of a shard.
type ShardStorageStatus struct {
	// Shard is the index of the shard.
	Shard int32 `json:"shard"`

	// EffectiveSize is the size that the shard's volumes shall have.
	//
	// +optional
	EffectiveSize *resource.Quantity `json:"effectiveSize,omitempty"`

	// AutoTarget is the size that automatic growth arrived at. It stays when
	// autoExpansion is turned off: volumes cannot shrink.
	//
	// +optional
	AutoTarget *resource.Quantity `json:"autoTarget,omitempty"`

	// GrownAt is when automatic growth was last decided.
	//
	// +optional
	GrownAt *metav1.Time `json:"grownAt,omitempty"`

	// Emergency says that the last growth was made in spite of the cooldown;
	// the next one waits for its end.
	//
	// +optional
	Emergency bool `json:"emergency,omitempty"`
}

// CapacityRange is the smallest and the largest capacity of a set of volumes.
type CapacityRange struct {
	// Min is the smallest capacity.
	Min resource.Quantity `json:"min"`
	// Max is the largest capacity.
	Max resource.Quantity `json:"max"`
}

// VolumeStatus is one member's volume.
type VolumeStatus struct {
	// Node is the name of the ValkeyNode.
	Node string `json:"node"`

	// Claim is the name of its PersistentVolumeClaim.
	Claim string `json:"claim"`

	// Phase is where the volume stands.
	Phase StoragePhase `json:"phase"`

	// Reason says why it is not satisfied.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is the explanation with its remedy.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Requested is the size that the claim asks for.
	//
	// +optional
	Requested *resource.Quantity `json:"requested,omitempty"`

	// Capacity is the size that the volume has.
	//
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// UsedPercent is the use of the file system, in steps of five.
	//
	// +optional
	UsedPercent *int32 `json:"usedPercent,omitempty"`

	// LastExpansionTime is when the volume last grew.
	//
	// +optional
	LastExpansionTime *metav1.Time `json:"lastExpansionTime,omitempty"`

	// NextEligibleTime is when a growth that the provider limits is tried again.
	//
	// +optional
	NextEligibleTime *metav1.Time `json:"nextEligibleTime,omitempty"`
}
