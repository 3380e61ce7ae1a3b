package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// rolling is a spec whose members may be stopped for their volumes to grow.
func rolling(shards, replicas int32) v1alpha1.ValkeyClusterSpec {
	spec := persistent(shards, replicas)
	spec.Storage.Expansion.OfflinePolicy = v1alpha1.OfflineRollingRestart
	return spec
}

// offline has the members at some places ask for 20Gi of a driver that grows no
// volume in use, and has said so for a while.
func (b *bench) offline(places ...[2]int) {
	for _, place := range places {
		b.edit(place[0], place[1], func(member *state.Member) {
			member.Record.Spec.Storage.Size = new(resource.MustParse("20Gi"))
			member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{Phase: v1alpha1.StorageOfflineRequired}
			member.Claim.Requested = resource.MustParse("20Gi")
			member.Claim.Conditions = []state.ClaimCondition{{
				Type: string(corev1.PersistentVolumeClaimControllerResizeError), Status: corev1.ConditionTrue,
				Message: "rpc error: code = FailedPrecondition desc = volume in use", Since: noon.Add(-refusedTime),
			}}
		})
	}
	b.edits = append(b.edits, func(in *Input) {
		in.Spec.Storage = in.Spec.Storage.DeepCopy()
		in.Spec.Storage.Size = new(resource.MustParse("20Gi"))
		for i := range in.State.Members {
			member := &in.State.Members[i]
			if member.Record.Spec.Storage.Size.Cmp(*in.Spec.Storage.Size) < 0 { // the others have it already
				member.Record.Spec.Storage.Size = new(resource.MustParse("20Gi"))
				member.Claim.Requested, member.Claim.Capacity = resource.MustParse("20Gi"), resource.MustParse("20Gi")
				member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{Phase: v1alpha1.StorageSatisfied}
			}
		}
	})
}

func (b *bench) edit(shard, index int, edit func(*state.Member)) {
	b.edits = append(b.edits, func(in *Input) { edit(&in.State.Members[shard*(int(b.spec.Replicas)+1)+index]) })
}

func everybody(shards, replicas int) (places [][2]int) {
	for shard := range shards {
		for index := range replicas + 1 {
			places = append(places, [2]int{shard, index})
		}
	}
	return places
}

// away has a member be stopped since a while, its pod gone.
func (b *bench) away(shard, index int, since time.Duration) {
	b.at(shard, index).podless = true
	b.edit(shard, index, func(member *state.Member) {
		member.Record.Spec.Stopped = true
		told(member, v1alpha1.ConditionWorkloadReady, v1alpha1.ReasonVolumeExpanding, since)
	})
}

// back has a member that was stopped run again, not ready yet.
func (b *bench) back(shard, index int) {
	b.edit(shard, index, func(member *state.Member) {
		told(member, v1alpha1.ConditionWorkloadReady, v1alpha1.ReasonVolumeExpanding, time.Minute)
		member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{Phase: v1alpha1.StorageSatisfied}
		member.Claim.Capacity, member.Claim.Conditions = resource.MustParse("20Gi"), nil
	})
}

func told(member *state.Member, kind, reason string, since time.Duration) {
	member.Record.Status.Conditions = append(member.Record.Status.Conditions, metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(noon.Add(-since)),
	})
}

func (b *bench) phase(shard, index int, phase v1alpha1.StoragePhase) {
	b.edit(shard, index, func(member *state.Member) { member.Record.Status.Storage = &v1alpha1.NodeStorageStatus{Phase: phase} })
}

func TestOfflineVolumesGrown(t *testing.T) {
	t.Parallel()
	waits, acts := "wait VolumeExpanding", "settled VolumeExpanding"
	handOver := "ask node prod-0-1 to take shard 0 over from its primary"
	play(t, offlineVolumesGrown, map[string]scene{
		"nobody's driver says so":                     {spec: rolling(3, 1), want: []string{"settled"}},
		"an ephemeral cluster has no volumes":         {spec: ephemeral(3, 1), want: []string{"settled"}},
		"a cluster that has not formed is left alone": {spec: rolling(3, 1), happens: func(b *bench) { b.formed = false; b.offline(everybody(3, 1)...) }, want: []string{"settled"}},
		"without the user's leave nobody is stopped":  {spec: persistent(3, 1), happens: func(b *bench) { b.offline(everybody(3, 1)...) }, want: []string{"blocked OfflineExpansionRequired"}},
		"a replica is stopped, of one shard of three": {spec: rolling(3, 1), happens: func(b *bench) { b.offline(everybody(3, 1)...) }, want: []string{acts, "stop node prod-0-1"}},
		"of seven shards a minority at a time":        {spec: rolling(7, 1), happens: func(b *bench) { b.offline(everybody(7, 1)...) }, want: []string{acts, "stop node prod-0-1", "stop node prod-1-1", "stop node prod-2-1"}},
		"of two replicas one":                         {spec: rolling(1, 2), happens: func(b *bench) { b.offline(everybody(1, 2)...) }, want: []string{acts, "stop node prod-0-1"}},
		"the first answer is not believed": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) { m.Claim.Conditions[0].Since = noon.Add(time.Second - refusedTime) })
		}, want: []string{waits}},
		"a refusal of nobody knows when is none": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) { m.Claim.Conditions[0].Since = time.Time{} })
		}, want: []string{"settled"}},
		"a refusal of a smaller size is none": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) { m.Claim.Requested = resource.MustParse("15Gi") })
		}, want: []string{"settled"}},
		"a claim without a volume has nothing to grow": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) { m.Claim.Phase = corev1.ClaimLost })
		}, want: []string{"settled"}},
		"a claim that goes is not grown": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) { m.Claim.Terminating = true })
		}, want: []string{"settled"}},
		"a failed attempt of another cause": {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.phase(0, 1, v1alpha1.StorageRetrying) }, want: []string{"settled"}},
		"a volume that has grown but for its file system": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) { m.Claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizePending) })
		}, want: []string{"settled"}},
		"the driver said so in events only": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.edit(0, 1, func(m *state.Member) {
				m.Claim.Conditions = nil
				told(m, v1alpha1.ConditionStorageReady, v1alpha1.ReasonOfflineExpansionRequired, time.Minute)
			})
		}, want: []string{acts, "stop node prod-0-1"}},
		"a primary is replaced first":                    {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 0}) }, want: []string{acts, handOver}},
		"one failover at a time":                         {spec: rolling(5, 1), happens: func(b *bench) { b.offline([2]int{0, 0}, [2]int{1, 0}) }, want: []string{acts, handOver}},
		"a replica beside a primary that is replaced":    {spec: rolling(5, 1), happens: func(b *bench) { b.offline([2]int{0, 0}, [2]int{1, 1}) }, want: []string{acts, handOver, "stop node prod-1-1"}},
		"a replica was asked a moment ago":               {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 0}); b.asked(0, failoverPause-time.Second) }, want: []string{waits}},
		"it did not take over, and is asked again":       {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 0}); b.asked(0, failoverPause) }, want: []string{acts, handOver}},
		"another shard's replica was asked a moment ago": {spec: rolling(5, 1), happens: func(b *bench) { b.offline([2]int{0, 0}, [2]int{1, 0}); b.asked(1, time.Second) }, want: []string{waits}},
		"another shard's failover is over":               {spec: rolling(5, 1), happens: func(b *bench) { b.offline([2]int{0, 0}); b.asked(1, time.Second) }, want: []string{acts, handOver}},
		"a former primary that has handed over": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 0})
			b.failOver(0, 1)
		}, want: []string{acts, "stop node prod-0-0"}},
		"a former primary that has yet to sync": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 0})
			b.failOver(0, 1)
			b.unsynced(0, 0)
		}, want: []string{waits}},
		"a former primary that does not know its successor's epoch": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 0})
			b.failOver(0, 1)
			b.edit(0, 0, func(m *state.Member) {
				for i, entry := range m.Server.Value.Table.Nodes {
					if !entry.Slots.IsEmpty() && entry.Slots.Contains(0) {
						m.Server.Value.Table.Nodes[i].ConfigEpoch--
					}
				}
			})
		}, want: []string{waits}},
		"a member without a replica is stopped all the same": {spec: rolling(3, 0), happens: func(b *bench) { b.offline(everybody(3, 0)...) }, want: []string{acts, "stop node prod-0-0"}},
		"a replica is stopped already":                       {spec: rolling(3, 1), happens: func(b *bench) { b.offline(everybody(3, 1)...); b.away(0, 1, time.Minute) }, want: []string{waits}},
		"another shard's turn beside one that is stopped":    {spec: rolling(5, 1), happens: func(b *bench) { b.offline(everybody(5, 1)...); b.away(1, 1, time.Minute) }, want: []string{acts, "stop node prod-0-1"}},
		"a member that is not back yet":                      {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 0}); b.back(0, 1) }, want: []string{waits}},
		"a member that is back, its file system behind": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 0}, [2]int{0, 1})
			b.phase(0, 1, v1alpha1.StorageFileSystemPending)
		}, want: []string{waits}},
		"the last one stopped is on its way": {spec: rolling(3, 1), happens: func(b *bench) { b.back(0, 1) }, want: []string{waits}},
		"a sick shard stops everything":      {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.at(2, 1).server.Silence(true) }, want: []string{waits}},
		"a replica of another shard syncs":   {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.unsynced(2, 1) }, want: []string{waits}},
		"a mute agent is an unknown":         {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.at(0, 0).mute = true }, want: []string{waits}},
		"a member was stopped in vain": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline(everybody(3, 1)...)
			b.edit(1, 1, func(m *state.Member) { m.Record.StoppedInVain = "20Gi" })
		}, want: []string{"blocked ExpansionStalled"}},
		"a member was stopped in vain for another size": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline(everybody(3, 1)...)
			b.edit(1, 1, func(m *state.Member) { m.Record.StoppedInVain = "15Gi" })
		}, want: []string{acts, "stop node prod-0-1"}},
	})
}

// asked has a replica of a shard been asked to take over a while ago.
func (b *bench) asked(shard int, since time.Duration) {
	b.edits = append(b.edits, func(in *Input) { in.State.FailOvers = map[int]time.Time{shard: noon.Add(-since)} })
}

// failOver has a replica take its primary's place.
func (b *bench) failOver(shard, index int) {
	b.command(shard*(int(b.spec.Replicas)+1)+index, func(server valkey.Server) error { return server.Failover(b.context(), valkey.Graceful) })
	b.servers.Settle()
}

func TestStopsNeeded(t *testing.T) {
	t.Parallel()
	starts := []string{"settled VolumeExpanding", "let node prod-0-1 run"}
	play(t, stopsNeeded, map[string]scene{
		"nobody is stopped": {spec: rolling(3, 1), want: []string{"settled"}},
		"its volume grows":  {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.away(0, 1, time.Minute) }, want: []string{"settled"}},
		"the driver is at it": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.away(0, 1, 10*time.Minute)
			b.phase(0, 1, v1alpha1.StorageControllerResizing)
		}, want: []string{"settled"}},
		"nothing is known of its volume yet":         {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.away(0, 1, time.Minute); b.phase(0, 1, "") }, want: []string{"settled"}},
		"the file system is left, which needs a pod": {spec: rolling(3, 1), happens: func(b *bench) { b.awayGrown("") }, want: starts},
		"an old server says so by a condition only":  {spec: rolling(3, 1), happens: func(b *bench) { b.awayGrown(string(corev1.PersistentVolumeClaimFileSystemResizePending)) }, want: starts},
		"it has the size":                            {spec: rolling(3, 1), happens: func(b *bench) { b.away(0, 1, time.Minute) }, want: starts},
		"the user took the leave back":               {spec: persistent(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.away(0, 1, time.Minute) }, want: starts},
		"the driver can never give the size": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.away(0, 1, time.Minute)
			b.phase(0, 1, v1alpha1.StorageInfeasibleController)
		}, want: starts},
		"its claim is on its way out": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.away(0, 1, time.Minute)
			b.edit(0, 1, func(m *state.Member) { m.Claim.Terminating = true })
		}, want: starts},
		"its claim is gone":                    {spec: rolling(3, 1), happens: func(b *bench) { b.away(0, 1, time.Minute); b.edit(0, 1, func(m *state.Member) { m.Claim = nil }) }, want: starts},
		"its shard's primary has gone":         {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.away(0, 1, time.Minute); b.at(0, 0).podless = true }, want: starts},
		"its shard's primary misses an answer": {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.away(0, 1, time.Minute); b.at(0, 0).server.Silence(true) }, want: []string{"settled"}},
		"it became the primary before its pod ended": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.failOver(0, 1)
			b.edit(0, 1, func(m *state.Member) { m.Record.Spec.Stopped = true })
		}, want: starts},
		"a member without a replica is missed by all": {spec: rolling(3, 0), happens: func(b *bench) { b.offline([2]int{0, 0}); b.away(0, 0, time.Minute) }, want: []string{"settled"}},
		"nothing came of it":                          {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.away(0, 1, stopPatience+endingTime+time.Second) }, want: starts},
		"nothing came of it, the last second":         {spec: rolling(3, 1), happens: func(b *bench) { b.offline([2]int{0, 1}); b.away(0, 1, stopPatience+endingTime) }, want: []string{"settled"}},
		"a pod that does not end still uses the volume": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.away(0, 1, growPatience+endingTime)
			b.edit(0, 1, func(m *state.Member) { m.Pods = []state.Pod{{Name: "p", Terminating: true}} })
		}, want: []string{"settled"}},
		"a pod that never ends is no planned absence": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.away(0, 1, growPatience+endingTime+time.Second)
			b.edit(0, 1, func(m *state.Member) { m.Pods = []state.Pod{{Name: "p", Terminating: true}} })
		}, want: starts},
		"it was unready for an hour before it was stopped": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.away(0, 1, time.Hour)
			b.edit(0, 1, func(m *state.Member) { m.Record.StoppedAt = noon.Add(-time.Minute) })
		}, want: []string{"settled"}},
		"a driver that never ends": {spec: rolling(3, 1), happens: func(b *bench) {
			b.offline([2]int{0, 1})
			b.away(0, 1, time.Hour)
			b.phase(0, 1, v1alpha1.StorageControllerResizing)
		}, want: starts},
		"a node that is on its way out": {spec: rolling(3, 1), happens: func(b *bench) {
			b.away(0, 1, time.Hour)
			b.edit(0, 1, func(m *state.Member) { m.Record.Deleting = true })
		}, want: []string{"settled"}},
		"the user forgets what was tried in vain": {spec: persistent(3, 1), happens: func(b *bench) { b.edit(0, 1, func(m *state.Member) { m.Record.StoppedInVain = "20Gi" }) }, want: starts},
	})
}

// awayGrown has the driver of a stopped member do its part, and tell by the
// claim's status, or by a condition alone.
func (b *bench) awayGrown(condition string) {
	b.offline([2]int{0, 1})
	b.away(0, 1, time.Minute)
	b.edit(0, 1, func(m *state.Member) {
		if condition == "" {
			m.Claim.ResizeStatus = string(corev1.PersistentVolumeClaimNodeResizePending)
			return
		}
		m.Claim.Conditions = append(m.Claim.Conditions, state.ClaimCondition{Type: condition, Status: corev1.ConditionTrue})
	})
}
