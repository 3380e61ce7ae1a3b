package build_test

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"valkey.io/valkey-operator/internal/build"
)

func TestGraceSeconds(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct{ save, want int64 }{
		"nothing was saved yet":          {0, 60},
		"as long as the least holds":     {22, 60},
		"a second more":                  {23, 120},
		"it is a whole number of steps":  {60, 180},
		"so long that waiting is no use": {100000, 600},
	} {
		if got := build.GraceSeconds(row.save); got != row.want {
			t.Errorf("%s: %d s, want %d", what, got, row.want)
		}
	}
}

// What the user says wins; else the member's own measure does.
func TestGracePeriodOfAPod(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		asked          *int64
		measured, want int64
	}{
		"nothing is known":     {nil, 0, 60},
		"measured":             {nil, 180, 180},
		"the user says less":   {new(int64(30)), 180, 30},
		"the user says more":   {new(int64(900)), 180, 900},
		"nothing but the user": {new(int64(45)), 0, 45},
	} {
		member := persistent()
		member.Spec.Template.TerminationGracePeriodSeconds, member.GraceSeconds = row.asked, row.measured
		if got := graceOf(t, build.Workload(member)); got != row.want {
			t.Errorf("%s: %d s, want %d", what, got, row.want)
		}
	}
}

// graceOf is what a workload gives its pod.
func graceOf(t *testing.T, workload any) int64 {
	t.Helper()
	text, err := json.Marshal(workload)
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.StatefulSet
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	return *set.Spec.Template.Spec.TerminationGracePeriodSeconds
}
