package stories

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

func growingKilled() []Journey {
	return []Journey{{
		Name:  "growth-operator-killed",
		Story: "The operator is killed at random moments of a growth, of one that is impossible, of one that stops members, and of one by itself: each ends as without, and no claim is asked twice",
		Needs: Lab,
		Tier:  Long,
		Limit: 12 * time.Minute,
		Play:  growthOperatorKilled,
	}}
}

func growthOperatorKilled(s *stage.Stage) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not a secret
	s.Say("seed %d", seed)
	spec := persistent(1, 1)
	spec.MoreStorage = "    expansion: {offlinePolicy: RollingRestart}\n"
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(10_000, nil)
	writer := c.StartWriter()
	kill := func() { s.KillAtRandom(random, 2) }
	growKilled(c, kill)
	growInVainKilled(c, kill)
	growOfflineKilled(c, kill)
	growByItselfKilled(c, kill)
	c.AwaitReady()
	writer.NothingLost(writer.Stop())
	c.Verify(10_000, nil)
}

func growKilled(c *stage.Cluster, kill func()) {
	before, claims := c.Snapshot(), c.RecordClaims()
	c.Resize("96Mi")
	kill()
	awaitGrown(c, "96Mi")
	expectUntouched(c, before)
	expectAskedOnce(c, claims, "64Mi 96Mi")
}

func growInVainKilled(c *stage.Cluster, kill func()) {
	c.TurnKnobs(`{"maxVolume":"512Mi"}`)
	before, claims := c.Snapshot(), c.RecordClaims()
	c.Resize("1Gi")
	kill()
	c.AwaitCondition("StorageReady", metav1.ConditionFalse, "ExpansionInfeasible", readyLimit)
	c.Resize("128Mi")
	kill()
	awaitGrown(c, "128Mi")
	expectUntouched(c, before)
	expectOneCanary(c, stage.Asked(claims.Stop()), "1Gi", "128Mi")
}

func growOfflineKilled(c *stage.Cluster, kill func()) {
	c.TurnKnobs(`{"offlineOnly":true}`)
	claims := c.RecordClaims()
	c.Resize("160Mi")
	kill()
	kill()
	awaitGrownWithin(c, "160Mi", offlineLimit)
	c.AwaitReady()
	expectAskedOnce(c, claims, "128Mi 160Mi")
}

func growByItselfKilled(c *stage.Cluster, kill func()) {
	c.TurnKnobs(`{}`)
	claims := c.RecordClaims()
	c.Patch(`{"spec":{"storage":{"autoExpansion":{"mode":"Auto","maxSize":"512Mi","increment":"200Mi","cooldown":"1h"}}}}`)
	members := c.Snapshot()
	c.FillVolume(members[members.Primary(0)].Pod, 90)
	c.AwaitEvent("VolumeExpanding", "by itself", readyLimit)
	kill()
	awaitLarger(c, "160Mi")
	for claim, sizes := range stage.Asked(claims.Stop()) {
		c.Expect(len(sizes) == 2, "claim %s asked for %v, want one growth", claim, sizes)
	}
}
