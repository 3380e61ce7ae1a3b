package build_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

func plainCluster() build.Cluster {
	return build.Cluster{
		Namespace: "shop", Name: "prod", UID: "cluster-uid", ID: "id-1", AgentImage: "valkey-operator:v1",
		Spec: v1alpha1.ValkeyClusterSpec{Shards: 3, Replicas: 1, Image: "valkey/valkey:9.1.2"},
	}
}

// richCluster uses each field that a user can set and that does not end up in
// a pod alone.
func richCluster() build.Cluster {
	cluster := plainCluster()
	cluster.Spec.Storage = &v1alpha1.Storage{
		Enabled: true, Size: new(resource.MustParse("10Gi")), StorageClassName: new("fast"),
		AccessModes: []v1alpha1.VolumeAccessMode{"ReadWriteOncePod"},
		Durability:  v1alpha1.Durability{Mode: v1alpha1.DurabilityAppendOnly, Fsync: v1alpha1.FsyncAlways},
		Retention:   v1alpha1.Retention{WhenDeleted: v1alpha1.RetentionDelete},
	}
	cluster.Spec.Config = map[string]v1alpha1.ConfigValue{
		"maxmemory-policy": "allkeys-lru", "client-output-buffer-limit": "normal 0 0 0", "notify-keyspace-events": "",
	}
	cluster.Spec.Users = []v1alpha1.User{
		{Name: "default", Enabled: new(false)},
		{Name: "app", PasswordSecret: &v1alpha1.PasswordSecret{Name: "app", Keys: []string{"old", "new"}}, Permissions: "~app:* +@read +@write"},
		{Name: "metrics", Nopass: true, Permissions: "+info"},
		{Name: "late", PasswordSecret: &v1alpha1.PasswordSecret{Name: "late"}, Permissions: "~* +@all"},
	}
	return cluster
}

var systemDigests = map[string]string{name.UserOperator: "0123", name.UserReplication: "4567"}

func richUsers() []state.UserPasswords {
	return []state.UserPasswords{
		{Name: "default"},
		{Name: "app", Digests: []string{"89ab", "cdef"}},
		{Name: "metrics"},
		{Name: "late", Missing: "Secret late"},
	}
}

func TestClusterObjects(t *testing.T) {
	t.Parallel()
	plain, rich := plainCluster(), richCluster()
	nodeSpec := build.NodeSpec(rich, 2, 1)
	for file, object := range map[string]any{
		"configmap.yaml":        build.ConfigMap(plain, filesOf(plain)),
		"configmap_rich.yaml":   build.ConfigMap(rich, filesOf(rich)),
		"aclsecret.yaml":        aclOf(build.ACLSecret(plain, systemDigests, nil).Data[name.KeyACL]),
		"aclsecret_rich.yaml":   aclOf(build.ACLSecret(rich, systemDigests, richUsers()).Data[name.KeyACL]),
		"service.yaml":          build.Service(plain),
		"headless.yaml":         build.HeadlessService(plain),
		"disruption.yaml":       build.PodDisruptionBudget(plain),
		"node.yaml":             build.Node(rich, nodeSpec).Object,
		"node_ephemeral.yaml":   build.Node(plain, build.NodeSpec(plain, 0, 0)).Object,
		"node_stop.yaml":        build.NodeStop(rich, build.Stop{Shard: 2, Node: 1, Version: "7", Stopped: true, At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}).Object,
		"node_stopinvain.yaml":  build.NodeStop(rich, build.Stop{Shard: 2, Node: 1, Version: "7", InVain: "20Gi"}).Object,
		"node_storagehalf.yaml": build.NodeStorageHalf(rich, 2, 1, resource.MustParse("10Gi")).Object,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			golden(t, file, object)
		})
	}
}

// filesOf is the file of settings that all members of a new cluster are started on.
func filesOf(cluster build.Cluster) map[string]string {
	settings := build.Settings(cluster.Spec)
	file := name.ConfigFile(build.ConfigRevision(settings, 0))
	return map[string]string{file: build.ConfigFile(cluster.Spec, settings)}
}

// aclOf shows an ACL file as text, not in base64.
func aclOf(file []byte) any { return map[string]string{name.KeyACL: string(file)} }

func TestWorkloadType(t *testing.T) {
	t.Parallel()
	storage := &v1alpha1.Storage{Enabled: true}
	for what, row := range map[string]struct {
		spec v1alpha1.ValkeyClusterSpec
		want v1alpha1.WorkloadType
	}{
		"ephemeral":                     {v1alpha1.ValkeyClusterSpec{}, v1alpha1.WorkloadDeployment},
		"persistent":                    {v1alpha1.ValkeyClusterSpec{Storage: storage}, v1alpha1.WorkloadStatefulSet},
		"storage that is off":           {v1alpha1.ValkeyClusterSpec{Storage: &v1alpha1.Storage{}}, v1alpha1.WorkloadDeployment},
		"persistent, as a Deployment":   {v1alpha1.ValkeyClusterSpec{Storage: storage, WorkloadType: v1alpha1.WorkloadDeployment}, v1alpha1.WorkloadDeployment},
		"ephemeral, as a StatefulSet":   {v1alpha1.ValkeyClusterSpec{WorkloadType: v1alpha1.WorkloadStatefulSet}, v1alpha1.WorkloadStatefulSet},
		"off and with a named workload": {v1alpha1.ValkeyClusterSpec{Storage: &v1alpha1.Storage{}, WorkloadType: v1alpha1.WorkloadStatefulSet}, v1alpha1.WorkloadStatefulSet},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if got := build.WorkloadType(row.spec); got != row.want {
				t.Errorf("it is %s, want %s", got, row.want)
			}
		})
	}
}

func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct{ shards, replicas, available int32 }{
		"a lone member may go":                  {1, 0, 0},
		"one of a shard":                        {1, 1, 1},
		"one of all, so that a majority stays":  {3, 2, 8},
		"one of many without replicas":          {500, 0, 499},
		"one of two primaries without replicas": {2, 0, 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cluster := plainCluster()
			cluster.Spec.Shards, cluster.Spec.Replicas = row.shards, row.replicas
			if got := build.PodDisruptionBudget(cluster).Spec.MinAvailable.IntVal; got != row.available {
				t.Errorf("%d pods must stay, want %d", got, row.available)
			}
		})
	}
}
