package stories

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/stage"
)

// sizing are the stories of sizes that are asked for and thought better of.
func sizing() []Journey {
	return []Journey{
		{
			Name:  "infeasible-and-back",
			Story: "A size that the driver can never give is asked for one volume only, the cluster stays Ready and takes other edits, and a smaller size ends it, unnoticed by clients",
			Needs: Lab,
			Play:  infeasibleAndBack,
		},
		{
			Name:  "size-changed-twice",
			Story: "The size is changed again, twice, while volumes grow: all end at the last one",
			Needs: Lab,
			Tier:  Long,
			Play:  sizeChangedTwice,
		},
		{
			Name:  "round-up",
			Story: "A driver that rounds up to whole Gi: a growth ends, another spelling touches nothing, a size below what it gave costs nothing, and the next growth ends as well",
			Needs: Lab,
			Tier:  Long,
			Play:  roundUp,
		},
	}
}

func infeasibleAndBack(s *stage.Stage) {
	s.TurnKnobs(`{"maxVolume":"128Mi"}`)
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(20_000, nil)
	before, claims, writer, follower := c.Snapshot(), c.RecordClaims(), c.StartWriter(), c.Follow()
	c.Resize("1Gi")
	c.AwaitCondition("StorageReady", metav1.ConditionFalse, "ExpansionInfeasible", readyLimit)
	s.AwaitEvent("VolumeExpansionFailed", "ExpansionInfeasible", readyLimit)
	expectAddsUser(c, "bystander")
	c.AwaitCondition("StorageReady", metav1.ConditionFalse, "ExpansionInfeasible", readyLimit)
	expectStillReady(c)
	ceiling := c.Get().Status.Storage.Ceiling
	s.Expect(ceiling != nil && ceiling.Size.String() == "1Gi", "status.storage.ceiling is %v", ceiling)
	c.Resize("100Mi")
	awaitGrown(c, "100Mi")
	s.AwaitEvent("VolumeExpansionRecovered", "", readyLimit)
	c.AwaitReady()
	follower.AlwaysReady(follower.Stop())
	writer.NothingNoticed(writer.Stop())
	expectOneCanary(c, stage.Asked(claims.Stop()), "1Gi", "100Mi")
	expectUntouched(c, before)
	c.Verify(20_000, nil)
}

// expectOneCanary checks that one claim alone was asked for a size in vain, and
// that all ended at another one.
func expectOneCanary(c *stage.Cluster, asked map[string][]string, vain, end string) {
	var canaries []string
	for claim, sizes := range asked {
		if len(sizes) > 1 && sizes[1] == vain {
			canaries, sizes = append(canaries, claim), append(sizes[:1:1], sizes[2:]...)
		}
		c.Expect(len(sizes) == 2 && sizes[1] == end, "claim %s asked for %v", claim, asked[claim])
	}
	c.Expect(len(canaries) == 1, "asked for %s were %v, want one of them", vain, canaries)
	for _, claim := range c.Claims() {
		c.Expect(claim.Status.Capacity.Storage().String() == end, "claim %s has %s", claim.Name, claim.Status.Capacity.Storage())
	}
	c.Say("only %s was asked for %s; all claims have %s", canaries[0], vain, end)
}

// expectAddsUser makes an edit that has nothing to do with volumes and checks
// that every server has it.
func expectAddsUser(c *stage.Cluster, name string) {
	c.Patch(`{"spec":{"users":[{"name":"` + name + `","nopass":true,"permissions":"~* &* +@all"}]}}`)
	as := *c
	as.Environment = map[string]string{"VALKEY_USERNAME": name, "VALKEY_PASSWORD": "any"}
	c.Await("every server to know user "+name, readyLimit, func() (bool, string) {
		for member, m := range as.Snapshot() {
			if m.Server.Error != "" {
				return false, member + ": " + m.Server.Error
			}
		}
		return true, ""
	})
	c.Say("an unrelated edit went through: every server knows user %s", name)
}

func sizeChangedTwice(s *stage.Stage) {
	s.TurnKnobs(`{"expandDelay":"15s"}`)
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	before, claims, follower := c.Snapshot(), c.RecordClaims(), c.Follow()
	for _, size := range []string{"96Mi", "128Mi"} {
		c.Resize(size)
		s.Await("a claim to ask for "+size, readyLimit, func() (bool, string) {
			return strings.Contains(claimVersions(c), size), claimVersions(c)
		})
	}
	c.Resize("160Mi")
	awaitGrown(c, "160Mi")
	follower.AlwaysReady(follower.Stop())
	for claim, sizes := range stage.Asked(claims.Stop()) {
		s.Expect(sizes[len(sizes)-1] == "160Mi" && len(sizes) <= 4, "claim %s asked for %v", claim, sizes)
	}
	told := slices.DeleteFunc(s.Events("VolumeExpanded"), func(e corev1.Event) bool { return e.InvolvedObject.Name != c.Spec.Name })
	s.Expect(len(told) == 1, "the cluster told VolumeExpanded %d times", len(told))
	expectUntouched(c, before)
}

func roundUp(s *stage.Stage) {
	s.TurnKnobs(`{"roundUp":"1Gi"}`)
	spec := persistent(1, 1)
	spec.Size = "1500Mi"
	c := s.Create(spec)
	c.AwaitReady()
	before, follower := c.Snapshot(), c.Follow()
	c.Resize("2500Mi")
	awaitGrown(c, "2500Mi")
	claims := claimVersions(c)
	c.Patch(`{"spec":{"storage":{"size":"2560000Ki"}}}`)
	awaitObserved(c)
	c.AwaitCondition("StorageReady", metav1.ConditionTrue, "VolumeExpanded", readyLimit)
	s.Expect(claimVersions(c) == claims, "another spelling of the size touched a claim")
	expectVolumesOf(c, "3Gi")
	// Kubernetes never tells the claim that it has this, since the driver gave it before.
	c.Resize("2560Mi")
	s.Hold("every server is reached and nothing is degraded", quietFor, func() (bool, string) {
		got := c.Get()
		return isTrue(got.Status.Conditions, "Ready") && !isTrue(got.Status.Conditions, "Degraded"), got.Brief()
	})
	expectVolumesOf(c, "3Gi")
	c.Resize("3500Mi")
	awaitGrown(c, "3500Mi")
	expectVolumesOf(c, "4Gi")
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
}

// expectVolumesOf checks what the driver made of every volume. Claims show what
// they asked for.
func expectVolumesOf(c *stage.Cluster, size string) {
	for _, claim := range c.Claims() {
		volume, err := c.Typed.CoreV1().PersistentVolumes().Get(c.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		c.NoError(err, "reading the volume of claim "+claim.Name)
		has := volume.Spec.Capacity.Storage()
		c.Expect(has.String() == size, "the volume of claim %s has %s", claim.Name, has)
	}
}

// quietFor is how long a story looks that nothing happens: twice the time in
// which the operator looks at agents again.
const quietFor = 20 * time.Second
