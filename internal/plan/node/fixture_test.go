package node

import (
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

var (
	noon         = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	sameQuantity = cmp.Comparer(func(a, b resource.Quantity) bool { return a.Equal(b) })
)

func size(text string) resource.Quantity { return resource.MustParse(text) }

// grown is a settled node: a bound claim of 1Gi, its workload and a ready pod.
// Tests edit it.
func grown() Input {
	spec := v1alpha1.ValkeyNodeSpec{
		ClusterName: "prod", ClusterID: "id-1", Shard: 2, Node: 1,
		Storage: v1alpha1.NodeStorage{Enabled: true, ClaimName: "valkey-prod-2-1-data", Size: new(size("1Gi"))},
		Template: v1alpha1.NodeTemplate{
			Revision: "rev-1", WorkloadType: v1alpha1.WorkloadStatefulSet, Image: "valkey", AgentImage: "operator",
		},
	}
	labels := name.NodeLabels("prod", 2, 1)
	podLabels := name.NodeLabels("prod", 2, 1)
	podLabels[name.LabelRole] = "primary"
	return Input{Spec: spec, State: state.Node{
		Now: noon, Namespace: "shop", Name: "prod-2-1", UID: "node-uid", ClusterUID: "cluster-uid", Shape: "3x1",
		Claim: &state.Claim{
			Name: "valkey-prod-2-1-data", UID: "claim-uid", Version: "7", Labels: labels,
			Cluster: "prod", ClusterID: "id-1", NodeID: "abc", Shape: "3x1", Phase: corev1.ClaimBound,
			ClassName: "fast", VolumeName: "pv-1", Requested: size("1Gi"), Capacity: size("1Gi"),
		},
		Class: state.Seen(state.Class{Name: "fast", Exists: true, Expandable: true}),
		Workload: &state.Workload{
			Kind: v1alpha1.WorkloadStatefulSet, Name: "valkey-prod-2-1", UID: "set-uid", Revision: "rev-1", Replicas: 1,
			Labels: name.NodeLabels("prod", 2, 1), ClusterID: "id-1", OwnerUIDs: []string{"node-uid"},
		},
		Pods: []state.Pod{{
			Name: "valkey-prod-2-1-0", UID: "pod-uid", IP: "10.0.0.7", Phase: corev1.PodRunning, Ready: true, Labels: podLabels,
		}},
		Agent: state.Seen(protocol.Facts{
			ClusterID: "id-1", Shard: 2, Node: 1, NodeID: "abc", Role: protocol.RolePrimary, Server: protocol.ServerRunning, Ready: true,
		}),
	}}
}

func condition(kind corev1.PersistentVolumeClaimConditionType, message string, age time.Duration) state.ClaimCondition {
	return state.ClaimCondition{Type: string(kind), Status: corev1.ConditionTrue, Message: message, Since: noon.Add(-age)}
}
