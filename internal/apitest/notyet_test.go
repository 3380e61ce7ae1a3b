//go:build apiserver

package apitest

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// Edits that cannot be carried out on a formed cluster yet are refused, in a
// sentence that names the field; the others are accepted.
func TestEditsOfAFormedCluster(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	spec := persistent()
	spec.WorkloadType = v1alpha1.WorkloadStatefulSet
	cluster := w.cluster(spec)
	try := func(patch string) error {
		return admin.Patch(t.Context(), cluster.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"formed":true}}`))
	if err := admin.Status().Patch(t.Context(), cluster, patch); err != nil {
		t.Fatal(err)
	}
	for field, row := range map[string]struct{ patch, refusal string }{
		"image":             {`{"spec":{"image":"valkey/valkey:9.1.3"}}`, ""},
		"config":            {`{"spec":{"config":{"maxmemory":"64mb"}}}`, ""},
		"resources":         {`{"spec":{"resources":{"requests":{"cpu":"1"}}}}`, ""},
		"scheduling":        {`{"spec":{"scheduling":{"priorityClassName":"high"}}}`, ""},
		"spread":            {`{"spec":{"scheduling":{"node":{"spread":{"shard":"Required"}},"zone":{"spread":{"shard":"Disabled"}}}}}`, ""},
		"budget":            {`{"spec":{"podDisruptionBudget":{"mode":"Disabled"}}}`, ""},
		"grace period":      {`{"spec":{"terminationGracePeriodSeconds":120}}`, ""},
		"volumePermissions": {`{"spec":{"volumePermissions":true}}`, ""},
		"imagePullPolicy":   {`{"spec":{"imagePullPolicy":"Always"}}`, ""},
		"imagePullSecrets":  {`{"spec":{"imagePullSecrets":[{"name":"s"}]}}`, ""},
		"shards":            {`{"spec":{"shards":4}}`, "spec.shards of a live cluster cannot be changed yet"},
		"replicas":          {`{"spec":{"replicas":1}}`, "spec.replicas of a live cluster cannot be changed yet"},
		"workloadType":      {`{"spec":{"workloadType":"Deployment"}}`, "spec.workloadType of a live cluster cannot be changed yet"},
		"storage, removed":  {`{"spec":{"storage":null}}`, "spec.storage cannot be removed while storage is enabled"},
		"storage.enabled":   {`{"spec":{"storage":{"enabled":false}}}`, "spec.storage.enabled of a live cluster cannot be changed yet"},
		"storageClassName":  {`{"spec":{"storage":{"storageClassName":"other"}}}`, "spec.storage.storageClassName cannot be changed while storage is enabled"},
		"accessModes":       {`{"spec":{"storage":{"accessModes":["ReadWriteOncePod"]}}}`, "spec.storage.accessModes cannot be changed while storage is enabled"},
		"durability":        {`{"spec":{"storage":{"durability":{"fsync":"always"}}}}`, "spec.storage.durability of a live cluster cannot be changed yet"},
		"size":              {`{"spec":{"storage":{"size":"2Gi"}}}`, ""},
		"a smaller size":    {`{"spec":{"storage":{"size":"512Mi"}}}`, ""},
		"retention":         {`{"spec":{"storage":{"retention":{"whenDeleted":"Delete"}}}}`, ""},
		"users":             {`{"spec":{"users":[{"name":"app","nopass":true}]}}`, ""},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, try(row.patch), row.refusal)
		})
	}
}
