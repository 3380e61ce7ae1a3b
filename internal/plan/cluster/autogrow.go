package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan/volume"
	"valkey.io/valkey-operator/internal/state"
)

// ShardGrowth is what automatic growth decides about the volumes of a shard.
type ShardGrowth struct {
	Shard  int
	Reason string // one of v1alpha1.ReasonAuto…
	Note   string
	// Target is the size that the shard's volumes shall have from now on, or, with
	// mode Recommend, should have; nil when they are to stay as they are.
	Target *resource.Quantity
	// Emergency says that Target is asked for in spite of the cooldown.
	Emergency bool
	// RewriteFirst says that growth waits for logs to be rewritten; shorten are the
	// members whose servers have yet to begin.
	RewriteFirst bool
	shorten      []state.Member
}

// AutoGrowth decides about the volumes of every shard; it is empty while
// automatic growth is off. It decides by the snapshot alone: the same one gives
// the same targets, and a target that stands in the status is not decided again.
func AutoGrowth(in Input) []ShardGrowth {
	if in.Spec.Storage == nil || !in.Spec.Storage.Enabled || in.Spec.Storage.Size == nil || in.State.Deleting {
		return nil
	}
	settings := settingsOf(in.Spec)
	if settings.mode != v1alpha1.AutoExpansionAuto && settings.mode != v1alpha1.AutoExpansionRecommend {
		return nil
	}
	var growths []ShardGrowth
	for shard := range int(in.Spec.Shards) {
		growth := autoGrow(in, settings, shard)
		growth.Shard = shard
		growths = append(growths, growth)
	}
	return growths
}

func autoGrow(in Input, settings growthSettings, shard int) ShardGrowth {
	if idle, is := cannotGrow(in, settings, shard); is {
		return idle
	}
	pressed := pressureOf(in, settings, shard)
	if len(pressed.members) > 0 {
		return relieve(in, settings, shard, pressed)
	}
	if told, is := stillTold(in, settings, shard); is {
		return told
	}
	if pressed.unknown != "" && justGrown(in, shard) {
		return ShardGrowth{Reason: v1alpha1.ReasonAutoExpanding, Note: fmt.Sprintf("the volumes of shard %d have grown, and their agents look twice at what they have now", shard)}
	}
	if pressed.unknown != "" {
		return ShardGrowth{Reason: v1alpha1.ReasonAutoNoUsageData, Note: pressed.unknown}
	}
	return ShardGrowth{Reason: v1alpha1.ReasonAutoArmed, Note: fmt.Sprintf("the volumes of shard %d are less than %.0f%% full", shard, settings.threshold)}
}

// stillTold is what was said of a volume that has since fallen a little below
// the threshold: one at its edge does not write a status for ever. Nothing grows by it.
func stillTold(in Input, settings growthSettings, shard int) (ShardGrowth, bool) {
	told := meta.FindStatusCondition(in.State.Status.Conditions, v1alpha1.ConditionAutoExpansion)
	if told == nil {
		return ShardGrowth{}, false
	}
	settings.eased = easedPercent
	pressed := pressureOf(in, settings, shard)
	if len(pressed.members) == 0 {
		return ShardGrowth{}, false
	}
	growth := relieve(in, settings, shard, pressed)
	return growth, growth.Reason == told.Reason && growth.Target == nil
}

// relieve decides about a shard some of whose volumes are too full.
func relieve(in Input, settings growthSettings, shard int, pressed pressure) ShardGrowth {
	if waiting, is := shortenLogs(settings, pressed); is {
		return waiting
	}
	target, bound := targetOf(in, settings, shard, pressed)
	if bound.Reason != "" {
		return bound
	}
	if settings.mode == v1alpha1.AutoExpansionRecommend {
		return ShardGrowth{
			Reason: v1alpha1.ReasonAutoRecommending, Target: &target,
			Note: fmt.Sprintf("%s %s; set spec.storage.size to %s", pressed.worst, pressed.how, target.String()),
		}
	}
	until := coolUntil(in, settings, shard)
	early := in.State.Now.Before(until)
	if early && (!pressed.emergency || Remembered(in, shard).Emergency) {
		return ShardGrowth{
			Reason: v1alpha1.ReasonAutoCooldown,
			Note: fmt.Sprintf("%s %s, but the shard's volumes grew a short while ago; they grow again from %s on%s",
				pressed.worst, pressed.how, until.UTC().Format(time.RFC3339), exception(in, settings, shard)),
		}
	}
	return ShardGrowth{
		Reason: v1alpha1.ReasonAutoExpanding, Target: &target, Emergency: early,
		Note: fmt.Sprintf("%s %s: the volumes of shard %d grow to %s", pressed.worst, pressed.how, shard, target.String()),
	}
}

// exception says what a cooldown still allows.
func exception(in Input, settings growthSettings, shard int) string {
	if Remembered(in, shard).Emergency {
		return ", having grown once before their time; a larger spec.storage.size grows them at once"
	}
	return fmt.Sprintf(", or once at %.0f%%; a larger spec.storage.size grows them at once", settings.emergency)
}

// cannotGrow are the grounds on which nothing is asked for, however full the
// volumes of a shard are.
func cannotGrow(in Input, settings growthSettings, shard int) (ShardGrowth, bool) {
	size := *in.Spec.Storage.Size
	if settings.mode == v1alpha1.AutoExpansionAuto && settings.maxSize == nil {
		return ShardGrowth{Reason: v1alpha1.ReasonAutoAtMaximum, Note: "nothing grows without a largest size; set spec.storage.autoExpansion.maxSize"}, true
	}
	if settings.maxSize != nil && settings.maxSize.Cmp(size) < 0 {
		return ShardGrowth{Reason: v1alpha1.ReasonAutoAtMaximum, Note: fmt.Sprintf(
			"spec.storage.autoExpansion.maxSize %s is below spec.storage.size %s, so nothing grows by itself; raise maxSize",
			settings.maxSize.String(), size.String())}, true
	}
	if why, is := unsupported(in, shard); is {
		return ShardGrowth{Reason: v1alpha1.ReasonAutoUnsupported, Note: why}, true
	}
	if !growing(in, shard) {
		return ShardGrowth{}, false
	}
	effective := EffectiveSize(in, shard)
	if refused, is := refusedSize(in, shard); is {
		return ShardGrowth{Reason: v1alpha1.ReasonAutoCeiling, Note: fmt.Sprintf(
			"the volumes of shard %d cannot have the %s that they shall have: the driver refuses %s; set spec.storage.autoExpansion.maxSize, and spec.storage.size, below that to take it back",
			shard, effective.String(), refused.String())}, true
	}
	return ShardGrowth{Reason: v1alpha1.ReasonAutoExpanding, Note: fmt.Sprintf("the volumes of shard %d shall have %s; condition StorageReady says how far they are", shard, effective.String())}, true
}

// refusedSize is a size that the driver of a shard's volumes refuses for good
// while it is being asked for.
func refusedSize(in Input, shard int) (resource.Quantity, bool) {
	for _, member := range in.ofShard(shard) {
		if member.Claim == nil {
			continue
		}
		if size, _, infeasible := volume.InfeasibleSize(*member.Claim); infeasible {
			return size, true
		}
	}
	return resource.Quantity{}, false
}

// growing says whether a volume of a shard is behind the size that it shall have.
func growing(in Input, shard int) bool {
	effective := EffectiveSize(in, shard)
	for _, member := range in.ofShard(shard) {
		if member.Claim != nil && member.Claim.Capacity.Sign() > 0 && member.Claim.Capacity.Cmp(effective) < 0 {
			return true
		}
	}
	return false
}

// ofShard are the wanted members of a shard.
func (in Input) ofShard(shard int) []state.Member {
	var members []state.Member
	for i := range in.State.Members {
		if member := &in.State.Members[i]; member.Wanted && member.Shard == shard {
			members = append(members, *member)
		}
	}
	return members
}

// coolUntil is when the cooldown of a shard ends; zero if it never grew.
func coolUntil(in Input, settings growthSettings, shard int) time.Time {
	last := lastGrowth(in, shard)
	if last.IsZero() {
		return last
	}
	return last.Add(settings.cooldown)
}

// lastGrowth is when any of a shard's volumes grew last, whoever asked for it, or
// was last told to grow by itself. A time that is yet to come was written by a clock
// that was wrong, and would keep a full volume waiting until it comes.
func lastGrowth(in Input, shard int) time.Time {
	var last time.Time
	hear := func(at *metav1.Time) {
		if at != nil && at.After(last) && !at.After(in.State.Now.Add(samplePatience)) {
			last = at.Time
		}
	}
	hear(Remembered(in, shard).GrownAt)
	for _, member := range in.ofShard(shard) {
		if member.Record != nil && member.Record.Status.Storage != nil {
			hear(member.Record.Status.Storage.LastExpansionTime)
		}
	}
	return last
}

// justGrown says whether a growth has ended so lately that an agent's two looks
// may lie before and after it, or not been told to have ended yet.
func justGrown(in Input, shard int) bool {
	if storage := in.State.Status.Storage; storage != nil && storage.ExpandingSince != nil {
		return true
	}
	return in.State.Now.Sub(lastGrowth(in, shard)) < oldestSample
}

// CoolingDown says whether a shard grew, or was told to, within the cooldown.
func CoolingDown(in Input, shard int) bool {
	return in.State.Now.Before(coolUntil(in, settingsOf(in.Spec), shard))
}

// ceilingMemory is for how long a size that the driver refused is not asked for
// by itself: what a pool or a provider allows changes, but not by the hour.
const ceilingMemory = 24 * time.Hour

// ceilingOf is the size that automatic growth stays below for now.
func ceilingOf(in Input) (resource.Quantity, bool) {
	if in.State.Status.Storage == nil || in.State.Status.Storage.Ceiling == nil {
		return resource.Quantity{}, false
	}
	ceiling := in.State.Status.Storage.Ceiling
	return ceiling.Size, in.State.Now.Sub(ceiling.Since.Time) < ceilingMemory
}
