package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The fields that may change on a live cluster. Changes of everything else
// of the spec are refused.
var changeable = []string{
	"spec.config", "spec.image", "spec.imagePullPolicy", "spec.imagePullSecrets", "spec.podDisruptionBudget", "spec.resources", "spec.scheduling",
	"spec.storage.autoExpansion", "spec.storage.expansion", "spec.storage.retention", "spec.storage.size",
	"spec.terminationGracePeriodSeconds", "spec.users",
	"spec.volumePermissions",
}

// A field that is new in the schema must be put into one of the two groups: a
// change that is not carried out must not be accepted.
func TestEveryFieldMayChangeOrNot(t *testing.T) {
	t.Parallel()
	spec := must(t, clusters).structural.Properties["spec"]
	var fields []string
	for name := range spec.Properties {
		if name != "storage" {
			fields = append(fields, "spec."+name)
		}
	}
	for name := range spec.Properties["storage"].Properties {
		fields = append(fields, "spec.storage."+name)
	}
	free := map[string]bool{}
	for _, field := range fields {
		if !frozen(field) {
			free[field] = true
		}
	}
	if diff := cmp.Diff(changeable, sortedKeys(free)); diff != "" {
		t.Errorf("fields without a rule against changes (+), fields that may change (-):\n%s", diff)
	}
}

// frozen says whether a rule refuses changes of a field. Each such rule has
// its rows in the table of rules.
func frozen(field string) bool {
	for message := range rules {
		if strings.HasPrefix(message, field+" of a ") || strings.HasPrefix(message, field+" cannot be changed") {
			return true
		}
	}
	return false
}

func TestChangesThatAreAccepted(t *testing.T) {
	t.Parallel()
	changes := map[string]try{
		"a larger volume": {
			was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 2Gi}}`,
		},
		// Whether a volume is larger already only its claim knows: the size is
		// accepted here and refused by a condition.
		"a smaller volume": {
			was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 500Mi}}`,
		},
		"the same size in other words": {
			was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 1073741824}}`,
		},
		"another fate of the volumes": {
			was: persistent, spec: `{shards: 3, storage: {enabled: true, size: 1Gi, retention: {whenDeleted: Delete}}}`,
		},
		"another image": {
			was: small, spec: `{shards: 3, image: "valkey/valkey:9.1.3"}`,
		},
		"a wrong image, mended": {
			was: `{shards: 3, image: "valkey/valkey:wrong"}`, spec: `{shards: 3, image: "valkey/valkey:9.1.3"}`,
		},
		"another setting": {
			was: `{shards: 3, config: {maxmemory-policy: allkeys-lru}}`, spec: `{shards: 3, config: {maxmemory-policy: noeviction}}`,
		},
		"no settings any more": {
			was: `{shards: 3, config: {maxmemory-policy: allkeys-lru}}`, spec: small,
		},
		"more memory": {
			was: `{shards: 3, resources: {limits: {memory: 1Gi}}}`, spec: `{shards: 3, resources: {limits: {memory: 2Gi}}}`,
		},
		"another place": {
			was: `{shards: 3, scheduling: {nodeSelector: {disk: ssd}}}`, spec: `{shards: 3, scheduling: {priorityClassName: high}}`,
		},
		"members that must keep apart": {
			was: `{shards: 3, scheduling: {node: {spread: {shard: Preferred}}}}`, spec: `{shards: 3, scheduling: {node: {spread: {shard: Required}}, zone: {spread: {shard: Disabled}}}}`,
		},
		"no budget any more": {
			was: small, spec: `{shards: 3, podDisruptionBudget: {mode: Disabled}}`,
		},
		"a budget again": {
			was: `{shards: 3, podDisruptionBudget: {mode: Disabled}}`, spec: `{shards: 3, podDisruptionBudget: {mode: Cluster}}`,
		},
		"more time to stop": {
			was: small, spec: `{shards: 3, terminationGracePeriodSeconds: 3600}`,
		},
		"another way to pull": {
			was: `{shards: 3, imagePullPolicy: Always}`, spec: `{shards: 3, imagePullPolicy: Never}`,
		},
		"another registry's credentials": {
			was: `{shards: 3, imagePullSecrets: [{name: one}]}`, spec: `{shards: 3, imagePullSecrets: [{name: other}]}`,
		},
		"a container that gives files to the server": {
			was: small, spec: `{shards: 3, volumePermissions: true}`,
		},
		"another user": {
			was: small, spec: `{shards: 3, users: [{name: app, nopass: true}]}`,
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change.formed = true
			wantAccepted(t, write(t, "ValkeyCluster", change))
		})
	}
}
