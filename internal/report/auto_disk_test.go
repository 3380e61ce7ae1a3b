package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
)

func TestFullDisksAreTold(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		edit func(*cluster.Input)
		want map[string]string
		says string
	}{
		"with automatic growth": {func(in *cluster.Input) { stuck(in, 0) }, map[string]string{"AutoExpansion": "True Expanding"}, "the volumes of shard 0 grow to 13Gi"},
		"at the largest size": {func(in *cluster.Input) {
			in.Spec.Storage.AutoExpansion.MaxSize = new(size("10Gi"))
			stuck(in, 0)
		}, map[string]string{"AutoExpansion": "False AtMaximum"}, "maxSize 10Gi is reached"},
		"without it": {
			func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); stuck(in, 0) },
			map[string]string{"AutoExpansion": "False Disabled"},
			"raise spec.storage.size, which needs no restart, or free space",
		},
		"while it grows by hand": {
			func(in *cluster.Input) {
				mode(in, v1alpha1.AutoExpansionOff)
				stuck(in, 0)
				in.Spec.Storage.Size = new(size("20Gi"))
			},
			map[string]string{"AutoExpansion": "False Disabled", "Progressing": "True VolumeExpanding"},
			"VolumeExpanding: growing from 10Gi to 20Gi",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automaticCluster()
			row.edit(&in)
			row.want["state"], row.want["StorageReady"], row.want["Degraded"] = "Degraded DiskFull", "False DiskFull", "True DiskFull"
			status := Cluster(in, verdicts(nil), nil)
			tells(t, status, row.want)
			said := condition(status, v1alpha1.ConditionStorageReady).Message
			if !strings.HasPrefix(said, "no space is left on volume valkey-prod-0-0-data of node prod-0-0, whose server writes nothing; ") || !strings.Contains(said, row.says) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// tells expects some of the conditions of a status, and its state.
func tells(t *testing.T, status v1alpha1.ValkeyClusterStatus, want map[string]string) {
	t.Helper()
	got := told(status)
	for condition, value := range want {
		if got[condition] != value {
			t.Errorf("%s is %s, want %s", condition, got[condition], value)
		}
	}
}

// An answer that is missed does not make room.
func TestAFullDiskStaysFullWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	in := automaticCluster()
	stuck(&in, 0)
	in.State.Status = Cluster(in, verdicts(nil), nil)
	in.State.Members[0].Agent.Known = false
	tells(t, Cluster(in, verdicts(nil), nil), map[string]string{"StorageReady": "False DiskFull"})
	in.State.Members[0].Agent.Known = true
	fill(&in, 0, 50)
	tells(t, Cluster(in, verdicts(nil), nil), map[string]string{"AutoExpansion": "True Expanding", "Degraded": "False Healthy"})
}

func TestUseEvents(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		before, after func(*cluster.Input)
		want          []string
	}{
		"nothing":                    {after: func(in *cluster.Input) { fill(in, 0, 60) }},
		"a volume fills up, not yet": {after: func(in *cluster.Input) { fill(in, 0, 79) }},
		"a volume fills up": {after: func(in *cluster.Input) { fill(in, 0, 85) }, want: []string{
			"DiskPressure: volume valkey-prod-0-0-data is 80% full or more",
			"VolumeExpanding: by itself: volume valkey-prod-0-0-data is 80% full or more: the volumes of shard 0 grow to 12Gi",
		}},
		"a volume fills up, and nothing grows by itself": {
			before: func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff) },
			after:  func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); fill(in, 0, 85) },
			want:   []string{"DiskPressure: volume valkey-prod-0-0-data is 80% full or more"},
		},
		"a full volume fills up more": {
			before: func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); fill(in, 0, 85) },
			after:  func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); fill(in, 0, 93) },
		},
		"a full volume empties a little and fills up again": {
			before: func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); fill(in, 0, 80) },
			after:  func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); fill(in, 0, 79) },
		},
		"both fill up at once": {
			before: func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff) },
			after:  func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); fill(in, 0, 85); fill(in, 1, 85) },
			want:   []string{"DiskPressure: volume valkey-prod-0-0-data is 80% full or more, volume valkey-prod-0-1-data is 80% full or more"},
		},
		"a server cannot write any more": {
			before: func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); fill(in, 0, 99) },
			after:  func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff); stuck(in, 0) },
			want:   []string{"DiskFull: no space is left on volume valkey-prod-0-0-data of node prod-0-0, whose server writes nothing; raise spec.storage.size, which needs no restart, or free space"},
		},
		"a larger size is recommended": {
			before: func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionRecommend); fill(in, 0, 82) },
			after: func(in *cluster.Input) {
				mode(in, v1alpha1.AutoExpansionRecommend)
				fill(in, 0, 98)
			},
			want: []string{"VolumeExpansionRecommended: volume valkey-prod-0-0-data is 80% full or more; set spec.storage.size to 13Gi"},
		},
		"a volume fills up at the largest size": {
			before: func(in *cluster.Input) { in.Spec.Storage.AutoExpansion.MaxSize = new(size("10Gi")); fill(in, 0, 79) },
			after:  func(in *cluster.Input) { in.Spec.Storage.AutoExpansion.MaxSize = new(size("10Gi")); fill(in, 0, 80) },
			want: []string{
				"DiskPressure: volume valkey-prod-0-0-data is 80% full or more",
				"AtMaximum: volume valkey-prod-0-0-data is 80% full or more, and spec.storage.autoExpansion.maxSize 10Gi is reached; raise it, or free space",
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automaticCluster()
			if row.before != nil {
				row.before(&in)
			}
			prev := Cluster(in, verdicts(nil), nil)
			in = automaticCluster()
			in.State.Status = prev
			row.after(&in)
			next := Cluster(in, verdicts(nil), nil)
			if diff := cmp.Diff(row.want, lines(ClusterEvents(prev, next))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			in.State.Status, in.State.Now = next, in.State.Now.Add(time.Second)
			if again := lines(ClusterEvents(next, Cluster(in, verdicts(nil), nil))); len(again) != 0 && !slices.ContainsFunc(again, isGrowth) {
				t.Errorf("told again: %q", again)
			}
		})
	}
}

// isGrowth is the event of the growth that follows a decision.
func isGrowth(line string) bool { return strings.HasPrefix(line, v1alpha1.ReasonVolumeExpanding) }

func lines(events []Event) []string {
	var out []string
	for _, event := range events {
		out = append(out, fmt.Sprintf("%s: %s", event.Reason, event.Message))
	}
	return out
}

// A cluster that is too large for a line a volume has lines for what is full.
func TestFullVolumesOfALargeClusterAreListed(t *testing.T) {
	t.Parallel()
	in := automaticCluster()
	mode(&in, v1alpha1.AutoExpansionOff)
	for node := 2; node < 150; node++ {
		member := in.State.Members[1]
		member.Name, member.Node = fmt.Sprintf("prod-0-%d", node), node
		in.State.Members = append(in.State.Members, member)
	}
	fill(&in, 0, 85)
	status := Cluster(in, verdicts(nil), nil)
	if listed := status.Storage.Volumes; len(listed) != 1 || listed[0].Node != "prod-0-0" || listed[0].Reason != v1alpha1.EventDiskPressure {
		t.Errorf("listed are %+v", listed)
	}
	if meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionStorageReady) {
		t.Error("a nearly full volume is no trouble with storage yet")
	}
}

// A full volume waits for no other, and may have grown by the next look: its
// growth begins with the pass that told its node.
func TestTheGrowthOfAFullVolumeBeginsAtOnce(t *testing.T) {
	t.Parallel()
	in := automaticCluster()
	mode(&in, v1alpha1.AutoExpansionOff)
	stuck(&in, 0)
	in.Spec.Storage.Size = new(size("20Gi"))
	for i := range in.State.Members {
		in.State.Members[i].Claim.Phase = corev1.ClaimBound
	}
	for what, row := range map[string]struct {
		outcome plan.Outcome
		want    bool
	}{
		"its node was told":          {plan.Outcome{{Rule: cluster.RuleSizesGiven, Done: 1}}, true},
		"its node could not be told": {plan.Outcome{{Rule: cluster.RuleSizesGiven, Err: errors.New("no")}}, false},
		"nothing was done":           {nil, false},
	} {
		if since := Cluster(in, verdicts(nil), row.outcome).Storage.ExpandingSince; (since != nil) != row.want {
			t.Errorf("%s: it began %v", what, since)
		}
	}
	fill(&in, 0, 50)
	if since := Cluster(in, verdicts(nil), plan.Outcome{{Rule: cluster.RuleSizesGiven, Done: 1}}).Storage.ExpandingSince; since != nil {
		t.Errorf("one with room, whose node was told something else, began %v", since)
	}
}
