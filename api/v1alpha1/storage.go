package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Storage says whether the members of a cluster keep their data on volumes,
// and on which ones.
//
// +kubebuilder:validation:XValidation:rule="!self.enabled || has(self.size)",message="spec.storage.size is required when spec.storage.enabled is true; set it to the size of each member's volume, for example 10Gi"
// +kubebuilder:validation:XValidation:rule="self.enabled == oldSelf.enabled",message="spec.storage.enabled of a live cluster cannot be changed yet; create a new cluster with storage and move the data to it"
// +kubebuilder:validation:XValidation:rule="!self.enabled || (has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName))",message="spec.storage.storageClassName cannot be changed while storage is enabled: a volume stays in the class it was made in; set it back to its former value"
// +kubebuilder:validation:XValidation:rule="!self.enabled || (has(self.accessModes) == has(oldSelf.accessModes) && (!has(self.accessModes) || self.accessModes == oldSelf.accessModes))",message="spec.storage.accessModes cannot be changed while storage is enabled: a volume keeps the access modes it was made with; set them back to their former value"
type Storage struct {
	// Enabled turns persistent storage on: each member then keeps its data on
	// a volume of its own, and finds it there after any restart. While it is
	// false the data lives and dies with the pod, and the other fields here
	// are kept but have no effect. It cannot be changed on a live cluster yet.
	//
	// +kubebuilder:default=false
	Enabled bool `json:"enabled"`

	// Size of each member's volume, as a quantity such as 10Gi or a number of
	// bytes. Raise it at any time: every volume grows online, without a
	// restart. A smaller size is not applied, since volumes cannot shrink;
	// condition StorageReady then says so with reason VolumeShrinkRefused.
	// Plan two and a half times the memory that the data takes, for the
	// append-only file is rewritten beside its old copy.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : type(self) == string && self.matches('^([0-9]{1,18}|[0-9]{1,15}([.][0-9]+)?(Ki|k)|[0-9]{1,12}([.][0-9]+)?Mi?|[0-9]{1,9}([.][0-9]+)?Gi?|[0-9]{1,6}([.][0-9]+)?Ti?|[0-9]{1,3}([.][0-9]+)?Pi?)$') && self.matches('[1-9]')",message="spec.storage.size must be a positive size such as 10Gi, 500Mi or 1.5Ti (suffixes Ki, Mi, Gi, Ti, Pi or k, M, G, T, P), or a positive number of bytes"
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName names the StorageClass of the volumes. Unset means the
	// cluster's default class. The class must allow volume expansion for the
	// size to be raised later. It cannot be changed while storage is enabled.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`

	// AccessModes of the volumes. Unset means [ReadWriteOnce].
	// ReadWriteOncePod additionally keeps a second pod off the volume, where
	// the CSI driver supports it. They cannot be changed while storage is
	// enabled.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	AccessModes []VolumeAccessMode `json:"accessModes,omitempty"`

	// Durability says how much of the acknowledged data a crash may cost.
	//
	// +optional
	// +kubebuilder:default={}
	Durability Durability `json:"durability,omitempty,omitzero"`

	// Expansion says how volumes are grown.
	//
	// +optional
	// +kubebuilder:default={}
	Expansion Expansion `json:"expansion,omitempty,omitzero"`

	// AutoExpansion lets volumes grow by themselves as they fill up, up to a
	// ceiling. The sizes it arrives at stand in the status; the spec stays as
	// you wrote it.
	//
	// +optional
	AutoExpansion *AutoExpansion `json:"autoExpansion,omitempty"`

	// Retention says what happens to the volumes when the cluster goes.
	//
	// +optional
	Retention Retention `json:"retention,omitempty,omitzero"`
}

// Expansion says how volumes are grown. It may be changed at any time.
type Expansion struct {
	// OfflinePolicy is for drivers that cannot grow a volume while a pod uses
	// it. Manual (the default) says what to do and restarts nothing.
	// RollingRestart does it: one member of a shard at a time is stopped,
	// replicas first and a primary only after its replica has taken over, and
	// started again once its volume has grown.
	//
	// +optional
	// +kubebuilder:default=Manual
	// +kubebuilder:validation:Enum=Manual;RollingRestart
	OfflinePolicy OfflinePolicy `json:"offlinePolicy,omitempty"`

	// OnInfeasible says what follows when the driver can never give the size
	// asked for. Hold keeps everything as it is and says so.
	//
	// +optional
	// +kubebuilder:default=Hold
	// +kubebuilder:validation:Enum=Hold
	OnInfeasible InfeasiblePolicy `json:"onInfeasible,omitempty"`

	// MaxParallel bounds how many volumes of the cluster the driver is asked
	// to grow at a time.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxParallel int32 `json:"maxParallel,omitempty"`
}

// OfflinePolicy is what is done about a driver that grows no volume in use.
type OfflinePolicy string

// The two policies.
const (
	// OfflineManual restarts nothing and says what to do.
	OfflineManual OfflinePolicy = "Manual"
	// OfflineRollingRestart stops one member of a shard at a time while its volume grows.
	OfflineRollingRestart OfflinePolicy = "RollingRestart"
)

// InfeasiblePolicy is what follows a size that can never be had.
type InfeasiblePolicy string

// InfeasibleHold keeps everything as it is.
const InfeasibleHold InfeasiblePolicy = "Hold"

// AutoExpansion lets volumes grow by themselves. It may be changed at any time.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'Auto' || has(self.maxSize)",message="spec.storage.autoExpansion.maxSize is required with mode Auto; set it to the largest size that a volume may grow to by itself"
// +kubebuilder:validation:XValidation:rule="self.emergencyPercent >= self.thresholdPercent",message="spec.storage.autoExpansion.emergencyPercent must not be below thresholdPercent; raise it, or lower thresholdPercent"
type AutoExpansion struct {
	// Mode "Off" (the default; YAML wants the quotes) grows nothing. Recommend writes the size that it
	// would grow to into status.storage.recommendedSize and an event. Auto
	// grows the volumes of a shard whose fullest one is above the threshold.
	//
	// +optional
	// +kubebuilder:default=Off
	// +kubebuilder:validation:Enum=Off;Recommend;Auto
	Mode AutoExpansionMode `json:"mode,omitempty"`

	// MaxSize is the largest size that a volume grows to by itself. Required
	// with mode Auto. Below spec.storage.size it stops automatic growth.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : type(self) == string && self.matches('^([0-9]{1,18}|[0-9]{1,15}([.][0-9]+)?(Ki|k)|[0-9]{1,12}([.][0-9]+)?Mi?|[0-9]{1,9}([.][0-9]+)?Gi?|[0-9]{1,6}([.][0-9]+)?Ti?|[0-9]{1,3}([.][0-9]+)?Pi?)$') && self.matches('[1-9]')",message="spec.storage.autoExpansion.maxSize must be a positive size such as 500Gi (suffixes Ki, Mi, Gi, Ti, Pi or k, M, G, T, P), or a positive number of bytes"
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`

	// ThresholdPercent is the use in percent from which on a shard's volumes
	// grow: of bytes or inodes, whichever is more, and of the bytes that the
	// next rewrite of the append-only file will take at its peak.
	//
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=99
	ThresholdPercent int32 `json:"thresholdPercent,omitempty"`

	// EmergencyPercent is the use in percent from which on one growth is made
	// in spite of the cooldown.
	//
	// +optional
	// +kubebuilder:default=95
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=99
	EmergencyPercent int32 `json:"emergencyPercent,omitempty"`

	// Increment is by how much a volume grows at a time: percent of its
	// capacity, such as 20%, or a size, such as 10Gi. A volume that fills up
	// faster than that within a cooldown grows by what it needs.
	//
	// +optional
	// +kubebuilder:default="20%"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}%|[0-9]{1,18}|[0-9]{1,15}([.][0-9]+)?(Ki|k)|[0-9]{1,12}([.][0-9]+)?Mi?|[0-9]{1,9}([.][0-9]+)?Gi?|[0-9]{1,6}([.][0-9]+)?Ti?)$') && self.matches('[1-9]')",message="spec.storage.autoExpansion.increment must be a percentage above 0 such as 20%, or a positive size such as 10Gi"
	Increment string `json:"increment,omitempty"`

	// Cooldown is the least time between the end of one growth of a volume,
	// whoever asked for it, and the next automatic one. Some providers allow
	// few changes of a volume a day.
	//
	// +optional
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=""
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$')",message="spec.storage.autoExpansion.cooldown must be a duration such as 6h or 30m, and not negative"
	Cooldown metav1.Duration `json:"cooldown,omitempty"`
}

// AutoExpansionMode says how far automatic growth goes.
type AutoExpansionMode string

// The modes.
const (
	// AutoExpansionOff grows nothing by itself.
	AutoExpansionOff AutoExpansionMode = "Off"
	// AutoExpansionRecommend says what it would grow to.
	AutoExpansionRecommend AutoExpansionMode = "Recommend"
	// AutoExpansionAuto grows volumes.
	AutoExpansionAuto AutoExpansionMode = "Auto"
)

// VolumeAccessMode is how a volume may be mounted.
//
// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod
type VolumeAccessMode corev1.PersistentVolumeAccessMode

// Durability chooses how data gets onto the volume.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.storage.durability of a live cluster cannot be changed yet; set it back to its former value"
type Durability struct {
	// Mode AppendOnly logs every write to an append-only file, so that a
	// restarted member has all its data.
	//
	// +optional
	// +kubebuilder:default=AppendOnly
	// +kubebuilder:validation:Enum=AppendOnly
	Mode DurabilityMode `json:"mode,omitempty"`

	// Fsync says when the append-only file is forced to the disk: always
	// (before each reply; a crash loses nothing), everysec (a crash may lose
	// the last second or two; the default), or no (when the kernel sees fit).
	// A planned stop loses nothing with any of them.
	//
	// +optional
	// +kubebuilder:default=everysec
	// +kubebuilder:validation:Enum=always;everysec;no
	Fsync FsyncPolicy `json:"fsync,omitempty"`
}

// DurabilityMode names a way of getting data onto the volume.
type DurabilityMode string

// DurabilityAppendOnly logs every write to an append-only file.
const DurabilityAppendOnly DurabilityMode = "AppendOnly"

// FsyncPolicy is the value of the server's appendfsync.
type FsyncPolicy string

// The policies that the server knows.
const (
	// FsyncAlways forces every write to the disk before it is acknowledged.
	FsyncAlways FsyncPolicy = "always"
	// FsyncEverySec forces writes to the disk once a second.
	FsyncEverySec FsyncPolicy = "everysec"
	// FsyncNo leaves it to the kernel.
	FsyncNo FsyncPolicy = "no"
)

// Retention says what happens to volumes that nobody needs any more.
type Retention struct {
	// WhenDeleted says what becomes of the claims when the ValkeyCluster is
	// deleted. Retain (the default) keeps them: a cluster of the same name in
	// the same namespace takes them up again, with its data. Delete removes
	// them with the cluster. It may be changed at any time. A change holds once
	// the claims' owners have followed it, a moment later: a cluster that is
	// deleted right after a change from Delete to Retain may take claims along.
	// Wait until metadata.ownerReferences of its claims is empty.
	//
	// +optional
	// +kubebuilder:default=Retain
	// +kubebuilder:validation:Enum=Retain;Delete
	WhenDeleted RetentionPolicy `json:"whenDeleted,omitempty"`
}

// RetentionPolicy is what happens to a claim.
type RetentionPolicy string

// The two policies.
const (
	// RetentionRetain keeps the claim and its data.
	RetentionRetain RetentionPolicy = "Retain"
	// RetentionDelete deletes the claim and its data.
	RetentionDelete RetentionPolicy = "Delete"
)

// StoragePhase is where a volume, or all volumes of a cluster together, stand.
type StoragePhase string

// The phases of one volume, from the evidence on its claim.
const (
	// StorageMissing: the claim does not exist.
	StorageMissing StoragePhase = "Missing"
	// StorageTerminating: the claim is being deleted; it is not mounted anew.
	StorageTerminating StoragePhase = "Terminating"
	// StorageLost: the claim lost its volume.
	StorageLost StoragePhase = "Lost"
	// StorageUnbound: the claim waits for a volume, usually for the pod to be scheduled.
	StorageUnbound StoragePhase = "Unbound"
	// StorageRollingBack: the volume is large enough, an infeasible larger request is being taken back.
	StorageRollingBack StoragePhase = "RollingBack"
	// StorageSatisfied: the volume has at least the size asked for.
	StorageSatisfied StoragePhase = "Satisfied"
	// StorageInfeasibleController: the driver says that the size can never be had.
	StorageInfeasibleController StoragePhase = "InfeasibleController"
	// StorageInfeasibleNode: the worker's half of the growth can never succeed.
	StorageInfeasibleNode StoragePhase = "InfeasibleNode"
	// StorageOfflineRequired: the driver grows volumes only while no pod uses them.
	StorageOfflineRequired StoragePhase = "OfflineRequired"
	// StorageFileSystemPending: the volume has grown, its file system has not.
	StorageFileSystemPending StoragePhase = "FileSystemPending"
	// StorageRetrying: the last attempt failed and is being repeated.
	StorageRetrying StoragePhase = "Retrying"
	// StorageControllerResizing: the driver is growing the volume.
	StorageControllerResizing StoragePhase = "ControllerResizing"
	// StorageRejected: the API server refused the larger request.
	StorageRejected StoragePhase = "Rejected"
	// StorageRequesting: the claim still has to ask for the larger size.
	StorageRequesting StoragePhase = "Requesting"
)
