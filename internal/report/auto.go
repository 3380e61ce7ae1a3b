package report

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan/cluster"
)

// autoOrder is which shard's answer the condition tells: what needs a person
// before what is under way, and that before what merely waits.
var autoOrder = []string{
	v1alpha1.ReasonAutoAtMaximum, v1alpha1.ReasonAutoUnsupported, v1alpha1.ReasonAutoCeiling, v1alpha1.ReasonAutoExpanding,
	v1alpha1.ReasonAutoRecommending, v1alpha1.ReasonAutoCooldown, v1alpha1.ReasonAutoNoUsageData,
}

// autoFinding says whether volumes grow by themselves, or else why they do not.
func autoFinding(in cluster.Input, storage *v1alpha1.StorageStatus) (bool, finding) {
	if !build.StorageEnabled(in.Spec) {
		return false, finding{v1alpha1.ReasonAutoDisabled, "the cluster is ephemeral: it has no volumes"}
	}
	growths := cluster.AutoGrowth(in)
	if len(growths) == 0 {
		return false, finding{v1alpha1.ReasonAutoDisabled, "spec.storage.autoExpansion is off: volumes grow when spec.storage.size is raised"}
	}
	for _, reason := range autoOrder {
		if told, found := firstGrowth(growths, reason); found {
			return reason == v1alpha1.ReasonAutoExpanding, told
		}
	}
	if storage != nil && storage.RecommendedSize != nil {
		return false, finding{v1alpha1.ReasonAutoRecommending, fmt.Sprintf("volumes were nearly full; set spec.storage.size to %s", storage.RecommendedSize.String())}
	}
	auto := in.Spec.Storage.AutoExpansion
	if auto.Mode == v1alpha1.AutoExpansionRecommend {
		return false, finding{v1alpha1.ReasonAutoRecommending, fmt.Sprintf("every volume is less than %.0f%% full, so no larger size is recommended", cluster.ThresholdPercent(in.Spec))}
	}
	for _, growth := range growths {
		if growth.RewriteFirst {
			return true, finding{growth.Reason, growth.Note}
		}
	}
	return true, finding{v1alpha1.ReasonAutoArmed, fmt.Sprintf("every volume is less than %.0f%% full; fuller ones grow, up to %s", cluster.ThresholdPercent(in.Spec), auto.MaxSize.String())}
}

// firstGrowth is what the first shard with a reason says, and how many more have it.
func firstGrowth(growths []cluster.ShardGrowth, reason string) (finding, bool) {
	var told finding
	count := 0
	for _, growth := range growths {
		if growth.Reason != reason {
			continue
		}
		if count == 0 {
			told = finding{reason, growth.Note}
		}
		count++
	}
	if count > 1 {
		told.message += fmt.Sprintf("; the same goes for %d more of %d shards", count-1, len(growths))
	}
	return told, count > 0
}

// rememberGrowth writes down what automatic growth decided: the decision is
// carried out by the next pass, from the status.
func rememberGrowth(in cluster.Input, storage *v1alpha1.StorageStatus) {
	if storage == nil {
		return
	}
	growths := cluster.AutoGrowth(in)
	recommends := in.Spec.Storage.AutoExpansion != nil && in.Spec.Storage.AutoExpansion.Mode == v1alpha1.AutoExpansionRecommend
	storage.RecommendedSize = nil
	if recommends {
		storage.RecommendedSize = recommendation(in, growths)
		growths = nil
	}
	storage.Shards = nil
	for shard := range int(in.Spec.Shards) {
		line := cluster.Remembered(in, shard)
		line.AutoTarget = stillWanted(in, line)
		if line.Emergency && !cluster.CoolingDown(in, shard) {
			line.Emergency = false
		}
		if shard < len(growths) && growths[shard].Target != nil {
			line.AutoTarget, line.Emergency = growths[shard].Target, growths[shard].Emergency
			line.GrownAt = new(metav1.NewTime(in.State.Now.Truncate(time.Second))) // as the API stores it
		}
		if line.AutoTarget != nil {
			storage.Shards = append(storage.Shards, line)
		}
	}
	tellEffectiveSizes(in, storage)
}

// stillWanted is a shard's target without what a largest size took back of it, and
// what no volume got: it shall not come back when that is raised or automatic
// growth turned off. While a volume's size is not known, nothing is forgotten.
func stillWanted(in cluster.Input, line v1alpha1.ShardStorageStatus) *resource.Quantity {
	auto := in.Spec.Storage.AutoExpansion
	if line.AutoTarget == nil || auto == nil || auto.MaxSize == nil || line.AutoTarget.Cmp(*auto.MaxSize) <= 0 {
		return line.AutoTarget
	}
	least := auto.MaxSize.DeepCopy()
	for _, member := range in.State.Members {
		if !member.Wanted || member.Shard != int(line.Shard) {
			continue
		}
		if member.Claim == nil || member.Claim.Capacity.IsZero() {
			return line.AutoTarget
		}
		if member.Claim.Capacity.Cmp(least) > 0 {
			least = member.Claim.Capacity.DeepCopy()
		}
	}
	if least.Cmp(*line.AutoTarget) >= 0 {
		return line.AutoTarget
	}
	return &least
}

// tellEffectiveSizes fills in what each shard's volumes shall have from now on,
// where that is not what the spec says.
func tellEffectiveSizes(in cluster.Input, storage *v1alpha1.StorageStatus) {
	in.State.Status.Storage = storage
	for i := range storage.Shards {
		line := &storage.Shards[i]
		line.EffectiveSize = nil
		if effective := cluster.EffectiveSize(in, int(line.Shard)); effective.Cmp(*in.Spec.Storage.Size) != 0 {
			line.EffectiveSize = &effective
		}
	}
}

// recommendation is the size that the fullest shard would need. It stays until
// the spec has it, though the volumes empty in the meantime, so that a person
// who reads the event finds the number.
func recommendation(in cluster.Input, growths []cluster.ShardGrowth) *resource.Quantity {
	best := in.Spec.Storage.Size.DeepCopy()
	if in.State.Status.Storage != nil && in.State.Status.Storage.RecommendedSize != nil {
		if before := *in.State.Status.Storage.RecommendedSize; before.Cmp(best) > 0 {
			best = before.DeepCopy()
		}
	}
	for _, growth := range growths {
		if growth.Target != nil && growth.Target.Cmp(best) > 0 {
			best = growth.Target.DeepCopy()
		}
	}
	if best.Cmp(*in.Spec.Storage.Size) == 0 {
		return nil
	}
	return &best
}
