package stories

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/ledger"
)

// filling are the stories of disks that are full.
func filling() []Journey {
	return []Journey{
		{
			Name:  "full-disk-auto",
			Story: "A primary's disk is full while clients write: its shard's volumes grow by themselves, writes are taken again, nothing restarts and nothing is lost",
			Needs: Lab,
			Play:  func(s *stage.Stage) { fullDiskAuto(s, s.Images.Valkey) },
		},
		{
			Name:  "full-disk-auto-oldest",
			Story: "The same on the oldest server",
			Needs: Lab,
			Tier:  Long,
			Play:  func(s *stage.Stage) { fullDiskAuto(s, s.Images.ValkeyOld) },
		},
		{
			Name:  "full-disks-by-hand",
			Story: "Every disk is full and a pod has to start on one: a larger size heals all of it, and nobody touches a pod",
			Needs: Lab,
			Tier:  Long,
			Play:  func(s *stage.Stage) { fullDisksByHand(s, s.Images.Valkey) },
		},
		{
			Name:  "full-disks-by-hand-oldest",
			Story: "The same on the oldest server",
			Needs: Lab,
			Tier:  Long,
			Play:  func(s *stage.Stage) { fullDisksByHand(s, s.Images.ValkeyOld) },
		},
		{
			Name:  "replica-disk-full",
			Story: "A replica's disk is full: clients notice nothing, nothing restarts, it is told, and a larger size ends it",
			Needs: Lab,
			Tier:  Long,
			Play:  replicaDiskFull,
		},
		{
			Name:  "crash-looping-full-disk",
			Story: "Servers of the oldest line that cannot start for want of space: a larger size is asked for although nothing is healthy, and they start",
			Needs: Lab,
			Tier:  Long,
			Play:  crashLooping,
		},
	}
}

// refusedFor is the most that writes may be refused when a disk is full and its
// volume grows by itself, beside what the driver takes (nothing in the lab).
const refusedFor = 90 * time.Second

func autoExpansion(settings string) string { return "    autoExpansion: {" + settings + "}\n" }

func fullDiskAuto(s *stage.Stage, image string) {
	spec := persistent(1, 1)
	spec.Image, spec.MoreStorage = image, autoExpansion("mode: Auto, maxSize: 512Mi, increment: 64Mi, cooldown: 0s")
	c := s.Create(spec)
	c.AwaitReady()
	c.AwaitCondition("AutoExpansion", metav1.ConditionTrue, "Armed", readyLimit)
	c.Load(10_000, nil)
	before, writer := c.Snapshot(), c.StartWriter("--size", "256")
	primary := before.Primary(0)
	s.Say("filling the disk of primary %s", primary)
	s.FillVolume(before[primary].Pod, 100)
	s.AwaitEvent("DiskFull", primary, readyLimit)
	s.AwaitEvent("VolumeExpanding", "by itself", readyLimit)
	awaitLarger(c, "64Mi")
	c.AwaitReady()
	report := writer.Stop()
	writer.NothingLost(report)
	expectRefused(c, report)
	s.Expect(stage.LongestStall(report) < refusedFor.Seconds(), "writes were refused for %.1f s", stage.LongestStall(report))
	s.Say("writes were refused for %.1f s", stage.LongestStall(report))
	expectUntouched(c, before)
	shards := c.Get().Status.Storage.Shards
	s.Expect(len(shards) == 1 && shards[0].AutoTarget.Cmp(resource.MustParse("128Mi")) >= 0, "status.storage.shards is %v", shards)
	size := s.Kubectl("get", "valkeycluster", c.Spec.Name, "-o", "jsonpath={.spec.storage.size}")
	s.Expect(size == "64Mi", "spec.storage.size was changed to %s", size)
	c.Verify(10_000, nil)
}

// expectRefused checks that a disk was really full, and that clients were told
// so and nothing else.
func expectRefused(c *stage.Cluster, report ledger.Report) {
	c.Expect(report.ErrorKinds["MISCONF"] > 0, "no write was refused, so no disk was full")
	c.Expect(report.ErrorKinds["MISCONF"] == report.Errors, "clients saw other errors than MISCONF: %v", report.ErrorKinds)
}

// awaitLarger waits until every volume is larger than a size and the object has
// nothing more to say of them.
func awaitLarger(c *stage.Cluster, size string) {
	least := resource.MustParse(size)
	c.Await("every volume to be larger than "+size, readyLimit, func() (bool, string) {
		var line []string
		larger := true
		for _, claim := range c.Claims() {
			has := claim.Status.Capacity.Storage()
			larger = larger && has.Cmp(least) > 0
			line = append(line, has.String())
		}
		return larger, strings.Join(line, " ")
	})
	c.AwaitCondition("StorageReady", metav1.ConditionTrue, "VolumeExpanded", readyLimit)
}

func fullDisksByHand(s *stage.Stage, image string) {
	spec := persistent(3, 1)
	spec.Image = image
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(10_000, nil)
	before, writer := c.Snapshot(), c.StartWriter("--size", "256")
	s.Say("filling the disks of all %d members", c.Members())
	fillAll(c)
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "DiskFull", readyLimit)
	s.Expect(strings.Contains(told.Message, "spec.storage.size"), "the message says nothing of what to do: %s", told.Message)
	replica := before.Replica(0)
	s.Say("deleting pod %s, which has to start on a full disk; filling the disks again", before[replica].Pod)
	c.DeletePods(before[replica].Pod)
	awaitNewPod(c, before, replica)
	fillAll(c)
	c.Resize("256Mi")
	awaitGrown(c, "256Mi")
	c.AwaitReady()
	report := writer.Stop()
	writer.NothingLost(report)
	s.Expect(report.ErrorKinds["MISCONF"] > 0, "no write was refused, so no disk was full")
	s.Expect(c.Snapshot().Restarts() == 0, "containers were restarted: %v", c.Restarts())
	c.Verify(10_000, nil)
}

func fillAll(c *stage.Cluster) {
	for _, p := range c.Pods() {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			c.FillVolume(p.Name, 100)
		}
	}
}

// awaitNewPod waits until another pod of a member has its volume mounted. It
// asks Kubernetes alone: the server may be unable to start.
func awaitNewPod(c *stage.Cluster, before stage.Members, member string) {
	c.Await("another pod of "+member+" to run its agent", readyLimit, func() (bool, string) {
		for _, p := range c.Pods() {
			if stage.MemberOf(&p) == member && string(p.UID) != before[member].UID && p.DeletionTimestamp == nil {
				return p.Status.PodIP != "", string(p.Status.Phase)
			}
		}
		return false, "no pod"
	})
}

func replicaDiskFull(s *stage.Stage) {
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	before, writer, follower := c.Snapshot(), c.StartWriter("--size", "256"), c.Follow()
	replica := before.Replica(0)
	s.Say("filling the disk of replica %s", replica)
	s.FillVolume(before[replica].Pod, 100)
	c.AwaitVolume(replica, "DiskFull", readyLimit)
	c.Resize("256Mi")
	awaitGrown(c, "256Mi")
	c.AwaitReady()
	follower.AlwaysReady(follower.Stop())
	writer.NothingNoticed(writer.Stop())
	expectUntouched(c, before)
}

func crashLooping(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.Image = s.Images.ValkeyOld
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(10_000, nil)
	before, writer := c.Snapshot(), c.StartWriter("--size", "256")
	s.Say("filling both disks")
	fillAll(c)
	c.AwaitCondition("StorageReady", metav1.ConditionFalse, "DiskFull", readyLimit)
	// What the agents give back is for the last writes, so these come first.
	writer.NothingLost(writer.Stop())
	keys := c.Snapshot().Keys()
	s.Say("taking what the agents gave back as well, and deleting all pods")
	fillAll(c)
	c.DeletePods()
	for member := range before {
		awaitNewPod(c, before, member)
	}
	s.Await("a server that is down for want of space", readyLimit, func() (bool, string) {
		fillAll(c)
		var decisions []string
		for _, n := range c.Nodes() {
			decisions = append(decisions, fmt.Sprintf("%s %s/%s", n.Metadata.Name, n.Status.Agent.Server, n.Status.Agent.Decision))
		}
		return strings.Contains(strings.Join(decisions, " "), "VolumeFull"), strings.Join(decisions, ", ")
	})
	got := c.Get()
	s.Expect(!contract.Is(got.Status.Conditions, "Ready", metav1.ConditionTrue, ""), "the cluster is Ready without its servers")
	c.Resize("256Mi")
	awaitGrown(c, "256Mi")
	c.AwaitReady()
	now := c.Snapshot()
	s.Expect(now.Keys() == keys, "there were %d keys and are %d", keys, now.Keys())
	s.Expect(now.Restarts() == 0, "containers were restarted: %v", c.Restarts())
	c.Verify(10_000, nil)
}
