package stories

import (
	"context"
	"fmt"
	"maps"
	"sort"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
)

func refusing() []Journey {
	return []Journey{
		{
			Name:  "class-cannot-expand",
			Story: "A class that cannot expand: a clear reason, the cluster stays Ready, going back clears it",
			Play:  classCannotExpand,
		},
		{
			Name:  "quota-refuses-growth",
			Story: "A quota that refuses growth: a clear reason, the cluster stays Ready, more quota lets the growth go on",
			Tier:  Long,
			Play:  quotaRefusesGrowth,
		},
		{
			Name:  "missing-class",
			Story: "A class that does not exist yet: a reason that names it, and the cluster comes up by itself once the class is there",
			Play:  missingClass,
		},
		{
			Name:  "quota-at-birth",
			Story: "A quota with room for some of the claims: a reason that quotes it, nothing made over and over, and the cluster comes up by itself once there is room",
			Tier:  Long,
			Play:  quotaAtBirth,
		},
		{
			Name:  "not-yet",
			Story: "What cannot be changed on a live cluster yet is refused, field by field, and touches nothing",
			Play:  notYet,
		},
	}
}

func classCannotExpand(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.Class = fixedClass(s)
	c := s.Create(spec)
	c.AwaitReady()
	before, claims, follower := c.Snapshot(), claimVersions(c), c.Follow()
	c.Resize("128Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "StorageClassNotExpandable", readyLimit)
	s.Expect(strings.Contains(told.Message, spec.Class), "the message does not name class %s: %s", spec.Class, told.Message)
	s.AwaitEvent("VolumeExpansionBlocked", "", readyLimit)
	s.Expect(claimVersions(c) == claims, "a claim was touched")
	c.Resize("64Mi")
	c.AwaitCondition("StorageReady", metav1.ConditionTrue, "", readyLimit)
	c.AwaitReady()
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
}

// fixedClass makes a copy of the class in use that does not allow expansion.
func fixedClass(s *stage.Stage) string {
	name := s.Namespace + "-fixed"
	dropClass(s, name)
	copyClass(s, name, false)
	return name
}

// copyClass makes a class like the one in use; dropClass was called for it before.
func copyClass(s *stage.Stage, name string, expandable bool) { makeClass(s, name, expandable, nil) }

// makeClass is copyClass with more parameters for the driver.
func makeClass(s *stage.Stage, name string, expandable bool, more map[string]string) {
	classes := s.Typed.StorageV1().StorageClasses()
	origin, err := classes.Get(s.Context(), className(s), metav1.GetOptions{})
	s.NoError(err, "reading the storage class")
	parameters := maps.Clone(origin.Parameters)
	if parameters == nil {
		parameters = map[string]string{}
	}
	maps.Copy(parameters, more)
	_, err = classes.Create(s.Context(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Provisioner: origin.Provisioner, Parameters: parameters, ReclaimPolicy: origin.ReclaimPolicy,
		MountOptions: origin.MountOptions, VolumeBindingMode: origin.VolumeBindingMode, AllowVolumeExpansion: &expandable,
	}, metav1.CreateOptions{})
	s.NoError(err, "making a storage class")
}

// dropClass makes sure that a class does not exist, now and after the journey.
func dropClass(s *stage.Stage, name string) {
	drop := func(context.Context) error {
		_, err := s.TryKubectl("delete", "storageclass", name, "--ignore-not-found")
		return err
	}
	s.NoError(drop(s.Context()), "removing an old class")
	s.Cleanup(drop)
}

func missingClass(s *stage.Stage) {
	spec := persistent(1, 1)
	spec.Class = s.Namespace + "-late"
	dropClass(s, spec.Class)
	c := s.Create(spec)
	s.Await("a reason that names the class", readyLimit, func() (bool, string) {
		got := c.Get()
		storage, _ := contract.Condition(got.Status.Conditions, "StorageReady")
		return storage.Status == metav1.ConditionFalse && strings.Contains(storage.Message, spec.Class), storage.Reason + ": " + storage.Message
	})
	s.Expect(!c.Get().Ready(), "the cluster is Ready without volumes")
	s.Say("it is told; now the class is made")
	copyClass(s, spec.Class, true)
	c.AwaitReady()
}

func quotaAtBirth(s *stage.Stage) {
	s.Apply(quota("256Mi"))
	c := s.Create(persistent(3, 1))
	s.Await("a reason that quotes the quota", readyLimit, func() (bool, string) {
		got := c.Get()
		storage, _ := contract.Condition(got.Status.Conditions, "StorageReady")
		return strings.Contains(storage.Message, "exceeded quota"), storage.Reason + ": " + storage.Message
	})
	early := c.Claims()
	s.Expect(len(early) <= 4, "%d claims of 64Mi with a quota of 256Mi", len(early))
	s.Expect(!c.Get().Status.Formed, "a part of the cluster has formed")
	s.Say("it is told; raising the quota")
	s.Apply(quota("1Gi"))
	c.AwaitReady()
	for _, claim := range early {
		now, err := s.Typed.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.Context(), claim.Name, metav1.GetOptions{})
		s.NoError(err, "reading claim "+claim.Name)
		s.Expect(now.UID == claim.UID, "claim %s was made anew", claim.Name)
	}
}

// className is the class that the world's volumes are made in.
func className(s *stage.Stage) string {
	if s.StorageClass != "" {
		return s.StorageClass
	}
	all, err := s.Typed.StorageV1().StorageClasses().List(s.Context(), metav1.ListOptions{})
	s.NoError(err, "listing storage classes")
	for _, class := range all.Items {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return class.Name
		}
	}
	s.Fail("the cluster has no default StorageClass; name one with --storage-class")
	return ""
}

func quotaRefusesGrowth(s *stage.Stage) {
	c := s.Create(persistent(1, 1))
	c.AwaitReady()
	before, claims := c.Snapshot(), claimVersions(c)
	s.Apply(quota("200Mi"))
	s.Await("the quota to count", readyLimit, func() (bool, string) {
		used := s.Kubectl("get", "resourcequota", "small", "-o", `jsonpath={.status.used.requests\.storage}`)
		return used == "128Mi", "used " + used
	})
	follower := c.Follow()
	c.Resize("256Mi")
	told := c.AwaitCondition("StorageReady", metav1.ConditionFalse, "QuotaExceeded", readyLimit)
	s.Expect(strings.Contains(told.Message, "small"), "the message does not name the quota: %s", told.Message)
	s.Expect(claimVersions(c) == claims, "a claim was touched")
	s.Say("raising the quota")
	s.Apply(quota("1Gi"))
	awaitGrown(c, "256Mi")
	follower.AlwaysReady(follower.Stop())
	expectUntouched(c, before)
}

func quota(storage string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\nspec: {hard: {requests.storage: %s}}\n", storage)
}

// notYetEdits are the edits that a live persistent cluster refuses; the value
// is a word that the refusal must have.
var notYetEdits = map[string]string{
	`{"spec":{"shards":2}}`:                                                 "shards",
	`{"spec":{"replicas":2}}`:                                               "replicas",
	`{"spec":{"config":{"appendonly":"no"}}}`:                               "config",
	`{"spec":{"workloadType":"Deployment"}}`:                                "workloadType",
	`{"spec":{"storage":{"enabled":false}}}`:                                "enabled",
	`{"spec":{"storage":null}}`:                                             "storage",
	`{"spec":{"storage":{"storageClassName":"another"}}}`:                   "storageClassName",
	`{"spec":{"storage":{"accessModes":["ReadWriteOncePod"]}}}`:             "accessModes",
	`{"spec":{"storage":{"durability":{"fsync":"always"}}}}`:                "durability",
	`{"spec":{"storage":{"size":"-1Gi"}}}`:                                  "size",
	`{"spec":{"storage":{"size":null}}}`:                                    "size",
	`{"spec":{"users":[{"name":"_mine","nopass":true}]}}`:                   "users",
	`{"spec":{"users":[{"name":"app"}]}}`:                                   "passwordSecret",
	`{"spec":{"users":[{"name":"app","nopass":true,"permissions":">pw"}]}}`: "permissions",
}

func notYet(s *stage.Stage) {
	c := s.Create(persistent(1, 0))
	c.AwaitReady()
	before, generation := c.Snapshot(), c.Get().Metadata.Generation
	for _, edit := range sorted(notYetEdits) {
		err := c.TryPatch(edit)
		s.Expect(err != nil, "the edit %s was accepted", edit)
		s.Expect(strings.Contains(err.Error(), notYetEdits[edit]), "the refusal of %s does not name %q: %v", edit, notYetEdits[edit], err)
	}
	s.Say("%d edits were refused, each naming its field", len(notYetEdits))
	s.Expect(c.Get().Metadata.Generation == generation, "the spec has changed")
	expectUntouched(c, before)
	s.Expect(contract.Cluster.Ready(c.Get()), "the cluster is not Ready")
}

func sorted(edits map[string]string) []string {
	keys := make([]string, 0, len(edits))
	for k := range edits {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
