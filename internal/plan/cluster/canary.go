package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/volume"
	"valkey.io/valkey-operator/internal/state"
)

const (
	// canaryPatience: how long the first volume of a growth holds the others.
	// Answers about the class, the size or the quota come within seconds, or the
	// driver is merely slow.
	canaryPatience = 10 * time.Second
	// defaultParallel is the default of spec.storage.expansion.maxParallel.
	defaultParallel = 10
	// fullPercent: a volume as full as that waits for nobody.
	fullPercent = 95
)

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
	if storage := in.State.Status.Storage; storage != nil && storage.ExpandingSince != nil {
		e.Since = storage.ExpandingSince.Time
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
	return !full(member) || class.Known && !class.Value.Expandable || in.infeasible(size)
}

// infeasible says whether a driver is known to refuse a size, or a smaller one, for
// good: not even a full volume is asked for that in vain.
func (in Input) infeasible(size resource.Quantity) bool {
	return slices.ContainsFunc(in.recorded(), func(member state.Member) bool {
		if member.Claim == nil {
			return false
		}
		refused, _, infeasible := volume.InfeasibleSize(*member.Claim)
		return infeasible && refused.Cmp(size) <= 0
	})
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

// sizesCurrent: every ValkeyNode asks for the size that its volume shall have. A
// growth begins with one volume, so that an answer about the class, the size or
// the quota concerns one and not all; the others follow, a bounded number at a
// time. Nobody's health matters: a full disk is when members are unwell.
func sizesCurrent(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) {
		return settled()
	}
	sum := settled()
	free := in.parallel() - in.busy()
	for _, w := range in.waves() {
		verdict := w.step(in, max(free, 0))
		free -= len(verdict.Actions)
		sum = joined(sum, verdict)
	}
	return sum
}

// joined is two verdicts as one: the graver one has the word.
func joined(a, b plan.Verdict) plan.Verdict {
	first, second := a, b
	if b.Hold > a.Hold || a.Note == "" {
		first, second = b, a
	}
	first.Trials = append(slices.Clone(a.Trials), b.Trials...)
	first.Actions = append(slices.Clone(a.Actions), b.Actions...)
	if first.Look == 0 || second.Look > 0 && second.Look < first.Look {
		first.Look = second.Look
	}
	return first
}

// parallel is how many volumes the driver is asked to grow at a time.
func (in Input) parallel() int {
	if most := int(in.Spec.Storage.Expansion.MaxParallel); most > 0 {
		return most
	}
	return defaultParallel
}

// busy is how many volumes the driver is being asked to grow. One with trouble
// of its own does not count: it may have it for long.
func (in Input) busy() int {
	busy := 0
	for _, member := range in.recorded() {
		size := member.Record.Spec.Storage.Size
		if size == nil || member.Claim == nil {
			continue
		}
		g := grower{Member: member, want: *size, standing: volume.Classify(in.evidence(member, *size))}
		if g.inController() && !g.refused() {
			busy++
		}
	}
	return busy
}

// inController says whether the driver is, or is about to be, asked to grow the
// volume, and nothing is wrong.
func (g grower) inController() bool {
	phase := g.standing.Phase
	return g.standing.Reason == v1alpha1.ReasonVolumeExpanding &&
		(phase == v1alpha1.StorageRequesting || phase == v1alpha1.StorageControllerResizing)
}

// refused says whether the answer to a member's growth holds for every other
// volume as well: one about the class, the size or the quota.
func (g grower) refused() bool {
	switch g.standing.Phase {
	case v1alpha1.StorageRejected, v1alpha1.StorageInfeasibleController:
		return g.standing.Hold == plan.Blocked
	case v1alpha1.StorageRequesting:
		_, refused := g.refusal()
		return refused
	default:
		return false
	}
}

// refusal is what the API server said to the member's node, as far as it is
// about the size that the node asks for now.
func (g grower) refusal() (metav1.Condition, bool) {
	told := meta.FindStatusCondition(g.Record.Status.Conditions, v1alpha1.ConditionStorageReady)
	if told == nil || told.Status != metav1.ConditionFalse || told.ObservedGeneration != g.Record.Generation {
		return metav1.Condition{}, false
	}
	return *told, slices.Contains([]string{
		v1alpha1.ReasonStorageClassNotExpandable, v1alpha1.ReasonQuotaExceeded,
		v1alpha1.ReasonLimitRangeExceeded, v1alpha1.ReasonExpansionRefused,
	}, told.Reason)
}

// answer is the reason and the words of a refusal.
func (g grower) answer() (reason, note string) {
	if told, refused := g.refusal(); refused && g.standing.Phase == v1alpha1.StorageRequesting {
		return told.Reason, told.Message
	}
	return g.standing.Reason, g.standing.Note
}

// step takes a wave one step further: its first volume, or as many of the rest
// as may grow beside those that do.
func (w *wave) step(in Input, free int) plan.Verdict {
	if len(w.told) == 0 {
		return w.begin(in)
	}
	for _, g := range w.told {
		if g.refused() {
			reason, note := g.answer()
			return plan.Verdict{
				Hold: plan.Blocked, Reason: reason, Look: plan.LookWorld,
				Note: fmt.Sprintf("%s; the other %d volumes were left alone", note, len(w.waiting)),
			}
		}
	}
	if left := w.heldFor(in); left > 0 {
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding, Look: left,
			Note: fmt.Sprintf("%d volumes wait until the driver has answered for the first one", len(w.waiting)),
		}
	}
	next := w.waiting[:min(free, len(w.waiting))]
	if len(next) > 0 {
		return w.give(in, next)
	}
	return plan.Verdict{
		Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld,
		Note: fmt.Sprintf("%d volumes wait until one of the %d that grow at a time has grown", len(w.waiting), in.parallel()),
	}
}

// begin tries all claims of a wave and, if none is refused, tells the canary: the
// fullest replica's volume, or the fullest where there is no replica.
func (w *wave) begin(in Input) plan.Verdict {
	canary := w.waiting[0]
	if i := slices.IndexFunc(w.waiting, func(g grower) bool { return replica(g.Member) }); i >= 0 {
		canary = w.waiting[i]
	}
	verdict := w.give(in, []grower{canary})
	verdict.Note = fmt.Sprintf("volume %s grows to %s, and %d more follow", canary.Claim.Name, w.size.String(), len(w.waiting)-1)
	for _, g := range w.waiting {
		if g.Claim.Requested.Cmp(g.want) < 0 {
			verdict.Trials = append(verdict.Trials, plan.TryExpandClaim{
				Claim: g.Claim.Name, Version: g.Claim.Version, From: g.Claim.Requested, To: g.want,
			})
		}
	}
	return verdict
}

func (w *wave) give(in Input, to []grower) plan.Verdict {
	var names []string
	verdict := plan.Verdict{Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld}
	for _, g := range to {
		verdict.Actions = append(verdict.Actions, ensureSize(in.build(), g.Member, g.want))
		names = append(names, g.Claim.Name)
	}
	verdict.Note = fmt.Sprintf("volumes grow to %s: %s", w.size.String(), strings.Join(bounded(names), ", "))
	return verdict
}

// heldFor is for how long the first volumes of a wave hold the others yet: until
// one has passed the driver, or has trouble of its own, or has had its time.
func (w *wave) heldFor(in Input) time.Duration {
	if slices.ContainsFunc(w.told, func(g grower) bool { return !g.inController() }) {
		return 0
	}
	since, known := w.since(in)
	if !known {
		return canaryPatience // the status is about to say
	}
	return max(0, canaryPatience-in.State.Now.Sub(since))
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
