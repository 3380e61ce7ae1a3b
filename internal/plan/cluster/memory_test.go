package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// limits are a server's resources with a memory limit.
func limits(memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

// using is a member's server that uses some memory.
func using(member *state.Member, bytes int64) {
	member.Server = state.Seen(valkey.View{Info: valkey.Info{Memory: valkey.MemoryInfo{Used: bytes}}})
}

func TestMemoryHoldsData(t *testing.T) {
	t.Parallel()
	const mebi = 1 << 20
	silent := func(in *Input) {
		for i := range in.State.Members {
			in.State.Members[i].Server = state.Unknown[valkey.View]("silent")
		}
	}
	limited := func(in *Input) {
		silent(in)
		in.Spec.Resources = limits("64Mi")
		using(&in.State.Members[0], 20*mebi)
	}
	refused := []string{"blocked MemoryBelowData"}
	judge(t, memoryHoldsData, map[string]row{
		"no limit":                         {edit: func(in *Input) { using(&in.State.Members[0], 1000*mebi) }, want: []string{"settled"}},
		"a limit with room":                {edit: limited, want: []string{"settled"}},
		"a limit below the data":           {edit: func(in *Input) { limited(in); using(&in.State.Members[1], 65*mebi) }, want: refused},
		"a limit that the data just fills": {edit: func(in *Input) { limited(in); using(&in.State.Members[1], 64*mebi) }, want: refused},
		"a server is silent, its agent knows": {edit: func(in *Input) {
			limited(in)
			in.State.Members[1].Agent = state.Seen(protocol.Facts{Files: &protocol.Files{UsedMemoryBytes: 65 * mebi}})
		}, want: refused},
		"nothing is known": {edit: func(in *Input) { limited(in); silent(in) }, want: []string{"settled"}},
		"the limit is in force, and refusing it would help nobody": {edit: func(in *Input) {
			limited(in)
			using(&in.State.Members[1], 65*mebi)
			for i := range in.State.Members {
				in.State.Members[i].Record.Spec.Template.Resources = limits("65536Ki")
			}
		}, want: []string{"settled"}},
		"one member has not got it yet": {edit: func(in *Input) {
			limited(in)
			using(&in.State.Members[1], 65*mebi)
			in.State.Members[0].Record.Spec.Template.Resources = limits("64Mi")
			in.State.Members[1].Record.Spec.Template.Resources = limits("128Mi")
		}, want: refused},
		"only another setting changes": {edit: func(in *Input) {
			using(&in.State.Members[0], 1000*mebi)
			in.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
		}, want: []string{"settled"}},
	})
}

// What is told stays the same while the data grows.
func TestMemoryBelowDataIsToldOnce(t *testing.T) {
	t.Parallel()
	in := freshBench(persistent(1, 1), 1).input()
	in.Spec.Resources = limits("1Mi")
	using(&in.State.Members[0], 2<<20)
	first := memoryHoldsData(in)
	using(&in.State.Members[0], 3<<20)
	if second := memoryHoldsData(in); first.Note != second.Note || first.Note == "" {
		t.Errorf("told first: %s\nthen: %s", first.Note, second.Note)
	}
}

func TestMemoryAdvice(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		limit, maxmemory string
		warned           bool
	}{
		"no limit":                   {"", "1gb", false},
		"no maxmemory":               {"1Gi", "", false},
		"maxmemory below the limit":  {"1Gi", "800mb", false},
		"maxmemory above the limit":  {"1Gi", "2gb", true},
		"maxmemory is off":           {"1Gi", "0", false},
		"neither":                    {"", "", false},
		"the two are written alike":  {"1Gi", "1gb", false},
		"by the difference of units": {"1G", "1gb", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := freshBench(persistent(1, 1), 1).input()
			if row.limit != "" {
				in.Spec.Resources = limits(row.limit)
			}
			if row.maxmemory != "" {
				in.Spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": v1alpha1.ConfigValue(row.maxmemory)}
			}
			advice, warned := MemoryAdvice(in)
			if warned != row.warned {
				t.Errorf("warned: %t, want %t (%s)", warned, row.warned, advice)
			}
			if warned && !strings.Contains(advice, row.limit) {
				t.Errorf("the limit is not named: %s", advice)
			}
		})
	}
}
