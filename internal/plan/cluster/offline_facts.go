package cluster

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/state"
)

const (
	// refusedTime is how long a driver must have said that it grows no volume in
	// use: the first answer may be to an attempt that merely came too soon.
	refusedTime = 10 * time.Second
	// stopPatience is how long a stopped member waits for its driver to begin. The
	// resizer tries again within five minutes, its longest pause.
	stopPatience = 5 * time.Minute
	// growPatience is how long one waits for a driver that has begun: to copy a
	// large volume may take it long.
	growPatience = 30 * time.Minute
	// endingTime is what a pod is given to end, a minute, by which the times above
	// are longer when they are counted from the stop.
	endingTime = time.Minute
)

// stopped says whether the operator keeps a member's pod away.
func stopped(member state.Member) bool { return member.Record != nil && member.Record.Spec.Stopped }

// AwayToGrow says whether a member is stopped for its volume to grow, or on its
// way back from that, as its node says. It is missed by nobody until then.
func AwayToGrow(member state.Member) bool {
	_, away := awaySince(member)
	return away || stopped(member)
}

// awaySince is when a member was stopped, as its node says. The node may have been
// unready before that for another cause, which its condition's time would tell.
func awaySince(member state.Member) (time.Time, bool) {
	told, is := unready(member)
	if !is || told.Reason != v1alpha1.ReasonVolumeExpanding {
		return time.Time{}, false
	}
	if told.LastTransitionTime.Time.Before(member.Record.StoppedAt) {
		return member.Record.StoppedAt, true
	}
	return told.LastTransitionTime.Time, true
}

func (in Input) awayToGrow() []state.Member { return in.wantedThat(AwayToGrow) }

func (in Input) wantedThat(fits func(state.Member) bool) []state.Member {
	var members []state.Member
	for _, member := range in.wanted() {
		if fits(member) {
			members = append(members, member)
		}
	}
	return members
}

// shardAway says whether any member of a shard is down by our hand.
func (in Input) shardAway(shard int) bool {
	return len(in.wantedThat(func(member state.Member) bool { return member.Shard == shard && in.away(member) })) > 0
}

// away says whether a member is down by our hand, or about to be: for its volume to
// grow, or to be replaced. One that became its shard's primary meanwhile stays until
// another has taken its place.
func (in Input) away(member state.Member) bool {
	if AwayToGrow(member) {
		return true
	}
	_, myself, answers := member.Table()
	serves := answers && myself.Flags.Primary && !myself.Slots.IsEmpty()
	return (replacing(member) || says(member, v1alpha1.ReasonRollingOut)) && (in.Spec.Replicas == 0 || !serves)
}

// overdue says whether a member that is being replaced is absent for another cause
// than that: its node, which has seen the newest template, says so of its pod.
func overdue(member state.Member) bool {
	if !replacing(member) || AwayToGrow(member) {
		return false
	}
	record := member.Record
	told, is := unready(member)
	if !is || told.Reason == v1alpha1.ReasonRollingOut || record.Status.ObservedGeneration != record.Generation {
		return false
	}
	pod, one := state.LivePod(member.Pods)
	return !one || !pod.Ready
}

// unready is what a member's node says of a pod that is not as wanted.
func unready(member state.Member) (told metav1.Condition, is bool) {
	if member.Record == nil {
		return metav1.Condition{}, false
	}
	said := meta.FindStatusCondition(member.Record.Status.Conditions, v1alpha1.ConditionWorkloadReady)
	if said == nil || said.Status != metav1.ConditionFalse {
		return metav1.Condition{}, false
	}
	return *said, true
}

// says tells whether that is for a reason.
func says(member state.Member, reason string) bool {
	told, is := unready(member)
	return is && told.Reason == reason
}

// waitingForStop are the members whose volumes would grow if they were stopped.
func (in Input) waitingForStop() []state.Member {
	return in.wantedThat(func(member state.Member) bool { return waitsForStop(in, member) })
}

func (in Input) waitingIn(shard int) []state.Member {
	return in.wantedThat(func(member state.Member) bool { return member.Shard == shard && waitsForStop(in, member) })
}

// waitsForStop says whether a member's driver has said for a while that it grows
// no volume in use.
func waitsForStop(in Input, member state.Member) bool {
	since, refused := refusedInUse(member)
	return refused && in.State.Now.Sub(since) >= refusedTime
}

// refusedInUse says since when a member's driver has said that it grows no volume
// in use, of the very size that is wanted now, and whether it does.
func refusedInUse(member state.Member) (time.Time, bool) {
	if !measured(member) || stopped(member) || phaseOf(member) != v1alpha1.StorageOfflineRequired || grownByDriver(member) {
		return time.Time{}, false
	}
	if !bound(member) || member.Claim.Requested.Cmp(*member.Record.Spec.Storage.Size) < 0 {
		return time.Time{}, false
	}
	return refusedSince(member)
}

// refusedSince is since when the driver says so: by the claim's own condition,
// else by what the node made of the driver's events.
func refusedSince(member state.Member) (time.Time, bool) {
	if failure, is := member.Claim.Is(corev1.PersistentVolumeClaimControllerResizeError); is {
		return failure.Since, !failure.Since.IsZero()
	}
	told := meta.FindStatusCondition(member.Record.Status.Conditions, v1alpha1.ConditionStorageReady)
	if told == nil || told.Reason != v1alpha1.ReasonOfflineExpansionRequired {
		return time.Time{}, false
	}
	return told.LastTransitionTime.Time, true
}

// measured says whether a member's claim and the size that it shall have are known.
func measured(member state.Member) bool {
	return member.Record != nil && !member.Record.Deleting && member.Record.Spec.Storage.Size != nil && member.Claim != nil
}

// bound says whether the claim has a volume to stay with.
func bound(member state.Member) bool {
	return member.Claim.Phase == corev1.ClaimBound && !member.Claim.Terminating
}

// phaseOf is where the member's volume stands, as its node says; empty when it
// has not said so yet.
func phaseOf(member state.Member) v1alpha1.StoragePhase {
	if member.Record == nil || member.Record.Status.Storage == nil {
		return ""
	}
	return member.Record.Status.Storage.Phase
}

// satisfied says whether a volume has the size that it shall have.
func satisfied(member state.Member) bool {
	return measured(member) && member.Claim.Capacity.Cmp(*member.Record.Spec.Storage.Size) >= 0
}

// grownByDriver says whether the driver has done its part of a volume's growth: what
// is left is for the worker, which needs a pod.
func grownByDriver(member state.Member) bool {
	if satisfied(member) {
		return true
	}
	claim := *member.Claim
	_, pending := claim.Is(corev1.PersistentVolumeClaimFileSystemResizePending)
	status := corev1.ClaimResourceStatus(claim.ResizeStatus)
	pending = pending || status == corev1.PersistentVolumeClaimNodeResizePending || status == corev1.PersistentVolumeClaimNodeResizeInProgress
	return pending && claim.Requested.Cmp(*member.Record.Spec.Storage.Size) >= 0
}

// behindIn is a member of a shard whose volume is neither grown nor waiting for its
// member to be stopped: one that was started a moment ago, or that nobody knows
// enough of.
func (in Input) behindIn(shard int) (state.Member, bool) {
	for _, member := range in.wanted() {
		if member.Shard == shard && measured(member) && !satisfied(member) && !waitsForStop(in, member) {
			return member, true
		}
	}
	return state.Member{}, false
}

// stoppedInVain are the members that were stopped for the size that is still
// wanted, and whose volumes did not grow.
func (in Input) stoppedInVain() []string {
	var names []string
	for _, member := range in.wanted() {
		if measured(member) && member.Record.StoppedInVain == member.Record.Spec.Storage.Size.String() && !grownByDriver(member) {
			names = append(names, "node "+member.Name)
		}
	}
	return names
}

// stopOver says why a member that is stopped is to be started again; empty when
// it is to stay as it is. With it comes the size for which it was stopped in vain.
func stopOver(in Input, member state.Member) (inVain, why string) {
	switch {
	case !stopped(member) || member.Record.Deleting:
		return "", ""
	case !StopsMembers(in.Spec):
		return "", "spec.storage.expansion.offlinePolicy is not RollingRestart"
	case !measured(member) || !bound(member):
		return "", "it has no volume that could grow"
	case grownByDriver(member):
		return "", fmt.Sprintf("the volume of claim %s has grown", member.Claim.Name)
	case growthOver(phaseOf(member)):
		return "", fmt.Sprintf("claim %s is %s, for which it need not be stopped", member.Claim.Name, phaseOf(member))
	case missed(in, member):
		return "", fmt.Sprintf("shard %d has no other member that serves", member.Shard)
	case neverEnded(in, member):
		return "", fmt.Sprintf("its pod has not ended within %s, so that claim %s stayed in use; if its worker is lost, delete the pod by force once that is sure", growPatience+endingTime, member.Claim.Name)
	case outwaited(in, member):
		return member.Record.Spec.Storage.Size.String(), fmt.Sprintf("the volume of claim %s did not grow although nothing used it", member.Claim.Name)
	}
	return "", ""
}

// growthOver says whether a phase is one that no stop changes.
func growthOver(phase v1alpha1.StoragePhase) bool {
	switch phase {
	case "", v1alpha1.StorageOfflineRequired, v1alpha1.StorageControllerResizing, v1alpha1.StorageRetrying, v1alpha1.StorageRequesting:
		return false
	default:
		return true
	}
}

// missed says whether a shard with replicas cannot do without a stopped member: it
// became the primary before it ended, or no other one serves.
func missed(in Input, member state.Member) bool {
	if in.Spec.Replicas == 0 {
		return false
	}
	for _, v := range ofShard(in.voices(), member.Shard) {
		if v.primaryWithSlots() {
			return v.Name == member.Name
		}
	}
	for _, other := range in.wanted() {
		pod, one := state.LivePod(other.Pods)
		if other.Shard == member.Shard && other.Name != member.Name && one && pod.Ready {
			return false // its worker, which asks more often, says that it is well
		}
	}
	return true
}

// outwaited says whether a member has been gone for so long that its driver could
// have grown its volume. A pod that is still there uses it.
func outwaited(in Input, member state.Member) bool {
	since, known := awaySince(member)
	if !known || len(member.Pods) > 0 {
		return false
	}
	patience := stopPatience
	if phaseOf(member) == v1alpha1.StorageControllerResizing {
		patience = growPatience
	}
	return in.State.Now.Sub(since) > patience+endingTime
}

// neverEnded says whether a stopped member's pod is still there after so long that
// it will hardly end by itself. Nobody is to take its absence for a planned one.
func neverEnded(in Input, member state.Member) bool {
	since, known := awaySince(member)
	return known && len(member.Pods) > 0 && in.State.Now.Sub(since) > growPatience+endingTime
}

// unwell says what is wrong with a shard, apart from those of its members that are
// away by our hand; empty when nothing is.
func unwell(in Input, shard int) string {
	expected := in.wantedThat(func(member state.Member) bool { return member.Shard == shard && !in.away(member) })
	present := slices.DeleteFunc(ofShard(in.voices(), shard), func(v voice) bool { return in.away(v.Member) })
	primary, found := primaryOf(present)
	switch {
	case len(expected) == 0:
		return ""
	case len(present) < len(expected):
		return fmt.Sprintf("shard %d lacks a member", shard)
	case !found:
		return fmt.Sprintf("shard %d has no primary that answers", shard)
	case superseded(primary, in.voices()):
		return fmt.Sprintf("node %s has yet to hear that its slots have a later owner", primary.Name)
	}
	for _, v := range present {
		if pod, _ := state.LivePod(v.Pods); !pod.Ready {
			return fmt.Sprintf("pod %s is not ready", pod.Name)
		}
		if v.id != primary.id && !seconds(v, primary) {
			return fmt.Sprintf("node %s is not in sync with node %s", v.Name, primary.Name)
		}
		if voter, unaware := unawareVoter(in, v, primary); v.id != primary.id && unaware {
			return fmt.Sprintf("node %s has yet to hear that node %s is a replica of node %s", voter.Name, v.Name, primary.Name)
		}
	}
	return ""
}

// unawareVoter is a primary that does not know of a replica whose it is, and so would
// not vote for it, or that has no link by which its vote would get there: a failover
// would hold up writes for five seconds in vain.
func unawareVoter(in Input, replica, primary voice) (voice, bool) {
	for _, v := range in.voices() {
		entry, known := v.table.ByID(replica.id)
		aware := known && entry.Flags.Replica && entry.PrimaryID == primary.id && entry.LinkConnected
		if v.primaryWithSlots() && !aware {
			return v, true
		}
	}
	return voice{}, false
}

// seconds says whether a replica could take its primary's place: it follows it, is in
// sync, and knows of it what it says of itself, its epoch and its slots.
func seconds(replica, primary voice) bool {
	entry, known := replica.table.ByID(primary.id)
	agree := known && entry.ConfigEpoch == primary.myself.ConfigEpoch && entry.Slots.Equal(primary.myself.Slots)
	return agree && follows(replica, primary) && inSync(replica)
}

// Excused says whether a member is expected to be behind for a while: it is down by
// our hand, for no longer than that takes, or its shard changes its primary because
// we asked for that.
func Excused(in Input, member state.Member) bool {
	asked, known := in.State.FailOvers[member.Shard]
	return in.away(member) && !overdue(member) || known && in.State.Now.Sub(asked) < failoverPause
}

// Away says whether a member is down by our hand, or about to be.
func Away(in Input, member state.Member) bool { return in.away(member) }

func describeAway(member state.Member) string {
	if stopped(member) {
		return fmt.Sprintf("node %s is stopped while its volume grows", member.Name)
	}
	return fmt.Sprintf("node %s comes back after its volume has grown", member.Name)
}
