package stories

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

func rolling() []Journey {
	return []Journey{
		{
			Name:  "roll-image",
			Story: "Another image under load: every pod is replaced once, one of a shard at a time and replicas first, with one failover a shard, no error and no lost write; sizes edited meanwhile and later grow and roll nothing",
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  rollImage,
		},
		{
			Name:  "roll-to-newest",
			Story: "The oldest server is rolled to the newest without a lost write or an error; the way back is refused with a reason and touches nothing",
			Limit: 8 * time.Minute,
			Play:  rollToNewest,
		},
		{
			Name:  "roll-ephemeral",
			Story: "An ephemeral cluster on Deployments gets other resources: every pod is replaced, no key is lost and no client sees an error",
			Tier:  Long,
			Limit: 8 * time.Minute,
			Play:  rollEphemeral,
		},
		{
			Name:  "roll-single",
			Story: "A lone member with a volume restarts in place and keeps its keys; one without is left alone until an annotation allows the loss",
			Tier:  Long,
			Play:  rollSingle,
		},
		{
			Name:  "roll-operator-killed",
			Story: "The operator is killed at random moments of two rolls, of resources and from the oldest server to the newest: each ends as without",
			Tier:  Long,
			Limit: 15 * time.Minute,
			Play:  rollOperatorKilled,
		},
	}
}

func rollImage(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	expectRoll(c, func() {
		s.Say("rolling from %s to %s, and asking for more room meanwhile", before["0-0"].Image, s.Images.ValkeySame)
		c.Patch(imagePatch(s.Images.ValkeySame))
		c.Resize("96Mi")
	})
	awaitGrown(c, "96Mi")
	after := c.Snapshot()
	expectSameIDs(c, before)
	expectElections(c, before, c.Spec.Shards)
	for name, m := range after {
		s.Expect(m.Image == s.Images.ValkeySame, "%s runs %s", name, m.Image)
	}
	c.Resize("128Mi")
	awaitGrown(c, "128Mi")
	expectUntouched(c, after)
	c.Verify(50_000, nil)
}

func rollToNewest(s *stage.Stage) {
	spec := persistent(3, 1)
	spec.Image = s.Images.ValkeyOld
	c := s.Create(spec)
	c.AwaitReady()
	expectVersion(c, spec.Image)
	c.Load(50_000, nil)
	before, newest := c.Snapshot(), s.ValkeyImage()
	expectRoll(c, func() { c.Patch(imagePatch(newest)) })
	expectSameIDs(c, before)
	expectElections(c, before, spec.Shards)
	expectVersion(c, newest)
	s.Say("asking for %s again", spec.Image)
	rolled, writer := c.Snapshot(), c.StartWriter()
	c.Patch(imagePatch(spec.Image))
	c.AwaitTold("DowngradeRefused", readyLimit)
	s.Hold("no pod is touched", quietFor, func() (bool, string) { return samePods(c, rolled), "a pod was replaced" })
	c.Patch(imagePatch(newest))
	c.AwaitUntold("DowngradeRefused", readyLimit)
	c.AwaitReady()
	expectUntouched(c, rolled)
	writer.NothingNoticed(writer.Stop())
	c.Verify(50_000, nil)
}

func rollEphemeral(s *stage.Stage) {
	c := s.Create(stage.Spec{Name: "sessions", Shards: 3, Replicas: 1})
	c.AwaitReady()
	expectWorkloads(c, "deployments", c.Members())
	c.Load(50_000, nil)
	expectRoll(c, func() { c.Patch(resourcesPatch) })
	c.Verify(50_000, nil)
}

// allowsLoss finds the command by which a user allows that a restart loses keys.
var allowsLoss = regexp.MustCompile(`kubectl annotate valkeycluster [^,;]*`)

func rollSingle(s *stage.Stage) {
	lone, careless := s.Create(persistent(1, 0)), s.Create(stage.Spec{Name: "sessions", Shards: 1})
	lone.AwaitReady()
	careless.AwaitReady()
	lone.Load(10_000, nil)
	careless.Load(1_000, nil)
	before, beforeCareless, writer := lone.Snapshot(), careless.Snapshot(), lone.StartWriter()
	lone.Patch(resourcesPatch)
	careless.Patch(resourcesPatch)
	awaitAllReplaced(lone, before)
	lone.AwaitReady()
	writer.NothingLost(writer.Stop())
	expectSameIDs(lone, before)
	lone.Verify(10_000, nil)
	allowLossAsTold(careless, beforeCareless)
}

// allowLossAsTold runs the command that the cluster's message has.
func allowLossAsTold(c *stage.Cluster, before stage.Members) {
	told := c.AwaitTold("DataLossOnRestart", readyLimit)
	c.Hold("the member without a volume is left alone", quietFor, func() (bool, string) { return samePods(c, before), "its pod was replaced" })
	c.Verify(1_000, nil)
	command := allowsLoss.FindString(told.Message)
	c.Expect(command != "", "the message has no command that allows the loss")
	c.Say("allowing the loss: %s", command)
	c.Shell(command)
	awaitAllReplaced(c, before)
	c.AwaitUntold("DataLossOnRestart", readyLimit)
	c.AwaitReady()
}

func rollOperatorKilled(s *stage.Stage) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not a secret
	s.Say("seed %d", seed)
	spec := persistent(3, 1)
	spec.Image = s.Images.ValkeyOld
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(20_000, nil)
	before := c.Snapshot()
	for _, edit := range []string{resourcesPatch, imagePatch(s.ValkeyImage())} {
		expectRoll(c, func() {
			c.Patch(edit)
			s.KillAtRandom(random, 5)
		})
	}
	expectSameIDs(c, before)
	expectVersion(c, s.ValkeyImage())
	c.Verify(20_000, nil)
}

// resourcesPatch is an edit that needs new pods and changes nothing that a server notices.
const resourcesPatch = `{"spec":{"resources":{"requests":{"memory":"48Mi"}}}}`

func imagePatch(image string) string { return fmt.Sprintf(`{"spec":{"image":%q}}`, image) }

// expectRoll makes an edit under load and checks that every pod is replaced in
// turn and that nobody notices.
func expectRoll(c *stage.Cluster, edit func()) {
	before, writer, follower, pods := c.Snapshot(), c.StartWriter(), c.Follow(), c.RecordPods()
	edit()
	awaitAllReplaced(c, before)
	took := c.AwaitReady()
	c.Say("rolled; Ready %.1f s after the last pod ran", took.Seconds())
	versions := follower.Stop()
	follower.AlwaysReady(versions)
	c.Expect(stage.Ever(versions, "Progressing", metav1.ConditionTrue, "RollingOut"), "Progressing never was True/RollingOut")
	writer.NothingNoticed(writer.Stop())
	expectReplicasFirst(c, before, pods)
	now := c.Snapshot()
	for shard := range c.Spec.Shards {
		c.Expect(now.Primary(shard) == before.Replica(shard), "primary %s of shard %d did not hand over once", before.Primary(shard), shard)
	}
}

// expectElections checks how many elections there were since before: each
// raises the epoch, also one that nobody won. Members that keep their ids raise
// it by nothing else.
func expectElections(c *stage.Cluster, before stage.Members, want int) {
	elections := c.Snapshot().Epoch() - before.Epoch()
	c.Expect(elections == int64(want), "%d elections, want %d", elections, want)
	c.Say("there were %d elections", elections)
}

// samePods says whether every pod is still the one of before. It asks
// Kubernetes alone.
func samePods(c *stage.Cluster, before stage.Members) bool {
	uids, pods := before.UIDs(), c.Pods()
	for i := range pods {
		if uids[stage.MemberOf(&pods[i])] != string(pods[i].UID) || pods[i].DeletionTimestamp != nil {
			return false
		}
	}
	return len(pods) == len(before)
}

// down are the members that are not ready, and whether there are no more of them than allowed.
func down(c *stage.Cluster, allowed int) (ok bool, names string) {
	ready := map[string]bool{}
	for _, p := range c.Pods() {
		ready[stage.MemberOf(&p)] = ready[stage.MemberOf(&p)] || stage.PodReady(&p)
	}
	var missing []string
	for member, is := range ready {
		if !is {
			missing = append(missing, member)
		}
	}
	return len(missing)+c.Members()-len(ready) <= allowed, "down: " + strings.Join(missing, " ")
}
