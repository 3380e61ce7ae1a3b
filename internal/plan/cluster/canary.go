package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/volume"
)

const (
	// canaryPatience: how long the first volume of a growth holds the others.
	// Answers about the class, the size or the quota come within seconds, or the
	// driver is merely slow.
	canaryPatience = 10 * time.Second
	// defaultParallel is the default of spec.storage.expansion.maxParallel.
	defaultParallel = 10
)

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
		verdict := w.possible(in)
		if verdict.Hold == plan.Settled {
			verdict = w.step(in, max(free, 0))
		}
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
