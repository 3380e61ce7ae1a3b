package stage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"valkey.io/valkey-operator/lab/ledger"
)

func TestAToolKeepsAwayFromAWorker(t *testing.T) {
	t.Parallel()
	for worker, want := range map[string][]string{"": nil, "n2": {"n2"}} {
		var affinity corev1.Affinity
		if err := yaml.UnmarshalStrict([]byte(affinityAway(worker)), &affinity); err != nil {
			t.Fatal(err)
		}
		var away []string
		if node := affinity.NodeAffinity; node != nil {
			rule := node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
			if rule.Key != corev1.LabelHostname || rule.Operator != corev1.NodeSelectorOpNotIn {
				t.Errorf("the rule is %v", rule)
			}
			away = rule.Values
		}
		if diff := cmp.Diff(want, away); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheEpochIsTheHighestThatAServerKnows(t *testing.T) {
	t.Parallel()
	m := Members{"0-0": {Server: ledger.Node{Epoch: 4}}, "0-1": {Server: ledger.Node{Epoch: 7}}, "1-0": {}}
	if got := m.Epoch(); got != 7 {
		t.Errorf("the epoch is %d, want 7", got)
	}
}

func TestStallsAreToldByShard(t *testing.T) {
	t.Parallel()
	r := ledger.Report{Shards: []*ledger.Shard{
		{Slots: "0-8191", Gap: ledger.Gap{Seconds: 0.25}}, {Slots: "8192-16383", Gap: ledger.Gap{Seconds: 1.5}},
	}}
	if got, want := stalls(r), "0.25 s (slots 0-8191), 1.50 s (slots 8192-16383)"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := LongestStall(r); got != 1.5 {
		t.Errorf("the longest is %v s", got)
	}
}
