package stories

import (
	"fmt"
	"strings"
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
)

func setting() []Journey {
	return []Journey{
		{
			Name:  "config-live",
			Story: "A setting that servers take live reaches all of them without a restart, one that they read at their start is rolled, and one that they do not know is refused with their words and touches nothing",
			Limit: 8 * time.Minute,
			Play:  func(s *stage.Stage) { configLive(s, s.Images.Valkey) },
		},
		{
			Name:  "config-live-oldest",
			Story: "The same on the oldest server",
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  func(s *stage.Stage) { configLive(s, s.Images.ValkeyOld) },
		},
	}
}

func configLive(s *stage.Stage, image string) {
	spec := persistent(3, 1)
	spec.Image = image
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(20_000, nil)
	setLive(c)
	refuseUnknown(c)
	expectRoll(c, func() {
		s.Say("setting tcp-backlog, which servers read at their start")
		c.Patch(`{"spec":{"config":{"tcp-backlog":"300"}}}`)
	})
	awaitSetting(c, "tcp-backlog", "300")
	awaitSetting(c, "maxmemory-policy", "allkeys-lru")
	c.Verify(20_000, nil)
}

func setLive(c *stage.Cluster) {
	before, writer, follower := c.Snapshot(), c.StartWriter(), c.Follow()
	c.Say("setting maxmemory-policy, which servers take live")
	c.Patch(`{"spec":{"config":{"maxmemory-policy":"allkeys-lru"}}}`)
	awaitSetting(c, "maxmemory-policy", "allkeys-lru")
	c.AwaitReady()
	follower.AlwaysReady(follower.Stop())
	writer.NothingNoticed(writer.Stop())
	expectUntouched(c, before)
	c.Say("a member that is lost comes back with it")
	victim := before.Replica(0)
	c.DeletePods(before[victim].Pod)
	awaitReplaced(c, before, victim)
	c.AwaitReady()
	awaitSetting(c, "maxmemory-policy", "allkeys-lru")
}

func refuseUnknown(c *stage.Cluster) {
	before, writer := c.Snapshot(), c.StartWriter()
	c.Say("setting maxmemroy, which no server knows")
	c.Patch(`{"spec":{"config":{"maxmemroy":"1gb"}}}`)
	c.AwaitTold("ConfigRefused", readyLimit, "maxmemroy")
	c.Hold("no pod is touched", quietFor, func() (bool, string) { return samePods(c, before), "a pod was replaced" })
	expectStillReady(c)
	c.Patch(`{"spec":{"config":{"maxmemroy":null}}}`)
	c.AwaitUntold("ConfigRefused", readyLimit)
	c.AwaitReady()
	writer.NothingNoticed(writer.Stop())
	expectUntouched(c, before)
}

// awaitSetting waits until every server has a value.
func awaitSetting(c *stage.Cluster, setting, value string) {
	c.Await(fmt.Sprintf("every server to have %s %s", setting, value), readyLimit, func() (bool, string) {
		var has []string
		everywhere := true
		for _, p := range c.Pods() {
			now := c.Setting(p.Name, setting)
			everywhere = everywhere && now == value
			has = append(has, now)
		}
		return everywhere && len(has) == c.Members(), strings.Join(has, " ")
	})
	c.Say("every server has %s %s", setting, value)
}
