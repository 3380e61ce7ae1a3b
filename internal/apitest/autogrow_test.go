//go:build apiserver

package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
)

// fill fills the volumes of a shard, as their agents see it.
func (w *world) fill(shard int, bytes int64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.filled == nil {
		w.filled = map[int]int64{}
	}
	w.filled[shard] = bytes
}

// tellDisk has an agent tell twice how full its volume is, if it is filled.
func (w *world) tellDisk(ctx context.Context, facts *protocol.Facts) error {
	used, filled := w.filled[facts.Shard]
	if !filled {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: w.namespace, Name: name.Claim(name.Node("prod", facts.Shard, facts.Node))}
	if err := admin.Get(ctx, key, claim); err != nil {
		return fmt.Errorf("looking at claim %s: %w", key.Name, err)
	}
	total := claim.Status.Capacity.Storage().Value()
	disk := protocol.Disk{TotalBytes: total, AvailableBytes: max(0, total-used), SampledAt: time.Now()}
	before := disk
	before.SampledAt = disk.SampledAt.Add(-protocol.SampleInterval)
	facts.Disk, facts.DiskBefore = &disk, &before
	facts.Files = &protocol.Files{Log: true, WriteFailed: disk.AvailableBytes == 0}
	return nil
}

// A shard that fills up grows by itself, once, and tells the story once; the spec
// stays as the user wrote it, and the others as they were.
func TestAShardGrowsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	for shard := range 3 {
		w.fill(shard, 100<<20)
	}
	spec := persistent()
	spec.Storage.AutoExpansion = &v1alpha1.AutoExpansion{
		Mode: v1alpha1.AutoExpansionAuto, MaxSize: new(resource.MustParse("10Gi")), Increment: "20%", Cooldown: metav1.Duration{Duration: time.Hour},
	}
	cluster := w.settledCluster(spec)
	condition := func(status metav1.ConditionStatus, reason string) func() error {
		return func() error {
			return conditionIs(get(w, "prod", cluster).Status.Conditions, v1alpha1.ConditionAutoExpansion, status, reason)
		}
	}
	await(t, "it is armed", condition(metav1.ConditionTrue, v1alpha1.ReasonAutoArmed))
	w.fill(1, 1<<30)
	await(t, "the volume has grown", func() error {
		if sizes := w.capacities(); !strings.Contains(sizes, "2Gi of 2Gi") {
			return fmt.Errorf("the volumes have %s", sizes)
		}
		return nil
	})
	w.awaitSettled(cluster)
	await(t, "it is armed again", condition(metav1.ConditionTrue, v1alpha1.ReasonAutoArmed))
	if sizes := w.capacities(); sizes != "1Gi of 1Gi, 2Gi of 2Gi, 1Gi of 1Gi" {
		t.Errorf("the volumes have %s", sizes)
	}
	for _, reason := range []string{v1alpha1.ReasonDiskFull, v1alpha1.ReasonVolumeExpanding, v1alpha1.ReasonVolumeExpanded} {
		await(t, "there is one event "+reason, func() error { return w.oneEvent("prod", reason) })
	}
	shards := get(w, "prod", cluster).Status.Storage.Shards
	if len(shards) != 1 || shards[0].Shard != 1 || shards[0].AutoTarget.String() != "2Gi" || shards[0].EffectiveSize.String() != "2Gi" || shards[0].GrownAt == nil {
		t.Errorf("remembered is %+v", shards)
	}
	if size := cluster.Spec.Storage.Size.String(); size != "1Gi" {
		t.Errorf("the spec has %s", size)
	}
}
