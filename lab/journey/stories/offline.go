package stories

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
)

func growingOffline() []Journey {
	return []Journey{{
		Name:  "offline-growth",
		Story: "A driver that grows no volume in use: Manual says what to do and restarts nothing; RollingRestart grows every volume, one member of a shard at a time and replicas first, without an error or the loss of a write",
		Needs: Lab,
		Tier:  Long,
		Limit: 10 * time.Minute,
		Play:  offlineGrowth,
	}}
}

// offlineLimit is for six members one after the other: the resizer asks a driver
// that refused again after half a minute, or a whole one.
const offlineLimit = 6 * time.Minute

func offlineGrowth(s *stage.Stage) {
	s.TurnKnobs(`{"offlineOnly":true}`)
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(20_000, nil)
	before, writer, follower, pods, claims := c.Snapshot(), c.StartWriter(), c.Follow(), c.RecordPods(), c.RecordClaims()
	c.Resize("128Mi")
	c.AwaitCondition("StorageReady", metav1.ConditionFalse, "OfflineExpansionRequired", readyLimit)
	s.AwaitEvent("VolumeExpansionBlocked", "OfflineExpansionRequired", readyLimit)
	s.Hold("no member is stopped", quietFor, func() (bool, string) {
		return len(s.Events("VolumeExpansionRestart")) == 0, "an event says otherwise"
	})
	expectUntouched(c, before)
	s.Say("allowing members to be stopped")
	c.Patch(`{"spec":{"storage":{"expansion":{"offlinePolicy":"RollingRestart"}}}}`)
	awaitGrownWithin(c, "128Mi", offlineLimit)
	c.AwaitReady()
	follower.AlwaysReady(follower.Stop())
	report := writer.Stop()
	writer.NothingNoticed(report)
	s.Say("stopping six members one after the other cost a shard at most %.2f s without a write", stage.LongestStall(report))
	expectReplicasFirst(c, before, pods)
	for claim, sizes := range stage.Asked(claims.Stop()) {
		s.Expect(strings.Join(sizes, " ") == "64Mi 128Mi", "claim %s asked for %v", claim, sizes)
	}
	c.Verify(20_000, nil)
}

// expectReplicasFirst checks that each member was down once, one of a shard at a
// time and its replica before its primary. That the replica took over before the
// primary was stopped shows in Ready, which an unserved slot ends.
func expectReplicasFirst(c *stage.Cluster, before stage.Members, pods *stage.PodRecording) {
	order, together := stage.Outages(pods.Stop())
	c.Expect(together == 1, "%d members of a shard were down at a time: %v", together, order)
	c.Expect(len(order) == c.Members(), "members went down in the order %v, want each once", order)
	seen := map[string]bool{}
	for _, member := range order {
		shard := strings.Split(member, "-")[0] + "-"
		first := !seen[shard]
		seen[shard] = true
		c.Expect((before[member].Server.Role == "replica") == first, "%s was a %s and went down out of turn: %v", member, before[member].Server.Role, order)
	}
	c.Say("members were stopped one of a shard at a time, replicas first: %v", order)
}

// isTrue says whether a condition is True, whatever its reason.
func isTrue(all []metav1.Condition, kind string) bool {
	return contract.Is(all, kind, metav1.ConditionTrue, "")
}
