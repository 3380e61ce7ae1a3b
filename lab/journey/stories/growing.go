package stories

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
)

func growing() []Journey {
	return []Journey{
		{
			Name:  "growth-under-load",
			Story: "Raising the size grows every volume while clients write: no error, no restart, no role change, Ready stays True, and the object, its events and its volumes tell it",
			Play:  growthUnderLoad,
		},
		{
			Name:  "same-size",
			Story: "Another spelling of the size changes nothing, and a smaller size is refused with a reason and touches nothing",
			Play:  sameSize,
		},
	}
}

func growthUnderLoad(s *stage.Stage) {
	c := s.Create(persistent(3, 1))
	c.AwaitReady()
	c.Load(50_000, nil)
	before := c.Snapshot()
	writer, follower := c.StartWriter(), c.Follow()
	c.Resize("256Mi")
	awaitGrown(c, "256Mi")
	c.AwaitReady()
	versions := follower.Stop()
	follower.AlwaysReady(versions)
	writer.NothingNoticed(writer.Stop())
	expectUntouched(c, before)
	s.Expect(stage.Ever(versions, "StorageReady", metav1.ConditionFalse, "VolumeExpanding"), "StorageReady never was False/VolumeExpanding")
	expectExpansionTold(c, "256Mi")
	c.Verify(50_000, nil)
}

// expectUntouched checks that pods and roles are those of before.
func expectUntouched(c *stage.Cluster, before stage.Members) {
	now := c.Snapshot()
	uids, roles := now.UIDs(), now.Roles()
	for name, m := range before {
		c.Expect(uids[name] == m.UID, "member %s runs in another pod", name)
		c.Expect(roles[name] == m.Server.Role, "member %s was a %s and is a %s", name, m.Server.Role, roles[name])
	}
	c.Expect(now.Restarts() == before.Restarts(), "containers were restarted")
	c.Say("no pod was replaced or restarted, no role changed")
}

// expectExpansionTold checks events and the lines of the volumes.
func expectExpansionTold(c *stage.Cluster, size string) {
	for _, reason := range []string{"VolumeExpanding", "VolumeExpanded"} {
		c.AwaitEvent(reason, "", readyLimit)
	}
	status, want := c.Get().Status.Storage, resource.MustParse(size)
	c.Expect(len(status.Volumes) == c.Members(), "status.storage.volumes has %d lines for %d members", len(status.Volumes), c.Members())
	for _, v := range status.Volumes {
		c.Expect(v.Phase == "Satisfied" && v.Capacity.Cmp(want) >= 0, "volume of %s is %s with %s", v.Node, v.Phase, v.Capacity.String())
	}
	c.Expect(status.ExpandedAt != nil, "status.storage.expandedAt is not set")
}

// awaitGrown waits until every claim has the capacity and the object says so.
func awaitGrown(c *stage.Cluster, size string) { awaitGrownWithin(c, size, readyLimit) }

// awaitGrownWithin is awaitGrown for what takes longer than other growths.
func awaitGrownWithin(c *stage.Cluster, size string, limit time.Duration) {
	want := resource.MustParse(size)
	took := c.Await("all volumes to have "+size, limit, func() (bool, string) {
		var line []string
		grown := true
		for _, claim := range c.Claims() {
			has := claim.Status.Capacity.Storage()
			grown = grown && has.Cmp(want) >= 0
			line = append(line, has.String())
		}
		return grown, strings.Join(line, " ")
	})
	c.Say("all volumes have %s after %.1f s", size, took.Seconds())
	awaitObserved(c) // what an earlier growth left in the status does not count
	c.AwaitCondition("StorageReady", metav1.ConditionTrue, "VolumeExpanded", readyLimit)
}

func sameSize(s *stage.Stage) {
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	c.Load(1_000, nil)
	before, claims := c.Snapshot(), claimVersions(c)
	for _, spelling := range []string{`"65536Ki"`, `"67108864"`, `67108864`, `"64Mi"`} {
		c.Patch(`{"spec":{"storage":{"size":` + spelling + `}}}`)
		awaitObserved(c)
	}
	s.Expect(claimVersions(c) == claims, "another spelling of the same size touched a claim")
	s.Say("four spellings of one size touched no claim")
	c.Resize("32Mi")
	c.Await("the refusal of a smaller size", readyLimit, func() (bool, string) {
		got := c.Get()
		storage, _ := contract.Condition(got.Status.Conditions, "StorageReady")
		return storage.Reason == "VolumeShrinkRefused", fmt.Sprint(storage)
	})
	expectStillReady(c)
	s.Expect(claimVersions(c) == claims, "a smaller size touched a claim")
	expectUntouched(c, before)
	c.Resize("64Mi")
	s.Await("the refusal to be taken back", readyLimit, func() (bool, string) {
		storage, _ := contract.Condition(c.Get().Status.Conditions, "StorageReady")
		return storage.Status == metav1.ConditionTrue && storage.Reason != "VolumeShrinkRefused", fmt.Sprint(storage)
	})
	c.AwaitReady()
	c.Verify(1_000, nil)
}

// claimVersions is every claim with its identity and the size it asks for.
func claimVersions(c *stage.Cluster) string {
	var b strings.Builder
	for _, claim := range c.Claims() {
		fmt.Fprintf(&b, "%s %s %s\n", claim.Name, claim.UID, claim.Spec.Resources.Requests.Storage())
	}
	return b.String()
}

// awaitObserved waits until the status is about the present spec.
func awaitObserved(c *stage.Cluster) {
	c.Await("the operator to have seen the present spec", readyLimit, func() (bool, string) {
		got := c.Get()
		return got.Status.ObservedGeneration == got.Metadata.Generation,
			fmt.Sprintf("generation %d, observed %d", got.Metadata.Generation, got.Status.ObservedGeneration)
	})
}

// expectStillReady checks that clients need not care.
func expectStillReady(c *stage.Cluster) {
	got := c.Get()
	c.Expect(contract.Is(got.Status.Conditions, "Ready", metav1.ConditionTrue, ""), "Ready is not True: %s", got.Brief())
}
