package stories

import (
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
)

func draining() []Journey {
	return []Journey{
		{
			Name:    "drain",
			Story:   "Each worker in turn is drained, the operator with it: every drain ends, no acknowledged write is lost and no client sees an error",
			Needs:   Lab,
			Workers: 3,
			Limit:   12 * time.Minute,
			Play:    func(s *stage.Stage) { drainEach(s, s.Images.Valkey) },
		},
		{
			Name:    "drain-oldest",
			Story:   "The same on the oldest server, which cannot hand over by itself",
			Needs:   Lab,
			Workers: 3,
			Tier:    Long,
			Limit:   12 * time.Minute,
			Play:    func(s *stage.Stage) { drainEach(s, s.Images.ValkeyOld) },
		},
		{
			Name:    "shard-on-one-worker",
			Story:   "Members of a shard that can be on one worker only run there, and the cluster says so; once there are others, a new pod goes to one of them",
			Needs:   Lab,
			Workers: 2,
			Tier:    Long,
			Play:    crowd,
		},
	}
}

// crowd makes a cluster whose members can be nowhere but on one worker.
func crowd(s *stage.Stage) {
	workers := s.AllWorkers()
	for _, worker := range workers[1:] {
		s.Cordon(worker)
	}
	s.Say("all workers but %s are cordoned", workers[0])
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	c.Load(1_000, nil)
	c.AwaitTold("ShardOnOneWorker", readyLimit, workers[0])
	for _, worker := range workers[1:] {
		s.Uncordon(worker)
	}
	now := c.Snapshot()
	replica := now.Replica(0)
	s.Say("the others are back; deleting pod %s, a replica", now[replica].Pod)
	c.DeletePods(now[replica].Pod)
	awaitReplaced(c, now, replica)
	c.AwaitReady()
	c.AwaitUntold("ShardOnOneWorker", readyLimit)
	s.Expect(c.Snapshot()[replica].Worker != workers[0], "the replica was placed beside its primary again")
	c.Verify(1_000, nil)
}

func drainEach(s *stage.Stage, image string) {
	spec := persistent(3, 1)
	spec.Image = image
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(50_000, nil)
	before, writer := c.Snapshot(), c.StartWriter()
	workers := c.Workers()
	s.Expect(len(workers) > 1, "all members are on one worker")
	for _, worker := range workers {
		s.Drain(worker)
		for name, m := range c.Snapshot() {
			s.Expect(m.Worker != worker, "%s is still on worker %s", name, worker)
		}
		s.Uncordon(worker)
		c.AwaitReady()
	}
	writer.NothingNoticed(writer.Stop())
	expectSameIDs(c, before)
	c.Verify(50_000, nil)
}
