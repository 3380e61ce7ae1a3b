package observe

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/state"
)

// classes reads the StorageClasses of the claims. One that cannot be read is
// left out, and stops nothing: admission knows it too.
func (o ClusterObserver) classes(ctx context.Context, snapshot *state.Cluster) {
	snapshot.Classes = map[string]state.Class{}
	for _, claim := range snapshot.Claims {
		if _, read := snapshot.Classes[claim.ClassName]; read {
			continue
		}
		if class := readClass(ctx, o.Reader, o.ReadClasses, claim.ClassName); class.Known {
			snapshot.Classes[claim.ClassName] = class.Value
		}
	}
}

// allowances reads what the namespace allows claims, while a growth is about to
// begin. Quotas and limits are read from the API server itself, since nothing of
// ours keeps them, and what may not be read is unknown: the API server's own
// checks decide then.
func (o ClusterObserver) allowances(ctx context.Context, cluster *v1alpha1.ValkeyCluster, snapshot *state.Cluster) {
	snapshot.Quotas = state.Unknown[[]state.Quota]("no growth is about to begin")
	snapshot.Limits = state.Unknown[[]state.ClaimLimit]("no growth is about to begin")
	if !growthBegins(cluster, *snapshot) {
		return
	}
	quotas, limits := &corev1.ResourceQuotaList{}, &corev1.LimitRangeList{}
	if err := o.Direct.List(ctx, quotas, client.InNamespace(cluster.Namespace)); err != nil {
		snapshot.Quotas = state.Unknown[[]state.Quota](err.Error())
	} else {
		snapshot.Quotas = state.Seen(quotasOf(quotas.Items))
	}
	if err := o.Direct.List(ctx, limits, client.InNamespace(cluster.Namespace)); err != nil {
		snapshot.Limits = state.Unknown[[]state.ClaimLimit](err.Error())
	} else {
		snapshot.Limits = state.Seen(limitsOf(limits.Items))
	}
}

// growthBegins says whether a member's node has yet to be told a larger size
// while no volume is on its way to one.
func growthBegins(cluster *v1alpha1.ValkeyCluster, snapshot state.Cluster) bool {
	storage := cluster.Spec.Storage
	if storage == nil || !storage.Enabled || storage.Size == nil {
		return false
	}
	begins := false
	for _, member := range snapshot.Members {
		if !member.Wanted || member.Record == nil || member.Record.Spec.Storage.Size == nil || member.Claim == nil {
			continue
		}
		want := state.EffectiveSize(*storage, cluster.Status.Storage, member.Shard)
		switch {
		case member.Claim.Capacity.Cmp(want) >= 0:
		case member.Record.Spec.Storage.Size.Cmp(want) < 0:
			begins = true
		default:
			return false
		}
	}
	return begins
}

const classQuota = ".storageclass.storage.k8s.io/requests.storage"

// quotasOf are the quotas that count the storage requests of all claims. Those
// with a scope count some of them only, which is left to the API server.
func quotasOf(items []corev1.ResourceQuota) []state.Quota {
	quotas := []state.Quota{}
	for i := range items {
		quota := &items[i]
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			continue
		}
		for counted, hard := range quota.Status.Hard {
			class, confined := strings.CutSuffix(string(counted), classQuota)
			if !confined && counted != corev1.ResourceRequestsStorage {
				continue
			}
			if !confined {
				class = ""
			}
			left := hard.DeepCopy()
			left.Sub(quota.Status.Used[counted])
			quotas = append(quotas, state.Quota{Name: quota.Name, Class: class, Left: left})
		}
	}
	return quotas
}

func limitsOf(items []corev1.LimitRange) []state.ClaimLimit {
	limits := []state.ClaimLimit{}
	for i := range items {
		for _, limit := range items[i].Spec.Limits {
			if most, limited := limit.Max[corev1.ResourceStorage]; limited && limit.Type == corev1.LimitTypePersistentVolumeClaim {
				limits = append(limits, state.ClaimLimit{Name: items[i].Name, Max: most})
			}
		}
	}
	return limits
}
