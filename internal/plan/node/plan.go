// Package node decides for one ValkeyNode: its claim and its workload. It is a
// pure function from a spec and a snapshot to a plan; it reads, writes and
// waits for nothing, and speaks no word to a server.
package node

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// Input is everything that the plan for a node rests on.
type Input struct {
	Spec  v1alpha1.ValkeyNodeSpec
	State state.Node
}

// Names of tracks and rules that others look up in a plan.
const (
	TrackClaim           = "claim"
	TrackWorkload        = "workload"
	RuleClaimExists      = "claimExists"
	RuleClaimLargeEnough = "claimLargeEnough"
)

// Times that the rules go by.
const (
	// lookAgent: a server changes its role without anybody telling us; asking
	// its agent costs no request to the API server.
	lookAgent = 10 * time.Second
	// nudgePeriod: a kubelet looks at its pods about once a minute by itself,
	// so a nudge that did nothing is worth repeating after as long.
	nudgePeriod = time.Minute
)

// Make plans for a node. For one that is on its way out, or whose cluster is,
// nothing is planned: Kubernetes collects what they own, and anything made
// anew would hold it up.
func Make(in Input) plan.Plan {
	if in.State.Deleting || in.State.ClusterDeleting {
		return nil
	}
	return plan.Make(tracks(in.Spec.Storage.Enabled), in)
}

// tracks is the policy. The two go side by side: a claim stays pending until
// a pod wants it, and a volume grows whatever its pod does.
func tracks(storage bool) []plan.Track[Input] {
	workload := plan.Track[Input]{Name: TrackWorkload, Rules: []plan.Rule[Input]{
		{Name: "workloadExists", Judge: workloadExists},
		{Name: "templateCurrent", Judge: templateCurrent},
		{Name: "podWanted", Judge: podWanted},
		{Name: "podCurrent", Judge: podCurrent},
		{Name: "podLabelled", Judge: podLabelled},
		{Name: "podReady", Judge: podReady},
	}}
	if !storage {
		return []plan.Track[Input]{workload}
	}
	claim := plan.Track[Input]{Name: TrackClaim, Rules: []plan.Rule[Input]{
		{Name: RuleClaimExists, Judge: claimExists},
		{Name: "claimMarked", Judge: claimMarked},
		{Name: "claimOwnedByPolicy", Judge: claimOwnedByPolicy},
		{Name: RuleClaimLargeEnough, Judge: claimLargeEnough},
		{Name: "fileSystemGrown", Judge: fileSystemGrown},
	}}
	return []plan.Track[Input]{claim, workload}
}

// RefusalIn is the API server's no to a change of the claim in an outcome, with
// the size that was asked for.
func RefusalIn(o plan.Outcome) (state.Refusal, bool) {
	for _, rule := range []string{RuleClaimExists, RuleClaimLargeEnough} {
		result, acted := o.Of(rule)
		var refusal *plan.Refusal
		if !acted || !errors.As(result.Err, &refusal) {
			continue
		}
		said := state.Refusal{Reason: refusal.Reason, Message: refusal.Message}
		switch asked := result.At.(type) {
		case plan.ExpandClaim:
			said.Size = asked.To
		case plan.CreateClaim:
			said.Size = requestedBy(asked)
		default:
			continue // the two rules have no other action
		}
		return said, true
	}
	return state.Refusal{}, false
}

// requestedBy is the size that a claim is made with.
func requestedBy(act plan.CreateClaim) resource.Quantity {
	resources := act.Claim.Spec.Resources
	if resources == nil || resources.Requests == nil {
		return resource.Quantity{}
	}
	return (*resources.Requests)[corev1.ResourceStorage]
}

// member is what the builders build this node's objects from.
func (in Input) member() build.Member {
	return build.Member{
		Namespace: in.State.Namespace, Name: in.State.Name, UID: in.State.UID,
		ClusterUID: in.State.ClusterUID, Shape: in.State.Shape, Spec: in.Spec, GraceSeconds: in.graceSeconds(),
	}
}

// graceSeconds follow what the server's saves take, and are as they were while
// nobody tells that.
func (in Input) graceSeconds() int64 {
	if agent := in.State.Agent; agent.Known && agent.Value.Files != nil {
		return build.GraceSeconds(agent.Value.Files.SaveSeconds)
	}
	if workload := in.State.Workload; workload != nil {
		return max(workload.GraceSeconds, build.LeastGrace)
	}
	return build.LeastGrace
}

// desired is the size that the volume shall have at least.
func (in Input) desired() resource.Quantity {
	if in.Spec.Storage.Size == nil {
		return resource.Quantity{}
	}
	return *in.Spec.Storage.Size
}

// birthSize is the size that a new claim gets: a volume that joins a shard must
// hold what the largest one may hold. Capacities count and requests do not, so
// that a mistyped one does not spread.
func (in Input) birthSize() resource.Quantity {
	size := in.desired()
	if in.State.ShardCapacity.Cmp(size) > 0 {
		return in.State.ShardCapacity.DeepCopy()
	}
	return size
}

func settled() plan.Verdict { return plan.Verdict{Hold: plan.Settled} }
