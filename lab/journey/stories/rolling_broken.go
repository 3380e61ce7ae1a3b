package stories

import (
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// rollingBroken are the stories of edits with which no pod comes up.
func rollingBroken() []Journey {
	return []Journey{
		{
			Name:  "roll-broken-image",
			Story: "An image that does not exist: one pod is down, the rest serves without an error, the status names the pod and the cause, and putting it right is enough",
			Limit: 8 * time.Minute,
			Play: func(s *stage.Stage) {
				rollBroken(s, mistake{
					edit: imagePatch("valkey/valkey:there-is-no-such-version"), undo: imagePatch(s.ValkeyImage()), told: []string{"ImagePull"},
				})
			},
		},
		{
			Name:  "roll-impossible-resources",
			Story: "CPU that no worker has: the same",
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play: func(s *stage.Stage) {
				rollBroken(s, mistake{
					edit: `{"spec":{"resources":{"requests":{"cpu":"1000"}}}}`, undo: `{"spec":{"resources":null}}`, told: []string{"cpu"},
				})
			},
		},
		{
			Name:  "roll-impossible-place",
			Story: "A label that no worker has: the same",
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play: func(s *stage.Stage) {
				rollBroken(s, mistake{
					edit: `{"spec":{"scheduling":{"nodeSelector":{"disk":"fastest"}}}}`, undo: `{"spec":{"scheduling":null}}`, told: []string{"selector"},
				})
			},
		},
		{
			Name:  "memory-below-data",
			Story: "A memory limit below what the data takes is refused with a reason and touches nothing; taking it back is enough",
			Tier:  Long,
			Play:  memoryBelowData,
		},
		{
			Name:  "roll-broken-setting",
			Story: "A value with which the server does not start: the same",
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play: func(s *stage.Stage) {
				rollBroken(s, mistake{
					edit: `{"spec":{"config":{"tcp-backlog":"nonsense"}}}`, undo: `{"spec":{"config":null}}`, told: []string{"tcp-backlog"},
				})
			},
		},
	}
}

// mistake is an edit with which no pod comes up, and words of its cause.
type mistake struct {
	edit, undo string
	told       []string
}

func rollBroken(s *stage.Stage, m mistake) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(20_000, nil)
	before, writer, pods := c.Snapshot(), c.StartWriter(), c.RecordPods()
	s.Say("editing: %s", m.edit)
	c.Patch(m.edit)
	victim := ""
	s.Await("a member to be down", readyLimit, func() (bool, string) {
		for _, p := range c.Pods() {
			if !stage.PodReady(&p) && p.DeletionTimestamp == nil {
				victim = stage.MemberOf(&p)
			}
		}
		return victim != "", "all members are ready"
	})
	c.AwaitTold("", readyLimit, append(m.told, c.Spec.Name+"-"+victim)...)
	s.Expect(before[victim].Server.Role == "replica", "%s, a primary, was taken down first", victim)
	s.Hold("no second member is down", quietFor, func() (bool, string) { return down(c, 1) })
	s.Say("putting it right: %s", m.undo)
	c.Patch(m.undo)
	c.AwaitReady()
	writer.NothingNoticed(writer.Stop())
	order, _ := stage.Outages(pods.Stop())
	s.Expect(len(order) == 1, "members went down in the order %v, want %s alone", order, victim)
	expectSameIDs(c, before)
	c.Verify(20_000, nil)
}

func memoryBelowData(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Fill(48)
	before, writer := c.Snapshot(), c.StartWriter()
	c.Patch(`{"spec":{"resources":{"limits":{"memory":"12Mi"}}}}`)
	c.AwaitTold("MemoryBelowData", readyLimit)
	s.Hold("no pod is touched", quietFor, func() (bool, string) { return samePods(c, before), "a pod was replaced" })
	expectStillReady(c)
	c.Patch(`{"spec":{"resources":null}}`)
	c.AwaitUntold("MemoryBelowData", readyLimit)
	c.AwaitReady()
	writer.NothingNoticed(writer.Stop())
	expectUntouched(c, before)
}
