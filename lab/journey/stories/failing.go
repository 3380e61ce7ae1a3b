package stories

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// failing are the stories of drivers that fail.
func failing() []Journey {
	return []Journey{
		{
			Name:  "partial-growth",
			Story: "A pool with room for four of six: the four stay grown, the rest is named, and all end grown once there is room",
			Needs: Lab,
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  partialGrowth,
		},
		{
			Name:  "rate-limited",
			Story: "A provider that allows one change in a while: it is told with the next try, and the growth ends by itself",
			Needs: Lab,
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  rateLimited,
		},
		{
			Name:  "retrying",
			Story: "A driver that fails some times: it is quoted while it does, and the growth ends by itself",
			Needs: Lab,
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  func(s *stage.Stage) { retrying(s, "ControllerExpandVolume") },
		},
		{
			Name:  "retrying-on-the-worker",
			Story: "The same where the file system is what fails to grow",
			Needs: Lab,
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  func(s *stage.Stage) { retrying(s, "NodeExpandVolume") },
		},
		{
			Name:  "infeasible-on-the-worker",
			Story: "A file system that can never be grown on its worker: no other volume waits, it is told with what to do, and doing it ends the growth",
			Needs: Lab,
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  infeasibleOnTheWorker,
		},
		{
			Name:  "stalled",
			Story: "A pool without room, of which only events tell: the growth counts as stalled and quotes them, a smaller size waits for the driver, and room ends it",
			Needs: Lab,
			Tier:  Long,
			Limit: 20 * time.Minute,
			Play:  stalled,
		},
	}
}

// pooledClass makes a class whose volumes are a pool of their own, so that its
// room is nobody else's.
func pooledClass(s *stage.Stage) string {
	name := s.Namespace + "-pool"
	dropClass(s, name)
	makeClass(s, name, true, map[string]string{"pool": name})
	return name
}

func poolOf(class, capacity string) string {
	return fmt.Sprintf(`{"pools":{%q:{"capacity":%q}}}`, class, capacity)
}

func partialGrowth(s *stage.Stage) {
	spec := persistent(3, 1)
	spec.Class = pooledClass(s)
	s.TurnKnobs(poolOf(spec.Class, "640Mi"))
	c := s.Create(spec)
	c.AwaitReady()
	before, claims, writer, follower := c.Snapshot(), c.RecordClaims(), c.StartWriter(), c.Follow()
	c.Resize("128Mi")
	var rest []string
	s.Await("four volumes to have grown", readyLimit, func() (bool, string) {
		rest = nil
		for _, claim := range c.Claims() {
			if claim.Status.Capacity.Storage().Cmp(resource.MustParse("128Mi")) < 0 {
				rest = append(rest, claim.Name)
			}
		}
		return len(rest) == 2, fmt.Sprintf("%d have not: %v", len(rest), rest)
	})
	s.Await("the rest to be told by name", readyLimit, func() (bool, string) {
		message := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "", readyLimit).Message
		return strings.Contains(message, rest[0]) && strings.Contains(message, rest[1]), message
	})
	expectAddsUser(c, "bystander")
	expectStillReady(c)
	s.TurnKnobs(poolOf(spec.Class, "1Gi"))
	awaitGrown(c, "128Mi")
	c.AwaitReady()
	follower.AlwaysReady(follower.Stop())
	writer.NothingNoticed(writer.Stop())
	expectUntouched(c, before)
	expectAskedOnce(c, claims, "64Mi 128Mi")
}

// expectAskedOnce checks the sizes that each claim asked for.
func expectAskedOnce(c *stage.Cluster, claims *stage.ClaimRecording, sizes string) {
	for claim, asked := range stage.Asked(claims.Stop()) {
		c.Expect(strings.Join(asked, " ") == sizes, "claim %s asked for %v, want %s", claim, asked, sizes)
	}
	c.Say("each claim asked for %s and nothing else", sizes)
}

func rateLimited(s *stage.Stage) {
	s.TurnKnobs(`{"modificationsPerPeriod":{"n":1,"period":"60s"}}`)
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	before, follower := c.Snapshot(), c.Follow()
	c.Resize("96Mi")
	awaitGrown(c, "96Mi")
	claims := c.RecordClaims()
	c.Resize("128Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "ExpansionRateLimited", readyLimit)
	s.Expect(strings.Contains(told.Message, "VolumeModificationRateExceeded"), "the provider is not quoted: %s", told.Message)
	limited := false
	for _, v := range c.Get().Status.Storage.Volumes {
		limited = limited || v.NextEligibleTime != nil
	}
	s.Expect(limited, "no volume has a nextEligibleTime")
	awaitGrown(c, "128Mi")
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
	expectAskedOnce(c, claims, "96Mi 128Mi")
}

func retrying(s *stage.Stage, call string) {
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	before, claims, follower := c.Snapshot(), c.RecordClaims(), c.Follow()
	s.TurnKnobs(fmt.Sprintf(`{"faults":{%q:{"match":%q,"code":"Internal","message":"the array is busy"}}}`, call, s.Namespace+"/"))
	c.Resize("128Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "ExpansionRetrying", readyLimit)
	s.Expect(strings.Contains(told.Message, "the array is busy"), "the driver is not quoted: %s", told.Message)
	expectStillReady(c)
	s.TurnKnobs(`{}`)
	awaitGrown(c, "128Mi")
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
	expectAskedOnce(c, claims, "64Mi 128Mi")
}

func infeasibleOnTheWorker(s *stage.Stage) {
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	before, claims, follower := c.Snapshot(), c.RecordClaims(), c.Follow()
	replica := before.Replica(0)
	claim := c.Claim(replica).Name
	s.TurnKnobs(fmt.Sprintf(`{"faults":{"NodeExpandVolume":{"match":%q,"code":"OutOfRange","message":"the file system is of an old kind"}}}`, s.Namespace+"/"+claim))
	c.Resize("128Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "ExpansionInfeasible", readyLimit)
	s.Expect(strings.Contains(told.Message, claim) && strings.Contains(told.Message, "delete the pod"),
		"the message does not name the claim and say what to do: %s", told.Message)
	s.Await("the other volume to have grown", readyLimit, func() (bool, string) {
		other := c.Claim(before.Primary(0))
		has := other.Status.Capacity.Storage()
		return has.Cmp(resource.MustParse("128Mi")) >= 0, has.String()
	})
	expectStillReady(c)
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
	s.TurnKnobs(`{}`)
	s.Say("doing what the message says: deleting pod %s", before[replica].Pod)
	c.DeletePods(before[replica].Pod)
	awaitGrown(c, "128Mi")
	c.AwaitReady()
	expectAskedOnce(c, claims, "64Mi 128Mi")
}

// stalledLimit is ten minutes, after which a growth counts as stalled, and some
// for a busy machine.
const stalledLimit = 13 * time.Minute

func stalled(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.Class = pooledClass(s)
	s.TurnKnobs(poolOf(spec.Class, "128Mi"))
	c := s.Create(spec)
	c.AwaitReady()
	before, follower := c.Snapshot(), c.Follow()
	c.Resize("256Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "ExpansionStalled", stalledLimit)
	s.Expect(strings.Contains(told.Message, "smaller size takes no effect until it answers"), "the message does not say that going back has to wait: %s", told.Message)
	s.Expect(strings.Contains(told.Message, "ResourceExhausted"), "the newest event is not quoted: %s", told.Message)
	expectStillReady(c)
	s.TurnKnobs(poolOf(spec.Class, "1Gi"))
	awaitGrown(c, "256Mi")
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
}
