package cluster

import (
	"strings"
	"testing"

	"valkey.io/valkey-operator/api/v1alpha1"
)

func TestCrowdedShards(t *testing.T) {
	t.Parallel()
	// placed puts the members of two shards, of a primary and a replica each, on workers.
	placed := func(workers ...string) func(*Input) {
		return func(in *Input) {
			for i, worker := range workers {
				in.State.Members[i].Pods[0].Worker = worker
			}
		}
	}
	spread := func(mode v1alpha1.SpreadMode) *v1alpha1.Scheduling {
		return &v1alpha1.Scheduling{Node: v1alpha1.Placement{Spread: v1alpha1.Spread{Shard: mode}}}
	}
	for what, row := range map[string]struct {
		spec v1alpha1.ValkeyClusterSpec
		edit func(*Input)
		want string // empty: no shard is crowded
	}{
		"every shard is spread":   {edit: placed("a", "b", "b", "c")},
		"one shard is on one":     {edit: placed("a", "a", "b", "c"), want: "shard 0 on worker a"},
		"all are on one":          {edit: placed("a", "a", "a", "a"), want: "shard 0 on worker a, shard 1 on worker a"},
		"a worker is not known":   {edit: placed("a", "", "b", "c")},
		"no worker is known":      {edit: placed("", "", "", "")},
		"without replicas":        {spec: ephemeral(4, 0), edit: placed("a", "a", "a", "a")},
		"two of three share one":  {spec: ephemeral(1, 2), edit: placed("a", "a", "b")},
		"all of three share one":  {spec: ephemeral(1, 2), edit: placed("a", "a", "a"), want: "shard 0 on worker a"},
		"a pod is missing":        {edit: func(in *Input) { placed("a", "a", "b", "c")(in); in.State.Members[1].Pods = nil }},
		"a pod is on its way out": {edit: func(in *Input) { placed("a", "a", "b", "c")(in); in.State.Members[1].Pods[0].Terminating = true }},
		"nobody cares": {edit: func(in *Input) {
			placed("a", "a", "a", "a")(in)
			in.Spec.Scheduling = spread(v1alpha1.SpreadDisabled)
		}},
		"it was placed before it had to be spread": {edit: func(in *Input) {
			placed("a", "a", "b", "c")(in)
			in.Spec.Scheduling = spread(v1alpha1.SpreadRequired)
		}, want: "shard 0 on worker a"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if row.spec.Shards == 0 {
				row.spec = persistent(2, 1)
			}
			in := freshBench(row.spec, 1).input()
			row.edit(&in)
			note, crowded := CrowdedShards(in)
			if crowded != (row.want != "") || !strings.Contains(note, ": "+row.want+"; ") && crowded {
				t.Errorf("crowded: %t, want %q: %s", crowded, row.want, note)
			}
		})
	}
}
