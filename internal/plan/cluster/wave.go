package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan/volume"
	"valkey.io/valkey-operator/internal/state"
)

// fullPercent: a volume as full as that waits for nobody.
const fullPercent = 95

// grower is a member on its way to a larger volume.
type grower struct {
	state.Member
	want     resource.Quantity
	standing volume.Standing
}

// wave is the growth of volumes to one size: of all shards to the spec's, or of
// one shard to what it arrived at by itself.
type wave struct {
	size  resource.Quantity
	shard int // -1 for the spec's size
	// told are the members whose ValkeyNodes ask for the size and whose volumes are
	// on their way to it, or got it in this growth; waiting are those whose nodes do
	// not ask for it yet, the fullest first.
	told, waiting []grower
}

// waves are the growths that have not reached every ValkeyNode, in order of the
// members.
func (in Input) waves() []*wave {
	var waves []*wave
	for _, member := range in.recorded() {
		if member.Record.Spec.Storage.Size == nil {
			continue
		}
		g := grower{Member: member, want: in.target(member)}
		g.standing = volume.Classify(in.evidence(member, g.want))
		shard := -1
		if g.want.Cmp(*in.Spec.Storage.Size) > 0 {
			shard = member.Shard
		}
		w := waveOf(&waves, g.want, shard)
		behind := member.Record.Spec.Storage.Size.Cmp(g.want) < 0
		switch {
		case behind && in.waits(member):
			w.waiting = append(w.waiting, g)
		case !behind && w.took(in, g):
			w.told = append(w.told, g)
		}
	}
	waves = slices.DeleteFunc(waves, func(w *wave) bool { return len(w.waiting) == 0 })
	for _, w := range waves {
		slices.SortStableFunc(w.waiting, func(a, b grower) int { return used(b.Member) - used(a.Member) })
	}
	return waves
}

// took says whether a member whose node asks for the size takes part in the
// growth: its volume has yet to grow, or grew since the growth began. One that
// had the size before says nothing of what the driver or a quota will answer.
func (w *wave) took(in Input, g grower) bool {
	if g.Claim == nil || g.Claim.Phase != corev1.ClaimBound {
		return false
	}
	if g.Claim.Capacity.Cmp(g.want) < 0 {
		return true
	}
	told := g.Record.Status.Storage
	if told == nil {
		return false
	}
	if told.Capacity != nil && told.Capacity.Cmp(g.Claim.Capacity) < 0 {
		return true // it grew a moment ago, and its node has yet to say so
	}
	since, known := w.since(in)
	return known && told.LastExpansionTime != nil && !told.LastExpansionTime.Time.Before(since)
}

func waveOf(waves *[]*wave, size resource.Quantity, shard int) *wave {
	for _, w := range *waves {
		if w.shard == shard && w.size.Cmp(size) == 0 {
			return w
		}
	}
	*waves = append(*waves, &wave{size: size, shard: shard})
	return (*waves)[len(*waves)-1]
}

func (in Input) evidence(member state.Member, want resource.Quantity) volume.Evidence {
	pod, live := state.LivePod(member.Pods)
	e := volume.Evidence{
		Claim: member.Claim, Desired: want, Now: in.State.Now,
		PodRunning: live && pod.Phase == corev1.PodRunning,
		Class:      state.Unknown[state.Class]("there is no claim"),
	}
	if member.Claim != nil {
		e.Class = in.State.Class(member.Claim.ClassName)
	}
	// Of the one volume, and not of the growth: in a long one, those that were told
	// last would be taken for stalled at once, and hold nobody's place.
	told := meta.FindStatusCondition(member.Record.Status.Conditions, v1alpha1.ConditionStorageReady)
	if told != nil && told.Status == metav1.ConditionFalse {
		e.Since = told.LastTransitionTime.Time
	}
	return e
}

// waits says whether a member's node is told of a larger size in its turn only:
// its volume has to grow, and is not full.
func (in Input) waits(member state.Member) bool {
	claim := member.Claim
	if claim == nil || claim.Phase != corev1.ClaimBound || claim.Terminating {
		return false // there is nothing to grow yet, or any more
	}
	size := in.target(member)
	if claim.Capacity.Cmp(size) >= 0 {
		return false
	}
	class := in.State.Class(claim.ClassName)
	return !full(member) || class.Known && !class.Value.Expandable || in.infeasible(claim.ClassName, size)
}

// GrowsAtOnce says whether a member's volume is told of a larger size without
// waiting for any other: when it is full.
func GrowsAtOnce(in Input, member state.Member) bool {
	return member.Claim != nil && member.Claim.Capacity.Cmp(in.target(member)) < 0 && !in.waits(member)
}

// infeasible says whether the driver of a class is known to refuse a size, or a smaller
// one, for good: not even a full volume is asked for that in vain. Where another volume
// of the class got the size, it is a matter of place, and nothing is known.
func (in Input) infeasible(class string, size resource.Quantity) bool {
	known := false
	for _, member := range in.recorded() {
		claim := member.Claim
		if claim == nil || claim.ClassName != class {
			continue
		}
		if claim.Capacity.Cmp(size) >= 0 {
			return false
		}
		refused, _, infeasible := volume.InfeasibleSize(*claim)
		known = known || infeasible && refused.Cmp(size) <= 0
	}
	return known
}

// full says whether a member's disk is known to be full, or as good as.
func full(member state.Member) bool {
	files := member.Agent.Value.Files
	refusing := member.Agent.Known && files != nil && files.WriteFailed
	return refusing || DiskFull(member) || used(member) >= fullPercent
}

// used is the use of a member's volume in percent: its agent's word, else its
// node's. One that is not known counts least.
func used(member state.Member) int {
	if disk := member.Agent.Value.Disk; member.Agent.Known && disk != nil && disk.TotalBytes > 0 {
		return int(percentOf(*disk))
	}
	if member.Record == nil || member.Record.Status.Storage == nil || member.Record.Status.Storage.UsedPercent == nil {
		return -1
	}
	return int(*member.Record.Status.Storage.UsedPercent)
}

// since is when the wave began, if that is remembered.
func (w *wave) since(in Input) (since time.Time, known bool) {
	if storage := in.State.Status.Storage; storage != nil && storage.ExpandingSince != nil {
		since = storage.ExpandingSince.Time
	}
	if w.shard >= 0 {
		if grown := Remembered(in, w.shard).GrownAt; grown != nil && grown.After(since) {
			since = grown.Time
		}
	}
	return since, !since.IsZero()
}

// replica says whether a member is a replica: its agent's word, else its node's.
func replica(member state.Member) bool {
	if member.Agent.Known && member.Agent.Value.Role != "" {
		return member.Agent.Value.Role == protocol.RoleReplica
	}
	return member.Record.Status.Role == string(protocol.RoleReplica)
}
