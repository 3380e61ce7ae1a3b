package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// namesFree: no object that bears a name of ours belongs to somebody else.
func namesFree(in Input) plan.Verdict {
	var taken, passing []string
	sort := func(key string, foreign, earlier bool) {
		switch {
		case earlier:
			passing = append(passing, key)
		case foreign:
			taken = append(taken, key)
		}
	}
	for key, object := range in.State.Objects {
		if key == in.budgetKey() && !build.DisruptionBudgeted(in.Spec) {
			continue // one of the user's may have the name
		}
		sort(key, object.Foreign, object.Earlier)
	}
	for _, member := range in.State.Members {
		if member.Record != nil {
			sort("ValkeyNode/"+member.Name, member.Record.Foreign, member.Record.Earlier)
		}
	}
	slices.Sort(taken)
	slices.Sort(passing)
	switch {
	case len(taken) > 0:
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonNameTaken, Look: plan.LookWorld,
			Note: fmt.Sprintf("%s exists and belongs to somebody else; remove it, or give the cluster another name", strings.Join(taken, ", ")),
		}
	case len(passing) > 0:
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonForming, Look: plan.LookServer,
			Note: fmt.Sprintf("%s goes with an earlier cluster of this name; waiting until it is gone", strings.Join(bounded(passing), ", ")),
		}
	default:
		return settled()
	}
}

// RuleIdentityRecorded is the name of a rule that others look up in a plan.
const RuleIdentityRecorded = "identityRecorded"

// identityRecorded: the identity of the cluster's data is known and stands in
// its status: its own, else the one that kept claims agree on, else a new one.
func identityRecorded(in Input) plan.Verdict {
	if recorded := in.State.Status.ClusterID; recorded != "" {
		if id, borne := recordedIdentity(in); borne && id != recorded {
			return conflict("status.clusterID is %s, but the cluster's nodes bear %s: the status is another cluster's, or an older one's; set status.clusterID back to %s", recorded, id, id)
		}
		return settled()
	}
	id, verdict := keptIdentity(in)
	if verdict.Hold != plan.Settled {
		return verdict
	}
	if id == "" {
		id = in.State.FreshID
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonForming, Look: plan.LookWritten,
		Actions: []plan.Action{plan.RecordIdentity{Cluster: in.State.Name, Version: in.State.Version, ClusterID: id}},
	}
}

// recordedIdentity is the identity that a member's node bears.
func recordedIdentity(in Input) (id string, recorded bool) {
	for _, member := range in.State.Members {
		if member.Record != nil && member.Record.Spec.ClusterID != "" {
			return member.Record.Spec.ClusterID, true
		}
	}
	return "", false
}

// keptIdentity is the identity that the members' nodes bear, else that of the
// claims of an earlier cluster: those must agree, be of this cluster's shape,
// and hold a copy of every shard. Nothing is assigned before that is known.
func keptIdentity(in Input) (string, plan.Verdict) {
	if id, recorded := recordedIdentity(in); recorded || !build.StorageEnabled(in.Spec) {
		return id, settled()
	}
	id := ""
	for _, claim := range in.State.Claims {
		if verdict := keepable(in, claim); verdict.Hold != plan.Settled {
			return "", verdict
		}
		if id != "" && claim.ClusterID != id {
			return "", conflict("kept claims disagree about the data's identity (%s: %s); delete those that are not wanted", claim.Name, claim.ClusterID)
		}
		id = claim.ClusterID
	}
	if shard, missing := shardWithoutClaim(in); id != "" && missing {
		return "", conflict("claims of an earlier cluster were kept, but none of shard %d, whose data is gone with them; bring one back, or delete the kept claims to begin with an empty cluster", shard)
	}
	return id, settled()
}

// keepable says whether a claim of an earlier cluster can be taken up.
func keepable(in Input, claim state.Claim) plan.Verdict {
	wait := plan.Verdict{Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeUnavailable, Look: plan.LookWorld}
	shape := name.Shape(in.Spec.Shards, in.Spec.Replicas)
	switch {
	case claim.Terminating:
		wait.Note = fmt.Sprintf("claim %s of an earlier cluster is being deleted; waiting until it is gone", claim.Name)
		return wait
	case len(claim.OwnerUIDs) > 0 && !claim.OwnedBy(in.State.UID):
		wait.Note = fmt.Sprintf("claim %s goes with an earlier cluster of this name, which was deleted together with its data; waiting until it is gone", claim.Name)
		return wait
	case claim.ClusterID == "":
		return conflict("claim %s bears this cluster's name but no identity; delete it, or give the cluster another name", claim.Name)
	case claim.Shape != shape:
		return conflict("claim %s was kept from a cluster of shape %s, this one is %s; set shards and replicas as they were, or delete the kept claims", claim.Name, claim.Shape, shape)
	default:
		return settled()
	}
}

// shardWithoutClaim is the first shard none of whose members has a claim.
func shardWithoutClaim(in Input) (int, bool) {
	claimed := map[int]bool{}
	for _, member := range in.wanted() {
		claimed[member.Shard] = claimed[member.Shard] || member.Claim != nil
	}
	for shard := range int(in.Spec.Shards) {
		if !claimed[shard] {
			return shard, true
		}
	}
	return 0, false
}

func conflict(format string, args ...any) plan.Verdict {
	return plan.Verdict{Hold: plan.Blocked, Reason: v1alpha1.ReasonIdentityConflict, Note: fmt.Sprintf(format, args...)}
}

// passwordsExist: the system users have their generated passwords, which go
// with the cluster. One that somebody took out is not made anew by itself:
// servers know the old one, and an ACL file without it would keep them from
// starting.
func passwordsExist(in Input) plan.Verdict {
	secret, owner := name.PasswordsSecret(in.State.Name), build.OwnerReference(in.build())
	if in.State.Passwords == nil {
		return plan.Verdict{
			Reason: v1alpha1.ReasonForming, Look: plan.LookWritten,
			Actions: []plan.Action{plan.CreatePasswords{
				Name: secret, Labels: name.ClusterLabels(in.State.Name), Owner: owner, Users: build.SystemUsers(),
			}},
		}
	}
	for _, user := range build.SystemUsers() {
		if in.State.Passwords[user] == "" {
			return plan.Verdict{
				Hold: plan.Blocked, Reason: v1alpha1.ReasonPasswordSecretMissing, Look: plan.LookWorld,
				Note: fmt.Sprintf("Secret %s lacks the password of user %s; put its key back, or delete the Secret to have new passwords made", secret, user),
			}
		}
	}
	if seen := in.State.Objects["Secret/"+secret]; seen.Orphaned {
		return plan.Verdict{
			Reason: v1alpha1.ReasonForming, Look: plan.LookWritten,
			Actions: []plan.Action{plan.Adopt{Kind: "Secret", Name: secret, UID: seen.UID, Owner: owner}},
		}
	}
	return settled()
}

// object is one of the objects that a cluster has beside its members.
type object struct {
	kind, name string
	config     runtime.ApplyConfiguration
}

// objects are those that the spec asks for.
func (in Input) objects() []object {
	cluster, service := in.build(), name.Service(in.State.Name)
	objects := []object{
		{"ConfigMap", service, build.ConfigMap(cluster, in.configFiles())},
		{"Secret", name.ACLSecret(in.State.Name), build.ACLSecret(cluster, in.State.Passwords, in.State.Users)},
		{"Service", name.HeadlessService(in.State.Name), build.HeadlessService(cluster)},
		{"Service", service, build.Service(cluster)},
	}
	if build.DisruptionBudgeted(in.Spec) {
		objects = append(objects, object{budgetKind, service, build.PodDisruptionBudget(cluster)})
	}
	return objects
}

const budgetKind = "PodDisruptionBudget"

func (in Input) budgetKey() string { return budgetKind + "/" + name.Service(in.State.Name) }

// objectsCurrent: Services, settings, users and the disruption budget are as
// the spec wants them.
func objectsCurrent(in Input) plan.Verdict {
	verdict := plan.Verdict{Reason: v1alpha1.ReasonForming}
	for _, object := range in.objects() {
		seen := in.State.Objects[object.kind+"/"+object.name]
		if seen.Digest != state.Digest(object.config) {
			verdict.Actions = append(verdict.Actions, plan.Ensure{
				Kind: object.kind, Name: object.name, Config: object.config, Manager: name.FieldManager,
			})
			verdict.Look = plan.LookWritten
		}
	}
	budget, exists := in.State.Objects[in.budgetKey()]
	if exists && !budget.Foreign && !budget.Earlier && !build.DisruptionBudgeted(in.Spec) {
		verdict.Actions = append(verdict.Actions, plan.DeleteBudget{Name: name.Service(in.State.Name), UID: budget.UID})
		verdict.Look = plan.LookWritten
	}
	return verdict
}

// nodesExist: every member that the spec wants has its ValkeyNode, which goes
// with its cluster.
func nodesExist(in Input) plan.Verdict {
	cluster := in.build()
	verdict := plan.Verdict{Reason: v1alpha1.ReasonForming}
	for _, member := range in.wanted() {
		spec := build.NodeSpec(cluster, member.Shard, member.Node)
		if record := member.Record; record != nil {
			if record.Orphaned && !record.Deleting && record.Spec.Template.Revision == spec.Template.Revision {
				verdict.Actions = append(verdict.Actions, ensureNode(cluster, member, spec))
			}
			continue
		}
		verdict.Actions = append(verdict.Actions, ensureNode(cluster, member, spec))
		if build.StorageEnabled(in.Spec) {
			verdict.Actions = append(verdict.Actions, ensureSize(cluster, member, EffectiveSize(in, member.Shard)))
		}
	}
	return verdict
}

func ensureNode(cluster build.Cluster, member state.Member, spec v1alpha1.ValkeyNodeSpec) plan.Action {
	return plan.EnsureNode{Node: member.Name, Manager: name.FieldManager, Fields: build.Node(cluster, spec)}
}

// userPasswordsFound: every password that the spec's users name exists. A user
// who never had one is off; the others are not held up.
func userPasswordsFound(in Input) plan.Verdict {
	for _, user := range in.State.Users {
		if user.Missing == "" {
			continue
		}
		verdict := plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonPasswordSecretMissing, Look: plan.LookWorld,
			Note: fmt.Sprintf("user %s cannot log in: %s does not exist; create it", user.Name, user.Missing),
		}
		if len(user.Digests) > 0 {
			verdict.Note = fmt.Sprintf("%s of user %s does not exist; create it; until then the user's other and former passwords stay valid", user.Missing, user.Name)
		}
		return verdict
	}
	return settled()
}
