package v1alpha1_test

import "testing"

// Values that the schema knows, and such as it does not.
func TestPlacementValues(t *testing.T) {
	t.Parallel()
	for field, row := range map[string]struct {
		one               string // a spec with %s for the value
		accepted, refused []string
	}{
		"spec.scheduling.node.spread.shard": {
			one:      `{shards: 3, scheduling: {node: {spread: {shard: %s}}}}`,
			accepted: []string{"Disabled", "Preferred", "Required"},
			refused:  []string{"preferred", `""`, "Always", "true"},
		},
		"spec.scheduling.zone.spread.shard": {
			one:      `{shards: 3, scheduling: {zone: {spread: {shard: %s}}}}`,
			accepted: []string{"Disabled", "Preferred", "Required"},
			refused:  []string{"none", "3"},
		},
		"spec.podDisruptionBudget.mode": {
			one:      `{shards: 3, podDisruptionBudget: {mode: %s}}`,
			accepted: []string{"Cluster", "Disabled"},
			refused:  []string{"Shard", `"Off"`, "false"},
		},
		"spec.terminationGracePeriodSeconds": {
			one:      `{shards: 3, terminationGracePeriodSeconds: %s}`,
			accepted: []string{"30", "60", "3600"},
			refused:  []string{"0", "29", "3601", "-1", `"60"`, "60.5"},
		},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			for _, try := range each(row.one, row.accepted) {
				wantAccepted(t, write(t, "ValkeyCluster", try))
			}
			for _, try := range each(row.one, row.refused) {
				t.Logf("%+v", try)
				wantRefusal(t, write(t, "ValkeyCluster", try), field)
			}
		})
	}
}
