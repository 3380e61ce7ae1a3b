package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/plan"
)

func TestAPassKnowsHowLongItsPlanHasBeenTheSame(t *testing.T) {
	t.Parallel()
	waits := func(note string) plan.Plan {
		return plan.Plan{{Track: "members", Rule: "membersAnswer", Verdict: plan.Verdict{Hold: plan.Wait, Note: note}}}
	}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	prod := client.ObjectKey{Namespace: "shop", Name: "prod"}
	var passes passLog
	var got []time.Duration
	for i, made := range []plan.Plan{waits("a"), waits("a"), waits("a"), waits("b"), waits("b")} {
		got = append(got, passes.write(t.Context(), prod, made, noon.Add(time.Duration(i)*time.Minute)))
	}
	passes.write(t.Context(), client.ObjectKey{Namespace: "shop", Name: "other"}, waits("c"), noon)
	passes.forget(prod)
	got = append(got, passes.write(t.Context(), prod, waits("b"), noon.Add(time.Hour)))
	want := []time.Duration{0, time.Minute, 2 * time.Minute, 0, time.Minute, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
