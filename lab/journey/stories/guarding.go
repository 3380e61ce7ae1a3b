package stories

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

func guarding() []Journey {
	return []Journey{
		{
			Name:  "emptied-primary",
			Story: "A primary loses its data and restarts at once: its replica keeps every key and takes over",
			Needs: Lab,
			Play:  func(s *stage.Stage) { emptiedPrimary(s, s.Images.Valkey) },
		},
		{
			Name:  "emptied-primary-oldest",
			Story: "The same on the oldest server",
			Needs: Lab,
			Tier:  Long,
			Play:  func(s *stage.Stage) { emptiedPrimary(s, s.Images.ValkeyOld) },
		},
		{
			Name:  "emptied-primary-again",
			Story: "The same three times, with a long and with a short node timeout",
			Needs: Lab,
			Tier:  Long,
			Limit: 15 * time.Minute,
			Play:  emptiedPrimaryAgain,
		},
		{
			Name:  "emptied-primary-ephemeral",
			Story: "An ephemeral primary's server is killed and restarts empty at once: its replica keeps every key and takes over",
			Needs: Lab,
			Tier:  Long,
			Play:  emptiedEphemeral,
		},
		{
			Name:  "one-server-per-volume",
			Story: "A pod of a Deployment is deleted by force while clients write: two servers never share the volume, no acknowledged write is lost",
			Play:  oneServerPerVolume,
		},
	}
}

func emptiedPrimary(s *stage.Stage, image string) {
	spec := persistent(3, 1)
	spec.Image = image
	expectReplicaKeepsKeys(s, s.Create(spec))
}

func emptiedPrimaryAgain(s *stage.Stage) {
	for _, timeout := range []string{"15000", "2000"} {
		s.Say("cluster-node-timeout %s ms", timeout)
		spec := persistent(3, 1)
		spec.Name += timeout
		spec.More = fmt.Sprintf("  config: {cluster-node-timeout: %q}\n", timeout)
		c := s.Create(spec)
		for range 3 {
			expectReplicaKeepsKeys(s, c)
		}
		c.Delete("background")
	}
}

func emptiedEphemeral(s *stage.Stage) {
	expectReplicaKeepsKeys(s, s.Create(stage.Spec{Name: "sessions", Shards: 3, Replicas: 1}))
}

func expectReplicaKeepsKeys(s *stage.Stage, c *stage.Cluster) {
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	primary, replica := before.Primary(0), before.Replica(0)
	s.Say("emptying the volume of primary %s (%d keys) and killing its server", primary, before[primary].Server.Keys)
	s.EmptyAndKill(before[primary].Pod)
	s.Await("the replica to take over with all its keys", readyLimit, func() (bool, string) {
		now := c.Snapshot()[replica].Server
		s.Expect(now.Error != "" || now.Keys > 0, "the replica has lost its keys")
		return now.Role == "primary" && now.Keys == before[primary].Server.Keys, fmt.Sprintf("%s with %d keys %s", now.Role, now.Keys, now.Error)
	})
	s.Say("replica %s took over with all keys", replica)
	c.AwaitReady()
	c.Verify(50_000, nil)
}

func oneServerPerVolume(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.WorkloadType = "Deployment"
	c := s.Create(spec)
	c.AwaitReady()
	before := c.Snapshot()
	w := c.StartWriter()
	for _, member := range []string{before.Primary(0), before.Replica(0)} {
		now := c.Snapshot()
		s.Say("deleting pod %s by force: the API server forgets it while it still runs", now[member].Pod)
		c.Kubectl("delete", "pod", now[member].Pod, "--force", "--grace-period=0")
		awaitReplaced(c, now, member)
		c.AwaitReady()
	}
	expectSameIDs(c, before)
	w.NothingLost(w.Stop())
}

// settledFor is how long nothing may be written for a settled cluster.
const settledFor = 75 * time.Second

func expectNoWrites(s *stage.Stage, c *stage.Cluster) {
	version := c.Get().Metadata.ResourceVersion
	events := eventCount(s)
	counts := s.CountRequests("system:serviceaccount:"+stage.OperatorNamespace+":"+stage.OperatorName, settledFor)
	s.Say("the operator's requests in %.0f s: %s", settledFor.Seconds(), counts)
	s.Expect(counts.Writes() == 0, "a settled cluster caused %d writes: %s", counts.Writes(), counts)
	s.Expect(c.Get().Metadata.ResourceVersion == version, "the object was written")
	s.Expect(eventCount(s) == events, "there are new events")
}

func eventCount(s *stage.Stage) int {
	list, err := s.Typed.CoreV1().Events(s.Namespace).List(s.Context(), metav1.ListOptions{})
	s.NoError(err, "listing events")
	n := 0
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "ValkeyCluster" || e.InvolvedObject.Kind == "ValkeyNode" {
			n += int(max(e.Count, 1))
		}
	}
	return n
}
