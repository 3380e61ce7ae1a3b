package cluster

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/volume"
	"valkey.io/valkey-operator/internal/state"
)

// Names of rules that others look up in a plan.
const (
	RuleSizesGiven     = "sizesGiven"
	RuleGrowthPossible = "growthPossible"
	RuleSizesCurrent   = "sizesCurrent"
)

// growthPossible: nothing that is known stands in the way of a growth that is
// about to begin. It is found out before any volume is touched, and for all
// volumes together. What is not known stops nothing: the API server knows. Of
// several growths, one that is not possible does not hold the others.
func growthPossible(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) {
		return settled()
	}
	first := settled()
	for _, w := range in.waves() {
		verdict := w.possible(in)
		if verdict.Hold == plan.Settled {
			return settled()
		}
		if first.Hold == plan.Settled {
			first = verdict
		}
	}
	return first
}

// RefusedGrowth is why the first growth that is not possible is not, and whether
// there is one.
func RefusedGrowth(in Input) (plan.Verdict, bool) {
	for _, w := range in.waves() {
		if verdict := w.possible(in); verdict.Hold != plan.Settled {
			return verdict, true
		}
	}
	return settled(), false
}

// possible says what is known to stand in a wave's way.
func (w *wave) possible(in Input) plan.Verdict {
	judges := []func(Input, *wave) plan.Verdict{classGrows}
	if len(w.told) == 0 {
		judges = append(judges, notRefusedLately, limitsAllow, quotasAllow)
	}
	for _, judge := range judges {
		if verdict := judge(in, w); verdict.Hold != plan.Settled {
			return verdict
		}
	}
	return settled()
}

func blockedGrowth(reason, format string, args ...any) plan.Verdict {
	return plan.Verdict{
		Hold: plan.Blocked, Reason: reason, Look: plan.RefusalPatience,
		Note: fmt.Sprintf(format, args...) + "; " + untouchedNote,
	}
}

// classGrows: the classes of the claims exist and allow expansion, as far as is
// known.
func classGrows(in Input, w *wave) plan.Verdict {
	for _, g := range w.waiting {
		class := in.State.Class(g.Claim.ClassName)
		switch {
		case !class.Known || class.Value.Expandable:
		case !class.Value.Exists:
			return blockedGrowth(v1alpha1.ReasonStorageClassMissing,
				"volume %s cannot grow to %s: its StorageClass %s does not exist any more; create it again with allowVolumeExpansion: true, or set spec.storage.size back",
				g.Claim.Name, w.size.String(), g.Claim.ClassName)
		default:
			return blockedGrowth(v1alpha1.ReasonStorageClassNotExpandable,
				"volume %s cannot grow to %s: %s", g.Claim.Name, w.size.String(), volume.NotExpandable(class.Value))
		}
	}
	return settled()
}

// notRefusedLately: the API server did not refuse a trial of this size a moment
// ago, unless it was for the class and the class was mended.
func notRefusedLately(in Input, w *wave) plan.Verdict {
	refusal := in.State.Refusal
	if refusal == nil || refusal.Size.Cmp(w.size) != 0 {
		return settled()
	}
	left := plan.RefusalPatience - in.State.Now.Sub(refusal.At)
	class := in.State.Class(w.waiting[0].Claim.ClassName)
	mended := refusal.Reason == v1alpha1.ReasonStorageClassNotExpandable && class.Known && class.Value.Expandable
	if left <= 0 || mended {
		return settled()
	}
	return plan.Verdict{Hold: plan.Blocked, Reason: refusal.Reason, Note: RefusalNote(*refusal), Look: left}
}

// RefusalNote tells what the API server said to a trial.
func RefusalNote(refusal state.Refusal) string {
	return fmt.Sprintf("volumes cannot grow to %s: %s; %s", refusal.Size.String(), refusal.Message, untouchedNote)
}

const untouchedNote = "no volume was touched"

// limitsAllow: no LimitRange forbids a claim of the size.
func limitsAllow(in Input, w *wave) plan.Verdict {
	for _, limit := range in.State.Limits.Value {
		if in.State.Limits.Known && w.size.Cmp(limit.Max) > 0 {
			return blockedGrowth(v1alpha1.ReasonLimitRangeExceeded,
				"volumes cannot grow to %s: LimitRange %s lets a claim ask for %s at most; raise it, or set spec.storage.size to no more than that",
				w.size.String(), limit.Name, limit.Max.String())
		}
	}
	return settled()
}

// quotasAllow: every quota has room for what all volumes of the cluster have yet
// to ask for. The API server reckons one claim at a time: some would grow and
// others be refused.
func quotasAllow(in Input, w *wave) plan.Verdict {
	for _, quota := range in.State.Quotas.Value {
		more, count := in.missing(quota.Class)
		if !in.State.Quotas.Known || count == 0 || more.Cmp(quota.Left) <= 0 {
			continue
		}
		short, counted := more.DeepCopy(), "requests.storage"
		short.Sub(quota.Left)
		if quota.Class != "" {
			counted = quota.Class + ".storageclass.storage.k8s.io/requests.storage"
		}
		return blockedGrowth(v1alpha1.ReasonQuotaExceeded,
			"%d volumes that grow to %s ask for %s more, and ResourceQuota %s leaves %s: raise its %s by %s, or set spec.storage.size back",
			count, w.size.String(), more.String(), quota.Name, quota.Left.String(), counted, short.String())
	}
	return settled()
}

// missing is what the claims of a class, or of all when that is empty, have yet
// to ask for, and how many claims. A quota counts what a claim asks for or was
// given, whichever is more.
func (in Input) missing(class string) (more resource.Quantity, count int) {
	for _, member := range in.recorded() {
		claim := member.Claim
		if claim == nil || class != "" && claim.ClassName != class {
			continue
		}
		counted, want := claim.Requested, in.target(member)
		if claim.Allocated.Cmp(counted) > 0 {
			counted = claim.Allocated
		}
		if want.Cmp(counted) > 0 && want.Cmp(claim.Capacity) > 0 {
			want.Sub(counted)
			more.Add(want)
			count++
		}
	}
	return more, count
}

// RefusalIn is the API server's no to a trial in an outcome, with the size that
// was tried.
func RefusalIn(o plan.Outcome) (state.Refusal, bool) {
	result, acted := o.Of(RuleSizesCurrent)
	var refusal *plan.Refusal
	if !acted || !errors.As(result.Err, &refusal) {
		return state.Refusal{}, false
	}
	tried, is := result.At.(plan.TryExpandClaim)
	if !is {
		return state.Refusal{}, false
	}
	return state.Refusal{Size: tried.To, Reason: refusal.Reason, Message: refusal.Message}, true
}
