package stories

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// limiting are the stories of growths that Kubernetes itself refuses.
func limiting() []Journey {
	return []Journey{
		{
			Name:  "class-turned-expandable",
			Story: "A class that cannot expand is mended: the growth that waited goes on by itself",
			Tier:  Long,
			Play:  classTurnedExpandable,
		},
		{
			Name:  "quota-for-four-of-six",
			Story: "A quota with room for four of six growths: no volume is touched, the missing bytes are named, and more quota lets all grow",
			Tier:  Long,
			Play:  quotaForFourOfSix,
		},
		{
			Name:  "limit-range",
			Story: "A LimitRange below the size: it is named, no volume is touched, and its end lets all grow",
			Tier:  Long,
			Play:  limitRange,
		},
	}
}

func classTurnedExpandable(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.Class = fixedClass(s)
	c := s.Create(spec)
	c.AwaitReady()
	before, claims := c.Snapshot(), claimVersions(c)
	c.Resize("128Mi")
	c.AwaitCondition("StorageReady", metav1.ConditionFalse, "StorageClassNotExpandable", readyLimit)
	expectAddsUser(c, "bystander")
	s.Expect(claimVersions(c) == claims, "a claim was touched")
	s.Kubectl("patch", "storageclass", spec.Class, "--type=merge", "-p", `{"allowVolumeExpansion":true}`)
	awaitGrown(c, "128Mi")
	c.AwaitReady()
	expectUntouched(c, before)
}

func quotaForFourOfSix(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	before, claims := c.Snapshot(), claimVersions(c)
	s.Apply(quota("640Mi")) // six of 64Mi, and 64Mi more for four
	s.Await("the quota to count", readyLimit, func() (bool, string) {
		used := s.Kubectl("get", "resourcequota", "small", "-o", `jsonpath={.status.used.requests\.storage}`)
		return used == "384Mi", "used " + used
	})
	follower := c.Follow()
	c.Resize("128Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "QuotaExceeded", readyLimit)
	s.Expect(strings.Contains(told.Message, "small") && strings.Contains(told.Message, "by 128Mi"),
		"the message does not name the quota and the missing 128Mi: %s", told.Message)
	s.Hold("no claim is touched", quietFor, func() (bool, string) { return claimVersions(c) == claims, claimVersions(c) })
	s.Apply(quota("1Gi"))
	awaitGrown(c, "128Mi")
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
}

func limitRange(s *stage.Stage) {
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	before, claims := c.Snapshot(), claimVersions(c)
	s.Apply("apiVersion: v1\nkind: LimitRange\nmetadata: {name: tight}\nspec: {limits: [{type: PersistentVolumeClaim, max: {storage: 100Mi}}]}\n")
	follower := c.Follow()
	c.Resize("128Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "LimitRangeExceeded", readyLimit)
	s.Expect(strings.Contains(told.Message, "tight"), "the message does not name the LimitRange: %s", told.Message)
	s.Expect(claimVersions(c) == claims, "a claim was touched")
	s.Kubectl("delete", "limitrange", "tight")
	awaitGrown(c, "128Mi")
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
}
