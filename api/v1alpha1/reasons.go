package v1alpha1

// Condition types of ValkeyCluster and ValkeyNode.
const (
	// ConditionReady: every slot is served and every member is in sync. It
	// stays True while volumes grow online, and while a member with a replica is
	// stopped for its volume to grow.
	ConditionReady = "Ready"
	// ConditionProgressing: the operator is carrying out a change.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: something is down or refused and needs time or a person.
	ConditionDegraded = "Degraded"
	// ConditionClusterFormed: the members know each other and have served all slots.
	ConditionClusterFormed = "ClusterFormed"
	// ConditionSlotsAssigned: every slot has an owner that answers.
	ConditionSlotsAssigned = "SlotsAssigned"
	// ConditionStorageReady: every volume has the size asked for.
	ConditionStorageReady = "StorageReady"
	// ConditionAutoExpansion: volumes grow by themselves when they fill up.
	ConditionAutoExpansion = "AutoExpansion"
	// ConditionConfigurationWarning: the spec works but is risky.
	ConditionConfigurationWarning = "ConfigurationWarning"
	// ConditionWorkloadReady (of a node): the workload is as wanted and its pod is ready.
	ConditionWorkloadReady = "WorkloadReady"
)

// Reasons of conditions. Each is the same string in conditions, events, logs
// and metrics, and a heading of docs/runbook.md.
const (
	// ReasonHealthy: every slot is served and every member is in sync.
	ReasonHealthy = "Healthy"
	// ReasonForming: the cluster is being formed for the first time.
	ReasonForming = "Forming"
	// ReasonSettled: nothing is left to do.
	ReasonSettled = "Settled"
	// ReasonMembersStarting: members exist but do not answer yet.
	ReasonMembersStarting = "MembersStarting"
	// ReasonMemberUnreachable: a member of a formed cluster does not answer.
	ReasonMemberUnreachable = "MemberUnreachable"
	// ReasonMemberHeld: an agent keeps its server from starting, to save data.
	ReasonMemberHeld = "MemberHeld"
	// ReasonMeeting: members are being introduced to each other.
	ReasonMeeting = "Meeting"
	// ReasonSlotsUnassigned: slots have no owner that answers.
	ReasonSlotsUnassigned = "SlotsUnassigned"
	// ReasonSlotsAssigned: every slot has an owner that answers.
	ReasonSlotsAssigned = "SlotsAssigned"
	// ReasonReplicasAttaching: replicas are being attached or are syncing.
	ReasonReplicasAttaching = "ReplicasAttaching"
	// ReasonFailingOver: a replica is taking over a shard.
	ReasonFailingOver = "FailingOver"
	// ReasonRollingOut: pods are being replaced by those of the newest template.
	ReasonRollingOut = "RollingOut"
	// ReasonDataLossOnRestart: an edit would replace pods that hold the only copy of their data.
	ReasonDataLossOnRestart = "DataLossOnRestart"
	// ReasonForgetting: ids of members that no longer exist are being removed.
	ReasonForgetting = "Forgetting"
	// ReasonShardLost: all copies of a shard's data are gone with their volumes.
	ReasonShardLost = "ShardLost"
	// ReasonPodsNotReady: servers answer, but pods are not ready.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonNameTaken: an object with a name of this cluster belongs to somebody else.
	ReasonNameTaken = "NameTaken"
	// ReasonIdentityConflict: the kept claims disagree about which cluster they belong to, or have another shape.
	ReasonIdentityConflict = "IdentityConflict"
	// ReasonObjectRefused: the API server refused an object; the message quotes it.
	ReasonObjectRefused = "ObjectRefused"
	// ReasonConfigApplying: running servers are being given changed settings.
	ReasonConfigApplying = "ConfigApplying"
	// ReasonConfigRefused: a server refuses a setting; the message quotes it.
	ReasonConfigRefused = "ConfigRefused"
	// ReasonMemoryBelowData: the memory limit asked for is below what the data takes.
	ReasonMemoryBelowData = "MemoryBelowData"
	// ReasonFilesDamaged: a server cannot use the files on its volume.
	ReasonFilesDamaged = "FilesDamaged"
	// ReasonDowngradeRefused: the image's server could not read the data of those that run.
	ReasonDowngradeRefused = "DowngradeRefused"
	// ReasonChangeNotSupported: the edit cannot be carried out yet and was not begun.
	ReasonChangeNotSupported = "ChangeNotSupported"
	// ReasonPasswordSecretMissing: a user's Secret or key does not exist.
	ReasonPasswordSecretMissing = "PasswordSecretMissing"
	// ReasonUserRefused: the servers refuse a user's permissions.
	ReasonUserRefused = "UserRefused"
	// ReasonDefaultUserOpen: the user "default" may do everything without a password.
	ReasonDefaultUserOpen = "DefaultUserOpen"
	// ReasonShardOnOneWorker: all members of a shard run on one worker.
	ReasonShardOnOneWorker = "ShardOnOneWorker"
	// ReasonMemoryBelowMaxmemory: the memory limit is below what maxmemory lets the data take.
	ReasonMemoryBelowMaxmemory = "MemoryBelowMaxmemory"
	// ReasonGracePeriodShort: a server may need longer to stop than the spec gives it.
	ReasonGracePeriodShort = "GracePeriodShort"
	// ReasonNoAutomaticFailover: one or two shards cannot elect a primary by vote.
	ReasonNoAutomaticFailover = "NoAutomaticFailover"
	// ReasonNoWarning: there is nothing to warn about.
	ReasonNoWarning = "NoWarning"
	// ReasonStorageDisabled: the cluster is ephemeral.
	ReasonStorageDisabled = "StorageDisabled"

	// ReasonVolumesPending: claims do not have their volumes yet.
	ReasonVolumesPending = "VolumesPending"
	// ReasonVolumesBound: every claim has its volume, of the size asked for.
	ReasonVolumesBound = "VolumesBound"
	// ReasonVolumeExpanding: volumes are growing.
	ReasonVolumeExpanding = "VolumeExpanding"
	// ReasonVolumeExpanded: every volume has grown to the size asked for.
	ReasonVolumeExpanded = "VolumeExpanded"
	// ReasonStorageClassNotExpandable: the class does not allow growth.
	ReasonStorageClassNotExpandable = "StorageClassNotExpandable"
	// ReasonStorageClassMissing: the class does not exist.
	ReasonStorageClassMissing = "StorageClassMissing"
	// ReasonQuotaExceeded: a ResourceQuota refuses the claim or its growth.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonLimitRangeExceeded: a LimitRange refuses the claim or its growth.
	ReasonLimitRangeExceeded = "LimitRangeExceeded"
	// ReasonExpansionRefused: the API server refused the growth for another cause.
	ReasonExpansionRefused = "ExpansionRefused"
	// ReasonExpansionInfeasible: the driver says that the size can never be had.
	ReasonExpansionInfeasible = "ExpansionInfeasible"
	// ReasonExpansionRetrying: an attempt to grow failed and is being repeated.
	ReasonExpansionRetrying = "ExpansionRetrying"
	// ReasonExpansionStalled: a growth makes no progress.
	ReasonExpansionStalled = "ExpansionStalled"
	// ReasonExpansionRateLimited: the provider allows no further change of the volume for some time.
	ReasonExpansionRateLimited = "ExpansionRateLimited"
	// ReasonOfflineExpansionRequired: the driver grows volumes only while no pod uses them.
	ReasonOfflineExpansionRequired = "OfflineExpansionRequired"
	// ReasonVolumeShrinkRefused: the size asked for is below what the volumes have.
	ReasonVolumeShrinkRefused = "VolumeShrinkRefused"
	// ReasonVolumeUnavailable: a claim is being deleted or lost its volume.
	ReasonVolumeUnavailable = "VolumeUnavailable"
	// ReasonForeignVolume: a claim or volume belongs to another cluster or member.
	ReasonForeignVolume = "ForeignVolume"
	// ReasonDiskFull: a volume has no space left for its server.
	ReasonDiskFull = "DiskFull"
	// ReasonVolumeSmallForMaxmemory: a volume cannot hold what its server may come to need.
	ReasonVolumeSmallForMaxmemory = "VolumeSmallForMaxmemory"

	// ReasonAutoArmed: volumes are watched and will grow.
	ReasonAutoArmed = "Armed"
	// ReasonAutoExpanding: volumes are growing by themselves.
	ReasonAutoExpanding = "Expanding"
	// ReasonAutoDisabled: automatic growth is off.
	ReasonAutoDisabled = "Disabled"
	// ReasonAutoRecommending: sizes are recommended, not applied.
	ReasonAutoRecommending = "Recommending"
	// ReasonAutoCooldown: a full volume waits, since it grew a short while ago.
	ReasonAutoCooldown = "Cooldown"
	// ReasonAutoAtMaximum: a full volume has the largest size that it may have.
	ReasonAutoAtMaximum = "AtMaximum"
	// ReasonAutoNoUsageData: nothing trustworthy is known of how full a volume is.
	ReasonAutoNoUsageData = "NoUsageData"
	// ReasonAutoCeiling: the driver refused a size below the one wanted.
	ReasonAutoCeiling = "Ceiling"
	// ReasonAutoUnsupported: the class of the volumes allows no growth.
	ReasonAutoUnsupported = "ExpansionUnsupported"

	// ReasonPodReady: the node's pod is ready.
	ReasonPodReady = "PodReady"
	// ReasonPodPending: the node's pod does not run yet, or does not exist.
	ReasonPodPending = "PodPending"
)

// Reasons of events that are not reasons of conditions.
const (
	// EventVolumeExpansionBlocked: growth was refused; the message says by what.
	EventVolumeExpansionBlocked = "VolumeExpansionBlocked"
	// EventVolumeExpansionFailed: a growth came to a halt; the message says by what.
	EventVolumeExpansionFailed = "VolumeExpansionFailed"
	// EventVolumeExpansionRecovered: an impossible growth was taken back.
	EventVolumeExpansionRecovered = "VolumeExpansionRecovered"
	// EventVolumeExpansionRestart: a member is stopped, or started again, for its volume to grow.
	EventVolumeExpansionRestart = "VolumeExpansionRestart"
	// EventRolledOut: every member has the newest template.
	EventRolledOut = "RolledOut"
	// EventRolloutStopped: a pod of the newest template does not run, and nobody else is replaced.
	EventRolloutStopped = "RolloutStopped"
	// EventVolumeExpansionRecommended: automatic growth would raise the size.
	EventVolumeExpansionRecommended = "VolumeExpansionRecommended"
	// EventDiskPressure: a volume is nearly full.
	EventDiskPressure = "DiskPressure"
	// EventFilesMended: an agent went on without files that could not be used, or restored one.
	EventFilesMended = "FilesMended"
	// EventVolumeAdopted: a kept claim was taken up again.
	EventVolumeAdopted = "VolumeAdopted"
)
