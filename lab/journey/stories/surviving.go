package stories

import (
	"context"
	"fmt"
	"time"

	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/ledger"
)

// readyLimit bounds waits for pods and conditions; it is no promise of speed.
const readyLimit = 3 * time.Minute

func surviving() []Journey {
	return []Journey{
		{
			Name:  "pods-lost",
			Story: "A persistent cluster loses a replica and a primary without an error, and then every pod at once: same node ids, every acknowledged write there",
			Limit: 8 * time.Minute,
			Play:  podsLost,
		},
		{
			Name:  "pods-lost-together",
			Story: "All pods are deleted at once while clients write, three times: the newest data serves, no acknowledged write is undone",
			Tier:  Long,
			Limit: 10 * time.Minute,
			Play:  func(s *stage.Stage) { podsLostTogether(s, s.Images.Valkey) },
		},
		{
			Name:  "pods-lost-together-oldest",
			Story: "The same on the oldest server",
			Tier:  Long,
			Limit: 10 * time.Minute,
			Play:  func(s *stage.Stage) { podsLostTogether(s, s.Images.ValkeyOld) },
		},
		{
			Name:  "server-killed",
			Story: "A primary's server is killed as by the kernel while clients write: its shard serves again with what was written before, at most a second of its writes is lost, and none that WAIT 1 confirmed",
			Needs: Lab,
			Tier:  Long,
			Limit: 8 * time.Minute,
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
		{
			Name:    "worker-lost-for-good",
			Story:   "A worker with a primary on it is lost and declared lost: the replica serves, the members come back with their volumes on other workers, the old primary as a replica, and no write that WAIT 1 confirmed is gone",
			Needs:   Lab,
			Workers: 3,
			Tier:    Long,
			Limit:   12 * time.Minute,
			Play:    workerLostForGood,
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
	w.NothingNoticed(w.Stop())
	losePodsTogether(c)
	expectSameIDs(c, before)
	c.Verify(50_000, nil)
}

// losePodsTogether deletes all pods at once under a writer.
func losePodsTogether(c *stage.Cluster) {
	now, w := c.Snapshot(), c.StartWriter()
	c.Say("deleting all %d pods at once", len(now))
	c.DeletePods()
	awaitAllReplaced(c, now)
	c.AwaitReady()
	w.NothingLost(w.Stop())
}

func podsLostTogether(s *stage.Stage, image string) {
	spec := persistent(3, 1)
	spec.Image = image
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	for range 3 {
		losePodsTogether(c)
	}
	expectSameIDs(c, before)
	c.Verify(50_000, nil)
}

// confirmed are the flags of a writer that counts a write once a replica has it.
var confirmed = []string{"--replicas", "1"}

func serverKilled(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	report := killUnderWrites(c)
	perShard := int64(report.PerSecond) / int64(c.Spec.Shards)
	s.Say("%d of %d acknowledged writes were undone by a kill", report.Undone, report.Acked)
	s.Expect(report.Undone <= perShard && report.Lost == 0 && report.Unread == 0,
		"more than a second of a shard's writes is gone, which is %d: %s", perShard, stage.Brief(report))
	waiting := killUnderWrites(c, confirmed...)
	s.Expect(waiting.Acked > 0 && waiting.Undone == 0 && waiting.Lost == 0 && waiting.Unread == 0,
		"writes that a replica had are gone: %s", stage.Brief(waiting))
	expectSameIDs(c, before)
	c.Verify(50_000, nil)
}

// killUnderWrites kills the server of the first shard's primary under a writer.
func killUnderWrites(c *stage.Cluster, flags ...string) ledger.Report {
	now, w := c.Snapshot(), c.StartWriter(flags...)
	victim := now[now.Primary(0)]
	c.Say("killing the server of %s, a primary", victim.Pod)
	c.KillServer(victim.Pod)
	c.AwaitServing()
	c.AwaitReady()
	return w.Stop()
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

func workerLostForGood(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	primary := before.Primary(0)
	worker := before[primary].Worker
	s.AvoidWorker(worker)
	w := c.StartWriter(confirmed...)
	s.Cleanup(func(context.Context) error { s.LabCommand("node-start", worker); return nil })
	s.Say("worker %s, with primary %s on it, loses its power", worker, primary)
	s.LabCommand("node-kill", worker)
	c.AwaitRole(before.Replica(0), "primary", readyLimit)
	s.Say("its replica %s serves; declaring the worker lost", before.Replica(0))
	s.DeclareLost(worker)
	s.Await("every member to run on another worker", 4*time.Minute, func() (bool, string) {
		moved := 0
		for _, p := range c.Pods() {
			if p.DeletionTimestamp == nil && p.Spec.NodeName != worker && running(&p) {
				moved++
			}
		}
		return moved == c.Members(), fmt.Sprintf("%d of %d", moved, c.Members())
	})
	c.AwaitReady()
	expectSameIDs(c, before)
	now := c.Snapshot()
	s.Expect(now[primary].Server.Role == "replica", "the old primary %s came back as a %s", primary, now[primary].Server.Role)
	w.NothingLost(w.Stop())
	s.Say("the worker comes back")
	s.LabCommand("node-start", worker)
	s.DeclareFound(worker)
	c.AwaitReady()
	c.Verify(50_000, nil)
}
