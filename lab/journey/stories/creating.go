package stories

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
)

func creating() []Journey {
	return []Journey{
		{
			Name:  "create-ephemeral",
			Story: "A cluster without storage runs on Deployments, has no claims, and keeps its keys when one pod is lost",
			Play:  createEphemeral,
		},
		{
			Name:  "create-smallest",
			Story: "One shard without replicas becomes Ready and finds its identity and keys on its volume when its pod is lost",
			Play:  createSmallest,
		},
		{
			Name:  "create-deployment",
			Story: "A Deployment works with a volume too, on the oldest server: it loses its pods, grows, and keeps its keys",
			Play:  createDeployment,
		},
		{
			Name:  "create-oldest",
			Story: "Three shards with replicas form on the oldest server and keep everything when every pod is lost",
			Tier:  Long,
			Play:  createOldest,
		},
		{
			Name:  "longest-name",
			Story: "The longest name that is accepted works for every object that is named after it; a longer one is refused",
			Tier:  Long,
			Play:  longestName,
		},
		{
			Name:  "mistake-put-right",
			Story: "An image that does not exist, or a setting that the server refuses: the object says so, and putting it right is enough",
			Tier:  Long,
			Play:  mistakePutRight,
		},
		{
			Name:  "restricted-namespace",
			Story: "Pods satisfy the Pod Security level restricted; a chown container is refused with a reason on the object",
			Play:  restrictedNamespace,
		},
	}
}

func createEphemeral(s *stage.Stage) {
	c := s.Create(stage.Spec{Name: "sessions", Shards: 3, Replicas: 1})
	c.AwaitReady()
	expectWorkloads(c, "deployments", c.Members())
	s.Expect(len(c.Claims()) == 0, "an ephemeral cluster has claims")
	c.Load(10_000, nil)
	before := c.Snapshot()
	victim := before[before.Primary(0)]
	s.Say("deleting pod %s, a primary", victim.Pod)
	c.DeletePods(victim.Pod)
	awaitReplaced(c, before, before.Primary(0))
	c.AwaitReady()
	c.Verify(10_000, nil)
}

func createSmallest(s *stage.Stage) {
	c := s.Create(persistent(1, 0))
	c.AwaitReady()
	expectWorkloads(c, "statefulsets", 1)
	got := c.Get()
	warning, known := contract.Condition(got.Status.Conditions, "ConfigurationWarning")
	s.Expect(known && warning.Status == metav1.ConditionTrue, "nothing warns that the default user is open")
	c.Load(10_000, nil)
	before := c.Snapshot()
	c.DeletePods()
	awaitReplaced(c, before, "0-0")
	c.AwaitReady()
	expectSameIDs(c, before)
	c.Verify(10_000, nil)
}

func createDeployment(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.WorkloadType, spec.Image = "Deployment", s.Images.ValkeyOld
	c := s.Create(spec)
	c.AwaitReady()
	expectWorkloads(c, "deployments", 2)
	s.Expect(len(c.Claims()) == 2, "%d claims of 2", len(c.Claims()))
	expectVersion(c, s.Images.ValkeyOld)
	c.Load(10_000, nil)
	before := c.Snapshot()
	c.DeletePods()
	awaitReplaced(c, before, "0-0", "0-1")
	c.AwaitReady()
	expectSameIDs(c, before)
	c.Verify(10_000, nil)
	c.Resize("128Mi")
	awaitGrown(c, "128Mi")
	c.Verify(10_000, nil)
}

func createOldest(s *stage.Stage) {
	spec := persistent(3, 1)
	spec.Image = s.Images.ValkeyOld
	c := s.Create(spec)
	c.AwaitReady()
	expectVersion(c, s.Images.ValkeyOld)
	c.Load(50_000, nil)
	before := c.Snapshot()
	w := c.StartWriter()
	c.DeletePods()
	awaitAllReplaced(c, before)
	c.AwaitReady()
	expectSameIDs(c, before)
	w.NothingLost(w.Stop())
	c.Verify(50_000, nil)
}

func longestName(s *stage.Stage) {
	spec := persistent(2, 1)
	spec.Name = strings.Repeat("n", 39)
	err := s.TryApply(s.Manifest(spec))
	s.Expect(err != nil && strings.Contains(err.Error(), "38 characters"), "a name of 39 characters: %v", err)
	spec.Name = spec.Name[:38]
	c := s.Create(spec)
	c.AwaitReady()
	c.Resize("128Mi")
	awaitGrown(c, "128Mi")
	before := c.Snapshot()
	c.DeletePods()
	awaitAllReplaced(c, before)
	c.AwaitReady()
}

// mistakePutRight makes two clusters with a mistake each, for both workloads.
func mistakePutRight(s *stage.Stage) {
	image := stage.Spec{Name: "no-image", Shards: 1, Size: "64Mi", Image: "valkey/valkey:there-is-no-such-version"}
	setting := stage.Spec{Name: "no-setting", Shards: 1, More: "  config: {maxmemroy: 512mb}\n"}
	noImage, noSetting := s.Create(image), s.Create(setting)
	expectTold(noImage, "there-is-no-such-version")
	expectTold(noSetting, "maxmemroy")
	s.Say("putting both right")
	noImage.Patch(fmt.Sprintf(`{"spec":{"image":%q}}`, s.Images.Valkey))
	noSetting.Patch(`{"spec":{"config":{"maxmemroy":null,"maxmemory":"32mb"}}}`)
	noImage.AwaitReady()
	noSetting.AwaitReady()
}

// expectTold waits until a condition of the cluster quotes a word of the cause.
func expectTold(c *stage.Cluster, word string) {
	c.Await("cluster "+c.Spec.Name+" to tell what is wrong", readyLimit, func() (bool, string) {
		got := c.Get()
		for _, condition := range got.Status.Conditions {
			if strings.Contains(condition.Message, word) {
				c.Say("%s is %s/%s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
				return true, ""
			}
		}
		return false, got.Brief()
	})
}

func restrictedNamespace(s *stage.Stage) {
	s.LabelNamespace("pod-security.kubernetes.io/enforce", "restricted")
	c := s.Create(persistent(1, 1))
	chown := s.Create(stage.Spec{Name: "chown", Shards: 1, Size: "64Mi", More: "  volumePermissions: true\n"})
	c.AwaitReady()
	expectTold(chown, "restricted")
	s.Expect(len(chown.Claims()) <= 1, "%d claims for one member", len(chown.Claims()))
	s.Say("taking volumePermissions back")
	chown.Patch(`{"spec":{"volumePermissions":false}}`)
	chown.AwaitReady()
}

// expectWorkloads checks how many of a kind of workload the cluster has.
func expectWorkloads(c *stage.Cluster, kind string, want int) {
	names := strings.Fields(c.Kubectl("get", kind, "-l", c.Selector(), "-o", "name"))
	c.Expect(len(names) == want, "%d %s of %d", len(names), kind, want)
}

// expectVersion checks that the servers run the version that the image's tag begins with.
func expectVersion(c *stage.Cluster, image string) {
	tag := image[strings.LastIndex(image, ":")+1:]
	for name, m := range c.Snapshot() {
		c.Expect(strings.HasPrefix(m.Server.Version, tag), "%s runs %s, image %s", name, m.Server.Version, image)
	}
	c.Say("all servers run %s", tag)
}

// expectSameIDs checks that each member is the same node of the Valkey cluster as before.
func expectSameIDs(c *stage.Cluster, before stage.Members) {
	now := c.Snapshot().IDs()
	for name, id := range before.IDs() {
		c.Expect(now[name] == id, "member %s was node %s and is %s", name, id, now[name])
	}
	c.Say("all %d node ids are unchanged", len(now))
}

// awaitReplaced waits until the named members run in other pods than before.
func awaitReplaced(c *stage.Cluster, before stage.Members, members ...string) {
	uids := before.UIDs()
	c.Await(fmt.Sprintf("%d pods to be replaced", len(members)), readyLimit, func() (bool, string) {
		replaced := 0
		for _, p := range c.Pods() {
			m := stage.MemberOf(&p)
			if slices.Contains(members, m) && p.DeletionTimestamp == nil && string(p.UID) != uids[m] && running(&p) {
				replaced++
			}
		}
		return replaced == len(members), fmt.Sprintf("%d of %d run again", replaced, len(members))
	})
}

// awaitAllReplaced is awaitReplaced of every member.
func awaitAllReplaced(c *stage.Cluster, before stage.Members) {
	var all []string
	for name := range before {
		all = append(all, name)
	}
	awaitReplaced(c, before, all...)
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }
