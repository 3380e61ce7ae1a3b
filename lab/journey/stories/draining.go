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
	}
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
