package stories

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

func growingByItself() []Journey {
	return []Journey{{
		Name:  "auto-growth",
		Story: "Real writes fill a volume: numbers that lie move nothing, Recommend only says a size, Auto grows by the increment, waits for the cooldown, and stops at maxSize",
		Needs: Lab,
		Tier:  Long,
		Limit: 8 * time.Minute,
		Play:  autoGrowth,
	}}
}

func autoGrowth(s *stage.Stage) {
	spec := persistent(1, 0)
	spec.Size = "128Mi"
	spec.MoreStorage = autoExpansion("mode: Recommend, maxSize: 1Gi, thresholdPercent: 60, increment: 100Mi, cooldown: 1h")
	c := s.Create(spec)
	c.AwaitReady()
	before, claims, follower := c.Snapshot(), c.RecordClaims(), c.Follow()
	expectLiesUnheard(c)
	c.Fill(48)
	c.Await("a recommended size", readyLimit, func() (bool, string) {
		recommended := c.Get().Status.Storage.RecommendedSize
		return recommended != nil && recommended.Cmp(resource.MustParse("228Mi")) >= 0, fmt.Sprint(recommended)
	})
	s.AwaitEvent("VolumeExpansionRecommended", "", readyLimit)
	c.Hold("no claim is touched", quietFor, func() (bool, string) { return asksFor(c, "128Mi"), claimVersions(c) })
	s.Say("turning Auto on")
	c.Patch(`{"spec":{"storage":{"autoExpansion":{"mode":"Auto"}}}}`)
	awaitLarger(c, "128Mi")
	grown := capacityOf(c)
	increment := grown.DeepCopy()
	increment.Sub(resource.MustParse("128Mi"))
	s.Expect(increment.Cmp(resource.MustParse("100Mi")) >= 0, "the volume grew by %s, less than the increment", increment.String())
	fillToThreshold(c, 65)
	c.AwaitCondition("AutoExpansion", metav1.ConditionFalse, "Cooldown", readyLimit)
	s.Expect(asksFor(c, grown.String()), "the volume grew within its cooldown: %s", claimVersions(c))
	s.Say("ending the cooldown")
	c.Patch(`{"spec":{"storage":{"autoExpansion":{"cooldown":"0s","maxSize":"` + larger(grown, "32Mi") + `"}}}}`)
	awaitLarger(c, grown.String())
	most := capacityOf(c)
	s.Expect(most.String() == larger(grown, "32Mi"), "the volume grew to %s, beyond maxSize", most.String())
	fillToThreshold(c, 75)
	told := c.AwaitCondition("AutoExpansion", metav1.ConditionFalse, "AtMaximum", readyLimit)
	s.Expect(strings.Contains(told.Message, "maxSize"), "the message does not name maxSize: %s", told.Message)
	s.AwaitEvent("AtMaximum", "", readyLimit)
	s.Expect(asksFor(c, most.String()), "the volume grew beyond maxSize: %s", claimVersions(c))
	follower.AlwaysReady(follower.Stop())
	asked := stage.Asked(claims.Stop())[c.Claim("0-0").Name]
	s.Expect(len(asked) == 3, "the claim asked for %v, want two growths", asked)
	expectUntouched(c, before)
}

// expectLiesUnheard has the driver tell that volumes are as good as full, and
// checks that nobody believes it: the agent asks the file system itself.
func expectLiesUnheard(c *stage.Cluster) {
	c.TurnKnobs(`{"stats":[{"capacity":"128Mi","used":"127Mi"}]}`)
	c.Hold("nothing is recommended on account of numbers that lie", quietFor, func() (bool, string) {
		recommended := c.Get().Status.Storage.RecommendedSize
		return recommended == nil && asksFor(c, "128Mi"), fmt.Sprint(recommended)
	})
	c.LabCommand("pool", "set", "{}")
}

// fillToThreshold fills the only volume so that less is free than a percentage.
func fillToThreshold(c *stage.Cluster, percent int) {
	c.Say("filling the volume to %d%%", percent)
	c.FillVolume(c.Pods()[0].Name, percent)
}

func capacityOf(c *stage.Cluster) resource.Quantity {
	claim := c.Claim("0-0")
	return claim.Status.Capacity.Storage().DeepCopy()
}

func larger(size resource.Quantity, by string) string {
	size = size.DeepCopy()
	size.Add(resource.MustParse(by))
	return size.String()
}

// asksFor says whether every claim asks for a size.
func asksFor(c *stage.Cluster, size string) bool {
	want := resource.MustParse(size)
	for _, claim := range c.Claims() {
		if claim.Spec.Resources.Requests.Storage().Cmp(want) != 0 {
			return false
		}
	}
	return true
}
