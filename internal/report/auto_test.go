package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan/cluster"
)

// automaticCluster is a formed cluster of one shard of two members whose volumes
// of 10Gi may grow to 100Gi by themselves and are half full.
func automaticCluster() cluster.Input {
	in := settledCluster()
	in.State.Status.Formed = true
	in.Spec.Storage.Size = new(size("10Gi"))
	in.Spec.Storage.AutoExpansion = &v1alpha1.AutoExpansion{
		Mode: v1alpha1.AutoExpansionAuto, MaxSize: new(size("100Gi")), ThresholdPercent: 80, EmergencyPercent: 95,
		Increment: "20%", Cooldown: metav1.Duration{Duration: 6 * time.Hour},
	}
	for i := range in.State.Members {
		in.State.Members[i].Record.Spec.Storage.Size = new(size("10Gi"))
		enlarge(&in, i, "10Gi")
		fill(&in, i, 50)
	}
	return in
}

func enlarge(in *cluster.Input, member int, to string) {
	claim := *in.State.Members[member].Claim
	claim.Requested, claim.Capacity = size(to), size(to)
	in.State.Members[member].Claim = &claim
}

// fill has a member's agent tell twice that its volume is full to a percentage.
func fill(in *cluster.Input, member int, percent float64) {
	total := in.State.Members[member].Claim.Capacity.Value()
	used := int64(float64(total) / 100 * percent)
	tell(in, member, total, used, &protocol.Files{Log: true, UsedMemoryBytes: total})
}

func tell(in *cluster.Input, member int, total, used int64, files *protocol.Files) {
	disk := protocol.Disk{TotalBytes: total, AvailableBytes: total - used, SampledAt: in.State.Now.Add(-time.Second)}
	before := disk
	before.SampledAt = disk.SampledAt.Add(-protocol.SampleInterval)
	facts := &in.State.Members[member].Agent.Value
	facts.Disk, facts.DiskBefore, facts.Files = &disk, &before, files
}

func stuck(in *cluster.Input, member int) {
	fill(in, member, 100)
	in.State.Members[member].Agent.Value.Files.WriteFailed = true
}

func mode(in *cluster.Input, mode v1alpha1.AutoExpansionMode) {
	in.Spec.Storage.AutoExpansion.Mode = mode
}

func TestAutoExpansionCondition(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		edit func(*cluster.Input)
		want string
		says string
	}{
		"armed":     {func(*cluster.Input) {}, "True Armed", "less than 80% full; fuller ones grow, up to 100Gi"},
		"it grows":  {func(in *cluster.Input) { fill(in, 1, 85) }, "True Expanding", "volume valkey-prod-0-1-data is 80% full or more: the volumes of shard 0 grow to 12Gi"},
		"off":       {func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionOff) }, "False Disabled", "spec.storage.autoExpansion is off"},
		"ephemeral": {func(in *cluster.Input) { in.Spec.Storage = nil }, "False Disabled", "the cluster is ephemeral"},
		"at its maximum": {
			func(in *cluster.Input) { in.Spec.Storage.AutoExpansion.MaxSize = new(size("10Gi")); fill(in, 1, 85) },
			"False AtMaximum", "maxSize 10Gi is reached; raise it, or free space",
		},
		"a largest size below the size": {
			func(in *cluster.Input) { in.Spec.Storage.AutoExpansion.MaxSize = new(size("5Gi")) },
			"False AtMaximum", "maxSize 5Gi is below spec.storage.size 10Gi",
		},
		"cooling down": {
			func(in *cluster.Input) {
				in.State.Members[0].Record.Status.Storage.LastExpansionTime = new(metav1.NewTime(noon.Add(-time.Hour)))
				fill(in, 1, 85)
			}, "False Cooldown", "they grow again from " + noon.Add(5*time.Hour).Format(time.RFC3339),
		},
		"no data": {
			func(in *cluster.Input) { in.State.Members[1].Agent.Value.DiskBefore = nil },
			"False NoUsageData", "how full volume valkey-prod-0-1-data is, is not known: its agent has yet to look twice",
		},
		"a shared file system": {
			func(in *cluster.Input) { tell(in, 1, 1<<42, 1<<41, nil) },
			"False NoUsageData", "larger than the volume, so others share it",
		},
		"recommending, with room": {func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionRecommend) }, "False Recommending", "no larger size is recommended"},
		"recommending":            {func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionRecommend); fill(in, 1, 85) }, "False Recommending", "set spec.storage.size to 12Gi"},
		"recommending, and what was full has emptied": {
			func(in *cluster.Input) {
				mode(in, v1alpha1.AutoExpansionRecommend)
				in.State.Status.Storage = &v1alpha1.StorageStatus{RecommendedSize: new(size("15Gi"))}
			}, "False Recommending", "set spec.storage.size to 15Gi",
		},
		"a log is rewritten first": {
			func(in *cluster.Input) {
				tell(in, 1, 10<<30, 85<<30/10, &protocol.Files{Log: true, LogBytes: 7 << 30, LogBaseBytes: 1 << 30, NextBytes: 1 << 30, UsedMemoryBytes: 2 << 30})
				in.State.Members[1].Agent.Value.Server = protocol.ServerRunning
			}, "True Armed", "rewriting its log comes first",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automaticCluster()
			row.edit(&in)
			status := Cluster(in, verdicts(nil), nil)
			if got := told(status)[v1alpha1.ConditionAutoExpansion]; got != row.want {
				t.Errorf("it is %s, want %s", got, row.want)
			}
			if said := condition(status, v1alpha1.ConditionAutoExpansion).Message; !strings.Contains(said, row.says) {
				t.Errorf("it says %q, want %q in it", said, row.says)
			}
		})
	}
}

// What needs a person is told before what is under way.
func TestTheWorstShardIsTold(t *testing.T) {
	t.Parallel()
	growths := []cluster.ShardGrowth{{Reason: "Armed", Note: "a"}, {Reason: "Cooldown", Note: "b"}, {Reason: "AtMaximum", Note: "c"}, {Reason: "AtMaximum", Note: "d"}}
	told, found := firstGrowth(growths, "AtMaximum")
	if want := (finding{"AtMaximum", "c; the same goes for 1 more of 4 shards"}); !found || told != want {
		t.Errorf("it tells %+v", told)
	}
	if at, under := slices.Index(autoOrder, "AtMaximum"), slices.Index(autoOrder, "Expanding"); at > under {
		t.Error("what is under way comes first")
	}
}

func TestWhatAutomaticGrowthRemembers(t *testing.T) {
	t.Parallel()
	line := func(target string, ago time.Duration, emergency bool) v1alpha1.ShardStorageStatus {
		return v1alpha1.ShardStorageStatus{
			AutoTarget: new(size(target)), EffectiveSize: new(size(target)), GrownAt: new(metav1.NewTime(noon.Add(-ago))), Emergency: emergency,
		}
	}
	before := func(lines ...v1alpha1.ShardStorageStatus) func(*cluster.Input) {
		return func(in *cluster.Input) {
			in.State.Status.Storage = &v1alpha1.StorageStatus{Shards: lines}
			for i := range in.State.Members {
				enlarge(in, i, lines[0].AutoTarget.String())
				fill(in, i, 50)
			}
		}
	}
	for what, row := range map[string]struct {
		edit func(*cluster.Input)
		want []v1alpha1.ShardStorageStatus
	}{
		"nothing":                    {func(*cluster.Input) {}, nil},
		"a size that it decides now": {func(in *cluster.Input) { fill(in, 0, 90) }, []v1alpha1.ShardStorageStatus{line("12Gi", 0, false)}},
		"a size that it decides within the cooldown": {func(in *cluster.Input) {
			in.State.Members[0].Record.Status.Storage.LastExpansionTime = new(metav1.NewTime(noon.Add(-time.Hour)))
			fill(in, 0, 96)
		}, []v1alpha1.ShardStorageStatus{line("13Gi", 0, true)}},
		"a size that it decided before":            {before(line("12Gi", time.Hour, false)), []v1alpha1.ShardStorageStatus{line("12Gi", time.Hour, false)}},
		"an emergency, until the cooldown is over": {before(line("12Gi", time.Hour, true)), []v1alpha1.ShardStorageStatus{line("12Gi", time.Hour, true)}},
		"no emergency after the cooldown":          {before(line("12Gi", 7*time.Hour, true)), []v1alpha1.ShardStorageStatus{line("12Gi", 7*time.Hour, false)}},
		"its sizes when it is turned off": {func(in *cluster.Input) {
			before(line("12Gi", time.Hour, false))(in)
			mode(in, v1alpha1.AutoExpansionOff)
		}, []v1alpha1.ShardStorageStatus{line("12Gi", time.Hour, false)}},
		"none but the largest when that was lowered": {func(in *cluster.Input) {
			before(line("20Gi", time.Hour, false))(in)
			in.Spec.Storage.AutoExpansion.MaxSize = new(size("15Gi"))
		}, []v1alpha1.ShardStorageStatus{{AutoTarget: new(size("20Gi")), EffectiveSize: new(size("15Gi")), GrownAt: new(metav1.NewTime(noon.Add(-time.Hour)))}}},
		"its size beside a larger one of the spec": {func(in *cluster.Input) {
			before(line("12Gi", time.Hour, false))(in)
			in.Spec.Storage.Size = new(size("20Gi"))
		}, []v1alpha1.ShardStorageStatus{{AutoTarget: new(size("12Gi")), GrownAt: new(metav1.NewTime(noon.Add(-time.Hour)))}}},
		"nothing of what it only recommends": {func(in *cluster.Input) { mode(in, v1alpha1.AutoExpansionRecommend); fill(in, 0, 90) }, nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automaticCluster()
			row.edit(&in)
			status := Cluster(in, verdicts(nil), nil)
			if diff := cmp.Diff(row.want, status.Storage.Shards, sameQuantity); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			in.State.Status = status
			if diff := cmp.Diff(status, Cluster(in, verdicts(nil), nil), sameQuantity); diff != "" {
				// A decision is followed by the growth itself, and nothing else by anything.
				if len(row.want) == 0 || !row.want[0].GrownAt.Time.Equal(noon) {
					t.Errorf("it changes by itself (-first +second):\n%s", diff)
				}
			}
		})
	}
}

func TestRecommendedSize(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		before, spec string
		percent      float64
		mode         v1alpha1.AutoExpansionMode
		want         string
	}{
		"none while there is room":                 {"", "10Gi", 50, v1alpha1.AutoExpansionRecommend, ""},
		"one when a volume is nearly full":         {"", "10Gi", 85, v1alpha1.AutoExpansionRecommend, "12Gi"},
		"the same while it is":                     {"12Gi", "10Gi", 86, v1alpha1.AutoExpansionRecommend, "12Gi"},
		"more when more is needed":                 {"12Gi", "10Gi", 99, v1alpha1.AutoExpansionRecommend, "13Gi"},
		"the same when it has emptied":             {"12Gi", "10Gi", 20, v1alpha1.AutoExpansionRecommend, "12Gi"},
		"none when the spec has it":                {"12Gi", "12Gi", 50, v1alpha1.AutoExpansionRecommend, ""},
		"none when nobody is to be recommended to": {"12Gi", "10Gi", 50, v1alpha1.AutoExpansionAuto, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := automaticCluster()
			mode(&in, row.mode)
			in.Spec.Storage.Size = new(size(row.spec))
			if row.before != "" {
				in.State.Status.Storage = &v1alpha1.StorageStatus{RecommendedSize: new(size(row.before))}
			}
			fill(&in, 0, row.percent)
			got := ""
			if recommended := Cluster(in, verdicts(nil), nil).Storage.RecommendedSize; recommended != nil {
				got = recommended.String()
			}
			if got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
}

func TestAllConfigurationWarningsAreTold(t *testing.T) {
	t.Parallel()
	in := automaticCluster()
	in.Spec.Users = nil
	in.Spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": "50gb"}
	warning := condition(Cluster(in, verdicts(nil), nil), v1alpha1.ConditionConfigurationWarning)
	if warning.Reason != v1alpha1.ReasonVolumeSmallForMaxmemory {
		t.Errorf("the reason is %s", warning.Reason)
	}
	for _, part := range []string{"spec.config.maxmemory lets a server fill 125Gi", "DefaultUserOpen: ", "NoAutomaticFailover: "} {
		if !strings.Contains(warning.Message, part) {
			t.Errorf("%q is not in %q", part, warning.Message)
		}
	}
}
