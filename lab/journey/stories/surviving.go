package stories

import (
	"context"
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// readyLimit bounds waits for pods and conditions; it is no promise of speed.
const readyLimit = 3 * time.Minute

func surviving() []Journey {
	return []Journey{
		{
			Name:  "pods-lost",
			Story: "A persistent cluster loses a replica, a primary, and then every pod at once: same node ids, every acknowledged write there",
			Limit: 8 * time.Minute,
			Play:  podsLost,
		},
		{
			Name:  "server-killed",
			Story: "A primary's server is killed as by the kernel: its shard serves again and what was written before is there",
			Needs: Lab,
			Tier:  Long,
			Play:  serverKilled,
		},
		{
			Name:    "worker-lost",
			Story:   "A worker with members on it is lost: the others serve all keys, and the members return with the worker",
			Needs:   Lab,
			Workers: 3,
			Tier:    Long,
			Limit:   10 * time.Minute,
			Play:    func(s *stage.Stage) { workerLost(s, persistent(3, 1)) },
		},
	}
}

func podsLost(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	expectWorkloads(c, "statefulsets", c.Members())
	c.Load(50_000, nil)
	before := c.Snapshot()
	w := c.StartWriter()
	for _, member := range []string{before.Replica(1), before.Primary(0)} {
		now := c.Snapshot()
		s.Say("deleting pod %s, a %s", now[member].Pod, now[member].Server.Role)
		c.DeletePods(now[member].Pod)
		awaitReplaced(c, now, member)
		c.AwaitReady()
		expectSameIDs(c, before)
	}
	now := c.Snapshot()
	s.Say("deleting all %d pods at once", len(now))
	c.DeletePods()
	awaitAllReplaced(c, now)
	c.AwaitReady()
	expectSameIDs(c, before)
	w.NothingLost(w.Stop())
	c.Verify(50_000, nil)
}

func serverKilled(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	victim := before[before.Primary(0)]
	s.Say("killing the server of %s, a primary", victim.Pod)
	s.KillServer(victim.Pod)
	c.AwaitServing()
	c.AwaitReady()
	expectSameIDs(c, before)
	c.Verify(50_000, nil)
}

func workerLost(s *stage.Stage, spec stage.Spec) {
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	worker := before[before.Primary(0)].Worker
	s.Cleanup(func(context.Context) error { s.LabCommand("node-start", worker); return nil })
	s.Say("worker %s, with primary %s on it, loses its power", worker, before.Primary(0))
	s.LabCommand("node-kill", worker)
	s.Await("all keys to be readable again without the worker", 4*time.Minute, func() (bool, string) {
		v, err := c.TryRead(50_000)
		if err != nil {
			return false, err.Error()
		}
		return v.Found == v.Keys, stage.BriefRead(v)
	})
	s.Say("all keys can be read; the worker comes back")
	s.LabCommand("node-start", worker)
	c.AwaitReady()
	expectSameIDs(c, before)
	c.Verify(50_000, nil)
}
