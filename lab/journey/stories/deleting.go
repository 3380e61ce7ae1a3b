package stories

import (
	"context"
	"fmt"
	"strings"
	"time"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
)

func deleting() []Journey {
	return []Journey{
		{
			Name:  "retained-volumes-return",
			Story: "A cluster is deleted and made again under its name: its kept volumes are taken up, same ids, same keys; another cluster's volumes are refused",
			Limit: 8 * time.Minute,
			Play:  retainedVolumesReturn,
		},
		{
			Name:  "delete-policy",
			Story: "With whenDeleted Delete the claims go with the cluster, also in a foreground deletion, and nothing is made anew meanwhile",
			Play:  deletePolicy,
		},
		{
			Name:  "operator-gone-first",
			Story: "A cluster and its namespace can be deleted when the operator is gone already",
			Play:  operatorGoneFirst,
		},
	}
}

func retainedVolumesReturn(s *stage.Stage) {
	spec := persistent(3, 1)
	c := s.Create(spec)
	c.AwaitReady()
	c.Load(20_000, nil)
	before, claims := c.Snapshot(), claimVersions(c)
	s.Say("deleting the cluster")
	c.Delete("background")
	awaitNoPods(c)
	s.Expect(claimVersions(c) == claims, "the kept claims are not those of before:\n%s", claimVersions(c))
	c = s.Create(spec)
	c.AwaitReady()
	s.Expect(claimVersions(c) == claims, "the claims were not taken up again:\n%s", claimVersions(c))
	expectSameIDs(c, before)
	c.Verify(20_000, nil)
	foreignVolumeRefused(s, c)
}

// foreignVolumeRefused gives one kept claim another identity, as a restored or
// copied claim has, and makes the cluster again.
func foreignVolumeRefused(s *stage.Stage, c *stage.Cluster) {
	s.Say("deleting the cluster again; one of its claims now says that it is of another cluster")
	c.Delete("background")
	awaitNoPods(c)
	victim := c.Claims()[0]
	id := victim.Annotations[contract.ClusterIDAnnotation]
	s.Expect(id != "", "claim %s does not say whose data it has", victim.Name)
	s.Kubectl("annotate", "pvc", victim.Name, contract.ClusterIDAnnotation+"=somebody-else", "--overwrite")
	c = s.Create(c.Spec)
	refused := func() (bool, string) {
		got := c.Get()
		var all []string
		for _, condition := range got.Status.Conditions {
			all = append(all, condition.Type+"="+string(condition.Status)+"/"+condition.Reason)
		}
		text := strings.Join(all, " ")
		return strings.Contains(text, "ForeignVolume") || strings.Contains(text, "IdentityConflict"), text
	}
	s.Await("the foreign claim to be refused with a reason", readyLimit, refused)
	s.Expect(!c.Get().Ready(), "the cluster is Ready with a foreign claim")
	s.Say("the foreign claim is refused; it gets its identity back")
	s.Kubectl("annotate", "pvc", victim.Name, contract.ClusterIDAnnotation+"="+id, "--overwrite")
	c.AwaitReady()
	c.Verify(20_000, nil)
}

func awaitNoPods(c *stage.Cluster) {
	c.Await("the cluster's pods to be gone", readyLimit, func() (bool, string) {
		n := len(c.Pods())
		return n == 0, fmt.Sprintf("%d pods", n)
	})
}

func deletePolicy(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.MoreStorage = "    retention: {whenDeleted: Delete}\n"
	for _, propagation := range []string{"background", "foreground"} {
		c := s.Create(spec)
		c.AwaitReady()
		pods := podUIDs(c)
		s.Say("deleting it, %s", propagation)
		s.Kubectl("delete", "valkeycluster", spec.Name, "--cascade="+propagation, "--wait=false")
		s.Await("the cluster, its pods and its claims to be gone", readyLimit, func() (bool, string) {
			for uid := range podUIDs(c) {
				s.Expect(pods[uid], "a pod was made during the deletion")
			}
			left := s.Kubectl("get", "valkeyclusters,valkeynodes,pods,pvc,statefulsets,services,configmaps,secrets", "-l", c.Selector(), "-o", "name")
			return left == "" && strings.TrimSpace(s.Kubectl("get", "valkeyclusters", "-o", "name")) == "", strings.Join(strings.Fields(left), " ")
		})
		s.Say("nothing is left")
	}
	retained := persistent(1, 0)
	retained.MoreStorage = spec.MoreStorage
	c := s.Create(retained)
	c.AwaitReady()
	s.Say("changing the policy to Retain on the live cluster")
	c.Patch(`{"spec":{"storage":{"retention":{"whenDeleted":"Retain"}}}}`)
	awaitObserved(c)
	s.Await("the claim to have no owner", readyLimit, func() (bool, string) {
		owners := c.Claims()[0].OwnerReferences
		return len(owners) == 0, fmt.Sprint(owners)
	})
	c.Delete("foreground")
	awaitNoPods(c)
	s.Expect(len(c.Claims()) == 1 && c.Claims()[0].DeletionTimestamp == nil, "the claim is not there any more")
}

func podUIDs(c *stage.Cluster) map[string]bool {
	uids := map[string]bool{}
	for _, p := range c.Pods() {
		uids[string(p.UID)] = true
	}
	return uids
}

func operatorGoneFirst(s *stage.Stage) {
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	s.Cleanup(func(ctx context.Context) error { return s.ScaleOperator(ctx, 1) })
	s.Say("the operator is taken away")
	s.NoError(s.ScaleOperator(s.Context(), 0), "scaling the operator to 0")
	c.Delete("foreground")
	awaitNoPods(c)
	s.Say("the cluster is gone; now its namespace with the kept claims")
	s.DeleteNamespace()
}
