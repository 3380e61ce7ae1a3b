package controller

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

// series are what the registry shows of a cluster: names with the labels that
// are not the same for all, and values; of a histogram, the sum.
func series(t *testing.T, clusterName string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			ours, words := false, []string{strings.TrimPrefix(family.GetName(), "valkey_")}
			for _, label := range metric.GetLabel() {
				switch label.GetName() {
				case "cluster":
					ours = label.GetValue() == clusterName
				case "namespace":
				default:
					words = append(words, label.GetValue())
				}
			}
			if ours {
				found[strings.Join(words, " ")] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return found
}

func named(clusterName string, storage *v1alpha1.StorageStatus) *v1alpha1.ValkeyCluster {
	return &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: clusterName},
		Status:     v1alpha1.ValkeyClusterStatus{Storage: storage},
	}
}

func volume(node string, grownAt *metav1.Time) v1alpha1.VolumeStatus {
	return v1alpha1.VolumeStatus{
		Node: node, Phase: v1alpha1.StorageSatisfied, UsedPercent: new(int32(35)), LastExpansionTime: grownAt,
		Requested: new(resource.MustParse("1Ki")), Capacity: new(resource.MustParse("2Ki")),
	}
}

func TestVolumesAreShownUntilTheyAreGone(t *testing.T) {
	t.Parallel()
	const cluster = "shown"
	next := v1alpha1.ValkeyClusterStatus{
		Storage:    &v1alpha1.StorageStatus{Volumes: []v1alpha1.VolumeStatus{volume("a", nil), volume("b", nil)}},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Forming"}},
	}
	recordCluster(named(cluster, nil), next)
	of := func(node string) map[string]float64 {
		return map[string]float64{
			"volume_requested_bytes " + node: 1024, "volume_capacity_bytes " + node: 2048, "volume_used_ratio " + node: 0.35, "volume_phase " + node + " Satisfied": 1,
		}
	}
	want := map[string]float64{"cluster_condition Ready": 0, "cluster_reason Forming False Ready": 1}
	maps.Copy(want, of("a"))
	both := maps.Clone(want)
	maps.Copy(both, of("b"))
	if diff := cmp.Diff(both, series(t, cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	next.Storage.Volumes = next.Storage.Volumes[:1]
	recordCluster(named(cluster, nil), next)
	if diff := cmp.Diff(want, series(t, cluster)); diff != "" {
		t.Errorf("without the other one (-want +got):\n%s", diff)
	}
	next.Conditions[0].Status, next.Conditions[0].Reason = metav1.ConditionTrue, "Healthy"
	recordCluster(named(cluster, nil), next)
	if got := series(t, cluster); got["cluster_reason Healthy True Ready"] != 1 || got["cluster_condition Ready"] != 1 {
		t.Errorf("with another reason: %v", got)
	} else if _, stays := got["cluster_reason Forming False Ready"]; stays {
		t.Error("the reason of before is still shown")
	}
	forgetCluster(client.ObjectKey{Namespace: "shop", Name: cluster})
	if got := series(t, cluster); len(got) != 0 {
		t.Errorf("of a cluster that is gone there is %v", got)
	}
}

func TestUseIsShownWhileItIsTold(t *testing.T) {
	t.Parallel()
	const cluster = "used"
	seen := state.Cluster{Namespace: "shop", Name: cluster, Members: []state.Member{{
		Name: "a", Claim: &state.Claim{}, Agent: state.Seen(protocol.Facts{
			Disk:  &protocol.Disk{TotalBytes: 1000, AvailableBytes: 250, TotalInodes: 100, FreeInodes: 75},
			Files: &protocol.Files{GrowthBytes: 500},
		}),
	}, {Name: "ephemeral", Agent: state.Seen(protocol.Facts{Disk: &protocol.Disk{TotalBytes: 1000}})}}}
	want := map[string]float64{
		"volume_used_bytes a": 750, "volume_available_bytes a": 250, "volume_inodes_used_ratio a": 0.25, "volume_full_in_seconds a": 1800,
	}
	recordUse(seen)
	if diff := cmp.Diff(want, series(t, cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	seen.Members[0].Agent.Value.Files, seen.Members[0].Agent.Value.Disk.TotalInodes = nil, 0
	delete(want, "volume_full_in_seconds a")
	delete(want, "volume_inodes_used_ratio a")
	recordUse(seen)
	if diff := cmp.Diff(want, series(t, cluster)); diff != "" {
		t.Errorf("without a prediction (-want +got):\n%s", diff)
	}
	seen.Members[0].Agent.Known = false
	recordUse(seen)
	if got := series(t, cluster); len(got) != 0 {
		t.Errorf("of a silent agent there is %v", got)
	}
	seen.Members[0].Agent.Known = true
	recordUse(seen)
	forgetCluster(client.ObjectKey{Namespace: "shop", Name: cluster})
	if got := series(t, cluster); len(got) != 0 {
		t.Errorf("of a cluster that is gone there is %v", got)
	}
}

func TestGrowthsAreCounted(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(minute int) *metav1.Time {
		return new(metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)))
	}
	decided := func(minute int, emergency bool) []v1alpha1.ShardStorageStatus {
		return []v1alpha1.ShardStorageStatus{{GrownAt: at(minute), Emergency: emergency}}
	}
	type storage = v1alpha1.StorageStatus
	for what, row := range map[string]struct {
		before, after *storage
		want          map[string]float64
	}{
		"storage-appears": {nil, &storage{ExpandedAt: at(1)}, nil},
		"nothing-grows":   {&storage{ExpandedAt: at(1)}, &storage{ExpandedAt: at(1)}, nil},
		"it-begins":       {&storage{}, &storage{ExpandingSince: at(1)}, nil},
		"it-goes-on":      {&storage{ExpandingSince: at(1)}, &storage{ExpandingSince: at(1)}, nil},
		"it-ends":         {&storage{ExpandingSince: at(1)}, &storage{ExpandedAt: at(3)}, map[string]float64{"cluster_expansions_total grown spec": 1, "cluster_expansion_seconds": 120}},
		"it-is-taken-back": {
			&storage{ExpandingSince: at(1), ExpandedAt: at(0)}, &storage{ExpandedAt: at(0)},
			map[string]float64{"cluster_expansions_total taken_back spec": 1},
		},
		"it-grew-by-itself": {
			&storage{ExpandingSince: at(5), ExpandedAt: at(0), Shards: decided(5, false)}, &storage{ExpandedAt: at(6)},
			map[string]float64{"cluster_expansions_total grown auto": 1, "cluster_expansion_seconds": 60},
		},
		"it-grew-in-an-emergency": {
			&storage{ExpandingSince: at(5), Shards: decided(5, true)}, &storage{ExpandedAt: at(6)},
			map[string]float64{"cluster_expansions_total grown emergency": 1, "cluster_expansion_seconds": 60},
		},
		"it-grew-by-itself-before": {
			&storage{ExpandingSince: at(15), ExpandedAt: at(6), Shards: decided(5, false)}, &storage{ExpandedAt: at(16)},
			map[string]float64{"cluster_expansions_total grown spec": 1, "cluster_expansion_seconds": 60},
		},
		"somebody-grew-a-claim": {
			&storage{Volumes: []v1alpha1.VolumeStatus{volume("a", nil), volume("b", at(0))}},
			&storage{Volumes: []v1alpha1.VolumeStatus{volume("a", at(1)), volume("b", at(0)), volume("c", at(1))}},
			map[string]float64{"cluster_expansions_total grown external": 1},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			countExpansion(named(what, row.before), v1alpha1.ValkeyClusterStatus{Storage: row.after})
			want := map[string]float64{}
			maps.Copy(want, row.want)
			if diff := cmp.Diff(want, series(t, what)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			forgetCluster(client.ObjectKey{Namespace: "shop", Name: what})
			if left := series(t, what); len(left) != 0 {
				t.Errorf("of a cluster that is gone there is %v", left)
			}
		})
	}
}

func TestStopsAreCounted(t *testing.T) {
	t.Parallel()
	const cluster = "stopped"
	workload := func(reason string) v1alpha1.ValkeyNodeStatus {
		return v1alpha1.ValkeyNodeStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionWorkloadReady, Reason: reason}}}
	}
	node := &v1alpha1.ValkeyNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{name.LabelCluster: cluster}}}
	for _, reason := range []string{v1alpha1.ReasonPodReady, v1alpha1.ReasonVolumeExpanding, v1alpha1.ReasonVolumeExpanding, v1alpha1.ReasonPodReady} {
		next := workload(reason)
		countStop(node, next)
		node.Status = next
	}
	if diff := cmp.Diff(map[string]float64{"cluster_storage_restarts_total": 1}, series(t, cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
