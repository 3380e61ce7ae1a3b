package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// write carries a try out and returns what was refused.
func write(t *testing.T, kind string, try try) field.ErrorList {
	t.Helper()
	if kind == "" {
		kind = "ValkeyCluster"
	}
	if try.name == "" {
		try.name = "demo"
	}
	server := kinds(t)[kind]
	next := object(t, kind, try.name, try.spec)
	if try.was == "" {
		return server.create(next)
	}
	old := object(t, kind, try.name, try.was)
	wantAccepted(t, server.create(old))
	if try.formed {
		for _, object := range []*unstructured.Unstructured{old, next} {
			if err := unstructured.SetNestedField(object.Object, true, "status", "formed"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return server.update(next, old)
}

func sizes(sizes ...string) []try {
	return each(`{shards: 3, storage: {enabled: true, size: %s}}`, sizes)
}

func settings(names ...string) []try {
	return each(`{shards: 3, config: {%s: "1"}}`, names)
}

func permissions(rules ...string) []try {
	return each(`{shards: 3, users: [{name: app, nopass: true, permissions: "%s"}]}`, rules)
}

func each(spec string, values []string) []try {
	tries := make([]try, 0, len(values))
	for _, value := range values {
		tries = append(tries, try{spec: strings.ReplaceAll(spec, "%s", value)})
	}
	return tries
}

func node(cluster string, shard, node int, revision string) string {
	return fmt.Sprintf(`{clusterName: %s, clusterID: id, shard: %d, node: %d, template: {revision: %s, workloadType: StatefulSet,
		image: "valkey/valkey:9.1.2", agentImage: "valkey.io/valkey-operator:dev"}}`, cluster, shard, node, revision)
}
