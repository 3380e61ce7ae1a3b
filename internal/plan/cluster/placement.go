package cluster

import (
	"fmt"
	"strings"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/state"
)

// CrowdedShards says which shards have all their members on one worker, whose loss
// takes all copies of their data away; and whether there is one. A member
// whose worker is not known may be elsewhere.
func CrowdedShards(in Input) (string, bool) {
	if in.Spec.Replicas == 0 || in.Spec.Scheduling != nil && in.Spec.Scheduling.Node.Spread.Shard == v1alpha1.SpreadDisabled {
		return "", false
	}
	var crowded []string
	for shard := range int(in.Spec.Shards) {
		if worker, one := in.onlyWorker(shard); one {
			crowded = append(crowded, fmt.Sprintf("shard %d on worker %s", shard, worker))
		}
	}
	if len(crowded) == 0 {
		return "", false
	}
	return fmt.Sprintf("all members are on one worker, whose loss takes them all: %s; once another worker has room, delete the pod of a replica, so that it is placed anew",
		strings.Join(bounded(crowded), ", ")), true
}

// onlyWorker is the worker that runs all members of a shard, and whether there is
// one.
func (in Input) onlyWorker(shard int) (worker string, one bool) {
	for _, member := range in.wanted() {
		if member.Shard != shard {
			continue
		}
		pod, live := state.LivePod(member.Pods)
		if !live || pod.Worker == "" || worker != "" && pod.Worker != worker {
			return "", false
		}
		worker = pod.Worker
	}
	return worker, worker != ""
}
