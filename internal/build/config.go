package build

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
)

// ConfigMap is the cluster's files of settings and its list of members, as the
// agents read them.
func ConfigMap(c Cluster, files map[string]string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(name.Service(c.Name), c.Namespace).
		WithLabels(name.ClusterLabels(c.Name)).
		WithOwnerReferences(c.owner()).
		WithData(files).
		WithData(map[string]string{name.KeyMembers: members(c)})
}

// Node timeouts in milliseconds: for how long a member may be silent before the
// others replace it. With storage a restarted primary is back with all its data
// within seconds, and a hasty failover can only lose what was not yet
// replicated: the server's own default. Without storage it comes back empty,
// and waiting gains nothing but patience with a busy worker.
const (
	nodeTimeoutPersistent = 15000
	nodeTimeoutEphemeral  = 5000
)

// ConfigFile is a file of settings: the operator's for a spec, and a user's. The
// agent adds what differs from member to member, and what is secret. The user's
// settings come last, so that they win; the schema refuses those that must not.
func ConfigFile(spec v1alpha1.ValkeyClusterSpec, settings map[string]string) string {
	lines := []string{
		"# Written by valkey-operator. Settings come from spec.config of the ValkeyCluster.",
		"# Clients reach the server through the network, and log in or not as the ACL says.",
		"protected-mode no",
		// A shard without a primary must not take the others down with it.
		"cluster-require-full-coverage no",
		// Which shard a replica belongs to is the operator's decision.
		"cluster-allow-replica-migration no",
		// A sync starts as soon as every replica of the shard waits for it, which
		// with one is at once, else after a second; the server's own five would be
		// most of the time that a small cluster takes to form.
		fmt.Sprintf("repl-diskless-sync-delay %d", min(1, max(0, spec.Replicas-1))),
		fmt.Sprintf("repl-diskless-sync-max-replicas %d", spec.Replicas),
		// A replica that cannot write its disk is worth more alive than ended: it has
		// the data, and is whom a primary with a full disk hands over to.
		"replica-ignore-disk-write-errors yes",
		// A replica without data takes its first copy from the network as it comes:
		// through a file it would need twice the space, and keep the file for ever.
		"repl-diskless-load on-empty-db",
	}
	lines = append(lines, variantSettings()...)
	lines = append(lines, persistence(spec.Storage)...)
	lines = append(lines, settingLines(settings)...)
	return strings.Join(lines, "\n") + "\n"
}

func persistence(storage *v1alpha1.Storage) []string {
	if storage == nil || !storage.Enabled {
		return []string{
			"appendonly no",
			`save ""`,
			fmt.Sprintf("cluster-node-timeout %d", nodeTimeoutEphemeral),
		}
	}
	fsync := storage.Durability.Fsync
	if fsync == "" {
		fsync = v1alpha1.FsyncEverySec
	}
	return []string{
		"appendonly yes",
		"appendfsync " + string(fsync),
		"aof-use-rdb-preamble yes",
		// The append-only file is the truth; snapshots beside it would double the space.
		`save ""`,
		fmt.Sprintf("cluster-node-timeout %d", nodeTimeoutPersistent),
	}
}

func members(c Cluster) string {
	list := protocol.Members{ClusterID: c.ID}
	for range c.Spec.Shards {
		var nodes []int
		for node := range int(c.Spec.Replicas) + 1 {
			nodes = append(nodes, node)
		}
		list.Shards = append(list.Shards, nodes)
	}
	text, err := json.Marshal(list)
	if err != nil { // a struct of strings and numbers always marshals
		panic(fmt.Sprintf("marshalling members: %v", err))
	}
	return string(text)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
