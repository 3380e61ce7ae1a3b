package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/plan/cluster"
	"valkey.io/valkey-operator/internal/state"
)

// finding is what a condition says: its reason and message.
type finding struct{ reason, message string }

// Cluster is the status that a pass leaves behind. It is computed from the
// same data that the decisions used, and from nothing else.
func Cluster(in cluster.Input, p plan.Plan, o plan.Outcome) v1alpha1.ValkeyClusterStatus {
	status := *in.State.Status.DeepCopy()
	if in.State.Deleting {
		return status
	}
	status.ObservedGeneration = in.State.Generation
	status.Shards = in.Spec.Shards
	status.ReadyShards = readyShards(in)
	status.Rollout = rollout(in, p)
	status.Storage = clusterStorage(in, p, o)
	rememberGrowth(in, status.Storage)

	obstacle, serving := readiness(in, p, o)
	status.Formed = status.Formed || topologySettled(p)
	set := conditionSetter(&status.Conditions, in.State)
	if cluster.Unheard(in) {
		// What was true of the members stays until it is known to be false.
		set = onlyNew(set, in.State.Status.Conditions, v1alpha1.ConditionReady, v1alpha1.ConditionSlotsAssigned, v1alpha1.ConditionDegraded, v1alpha1.ConditionAutoExpansion)
		status.ReadyShards = in.State.Status.ReadyShards
	}
	status.ShardsReady = fmt.Sprintf("%d/%d", status.ReadyShards, status.Shards)
	set(v1alpha1.ConditionReady, serving, orElse(serving, finding{v1alpha1.ReasonHealthy, "every slot is served and every member is in sync"}, obstacle))
	set(v1alpha1.ConditionClusterFormed, status.Formed, orElse(status.Formed, finding{v1alpha1.ReasonHealthy, "the cluster has formed"}, finding{v1alpha1.ReasonForming, obstacle.message}))
	assigned, why := stepFinding(p, "slotsAssigned")
	set(v1alpha1.ConditionSlotsAssigned, assigned, orElse(assigned, finding{v1alpha1.ReasonSlotsAssigned, "every slot has an owner that answers"}, why))
	storageReady, storage := storageFinding(in, p, o, status.Storage)
	progressing, work := progress(p, storageReady, storage)
	tellUse(in, status.Storage)
	storageReady, storage = withFullDisks(in, storageReady, storage)
	set(v1alpha1.ConditionStorageReady, storageReady, storage)
	grows, growth := autoFinding(in, status.Storage)
	set(v1alpha1.ConditionAutoExpansion, grows, growth)
	degraded, damage := degradation(in, p, o, storageReady, storage)
	set(v1alpha1.ConditionDegraded, degraded, damage)
	set(v1alpha1.ConditionProgressing, progressing, work)
	warned, warning := configurationWarning(in, p)
	set(v1alpha1.ConditionConfigurationWarning, warned, warning)
	summarise(&status)
	return status
}

// conditionSetter writes conditions; their transition time moves only when
// their status does.
func conditionSetter(conditions *[]metav1.Condition, snapshot state.Cluster) func(string, bool, finding) {
	return func(conditionType string, holds bool, f finding) {
		value := metav1.ConditionFalse
		if holds {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: conditionType, Status: value, Reason: f.reason, Message: bounded(f.message),
			ObservedGeneration: snapshot.Generation, LastTransitionTime: metav1.NewTime(snapshot.Now),
		})
	}
}

// onlyNew leaves the named conditions as they are. One that is not there yet,
// as in a status that was lost or taken from a backup, is set all the same.
func onlyNew(set func(string, bool, finding), before []metav1.Condition, kept ...string) func(string, bool, finding) {
	return func(conditionType string, holds bool, f finding) {
		if !slices.Contains(kept, conditionType) || meta.FindStatusCondition(before, conditionType) == nil {
			set(conditionType, holds, f)
		}
	}
}

// bounded keeps a message within what a condition may hold, 32768 bytes, and
// within what anybody reads.
func bounded(message string) string {
	const most = 1024
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + " …"
}

func orElse(holds bool, good, bad finding) finding {
	if holds {
		return good
	}
	return bad
}

// topologyRules are the rules that must be settled for every slot to be served
// and every member to be in sync, in the order in which an obstacle is told.
var topologyRules = []string{
	"namesFree", "identityRecorded", "passwordsExist", "objectsCurrent", "nodesExist",
	"membersAnswer", "dataPresent", "primariesPresent", "slotsAssigned", "nodesMet", "replicasAttached",
}

func topologySettled(p plan.Plan) bool {
	for _, rule := range topologyRules {
		if step, asked := p.Step(rule); !asked || step.Hold != plan.Settled || len(step.Actions) > 0 {
			return false
		}
	}
	return true
}

// readiness says whether clients are served in full, and otherwise by what
// they are not.
func readiness(in cluster.Input, p plan.Plan, o plan.Outcome) (finding, bool) {
	if refused, found := refusal(o); found {
		if !topologySettled(p) {
			return refused, false
		}
	}
	for _, rule := range topologyRules {
		settled, why := stepFinding(p, rule)
		if settled || returning(in, p, rule) || updating(in, p, rule) {
			continue
		}
		if !in.State.Status.Formed && why.reason != v1alpha1.ReasonNameTaken && why.reason != v1alpha1.ReasonIdentityConflict {
			why.reason = v1alpha1.ReasonForming
			why.message = withTrouble(in, p, why.message)
		}
		return why, false
	}
	return podsReady(in)
}

// updating says whether a rule is not settled because the objects of a formed
// cluster are being brought up to its spec: an edit is no outage. One that is
// refused is told as that.
func updating(in cluster.Input, p plan.Plan, rule string) bool {
	objects, asked := p.Step("objectsCurrent")
	if !in.State.Status.Formed || !asked || objects.Hold != plan.Settled {
		return false
	}
	_, judged := p.Step(rule)
	return rule == "objectsCurrent" || rule == "nodesExist" && !judged
}

// podsReady says whether every pod is ready, and otherwise which one is not.
func podsReady(in cluster.Input) (finding, bool) {
	for _, member := range in.State.Members {
		pod, one := state.LivePod(member.Pods)
		if member.Wanted && (!one || !pod.Ready) && missed(in, member) {
			return finding{v1alpha1.ReasonPodsNotReady, fmt.Sprintf("the pod of node %s is not ready%s", member.Name, notReady(member))}, false
		}
	}
	return finding{}, true
}

func notReady(member state.Member) string {
	if member.Agent.Known && member.Agent.Value.NotReady != "" {
		return ": " + member.Agent.Value.NotReady
	}
	return ""
}

// stepFinding says whether a rule is settled and wants nothing done. A rule
// that was not asked stands behind one that is not settled.
func stepFinding(p plan.Plan, rule string) (bool, finding) {
	step, asked := p.Step(rule)
	if !asked {
		return false, finding{v1alpha1.ReasonForming, "earlier steps are not finished"}
	}
	if step.Hold == plan.Settled && len(step.Actions) == 0 {
		return true, finding{}
	}
	message := step.Note
	if message == "" {
		message = describe(step.Actions)
	}
	return false, finding{step.Reason, message}
}

func describe(actions []plan.Action) string {
	var texts []string
	for i, action := range actions {
		if i == 3 {
			texts = append(texts, fmt.Sprintf("and %d more", len(actions)-i))
			break
		}
		texts = append(texts, action.String())
	}
	return strings.Join(texts, ", ")
}

// withTrouble adds what keeps members from starting, as their nodes say it.
func withTrouble(in cluster.Input, p plan.Plan, message string) string {
	if trouble, found := memberTrouble(in, p, hardReasons...); found {
		return fmt.Sprintf("%s; %s: %s", message, trouble.reason, trouble.message)
	}
	return message
}

// causesOfSilence are why a member does not answer: they tell more than that.
var causesOfSilence = []string{v1alpha1.ReasonConfigRefused, v1alpha1.ReasonDowngradeRefused}

// memberTrouble is the first thing for one of some reasons, as a node says it.
func memberTrouble(in cluster.Input, p plan.Plan, reasons ...string) (finding, bool) {
	for _, member := range in.State.Members {
		if member.Record == nil {
			continue
		}
		for _, conditionType := range []string{v1alpha1.ConditionStorageReady, v1alpha1.ConditionWorkloadReady} {
			condition := meta.FindStatusCondition(member.Record.Status.Conditions, conditionType)
			if condition != nil && condition.Status == metav1.ConditionFalse && slices.Contains(reasons, condition.Reason) && !carriedOut(in, p, condition.Reason) {
				return finding{condition.Reason, fmt.Sprintf("node %s: %s", member.Name, condition.Message)}, true
			}
		}
	}
	return finding{}, false
}

// refusal is the API server's refusal of an object, if there was one.
func refusal(o plan.Outcome) (finding, bool) {
	for _, result := range o {
		_, trial := result.At.(plan.TryExpandClaim) // it is told of the volumes
		_, setting := result.At.(plan.SetConfig)    // it is a server's
		if trial || setting {
			continue
		}
		if _, refused := errors.AsType[*plan.Refusal](result.Err); refused {
			return finding{v1alpha1.ReasonObjectRefused, "the API server refused to " + result.Err.Error()}, true
		}
	}
	return finding{}, false
}

// refused is what somebody said no to: a rule, the API server or a server.
func refused(p plan.Plan, o plan.Outcome) (finding, bool) {
	for _, step := range p {
		if step.Hold == plan.Blocked && step.Reason != v1alpha1.ReasonVolumeShrinkRefused {
			return finding{step.Reason, step.Note}, true
		}
	}
	if object, found := refusal(o); found {
		return object, true
	}
	if settings, found := cluster.SettingRefusalIn(o); found {
		return finding{v1alpha1.ReasonConfigRefused, cluster.RefusedSettingsNote(settings)}, true
	}
	return finding{}, false
}

// degradation says whether something is down or refused.
func degradation(in cluster.Input, p plan.Plan, o plan.Outcome, storageReady bool, storage finding) (bool, finding) {
	if no, found := refused(p, o); found {
		return true, no
	}
	if trouble, found := memberTrouble(in, p, causesOfSilence...); found {
		return true, trouble
	}
	if step, asked := p.Step("membersAnswer"); asked && step.Hold != plan.Settled && in.State.Status.Formed {
		return true, finding{step.Reason, step.Note}
	}
	if !storageReady && (hard(storage.reason) || storage.reason == v1alpha1.ReasonDiskFull) {
		return true, storage
	}
	if trouble, found := memberTrouble(in, p, hardReasons...); found {
		return true, trouble
	}
	return false, finding{v1alpha1.ReasonHealthy, "nothing is down or refused"}
}

// progress says whether the operator is carrying something out. To try what was
// refused once more is none.
func progress(p plan.Plan, storageReady bool, storage finding) (bool, finding) {
	if !storageReady && !hard(storage.reason) {
		return true, storage
	}
	for _, step := range p {
		if step.Reason != "" && (step.Hold == plan.Wait || step.Hold == plan.Settled && len(step.Actions) > 0) {
			message := step.Note
			if message == "" {
				message = describe(step.Actions)
			}
			return true, finding{step.Reason, message}
		}
	}
	return false, finding{v1alpha1.ReasonSettled, "nothing is left to do"}
}

// configurationWarning says what works and is risky: the first thing lends its
// reason, the message tells all.
func configurationWarning(in cluster.Input, p plan.Plan) (bool, finding) {
	warnings := configurationWarnings(in, p)
	if len(warnings) == 0 {
		return false, finding{v1alpha1.ReasonNoWarning, "nothing to warn about"}
	}
	told := warnings[0]
	for _, more := range warnings[1:] {
		told.message += fmt.Sprintf("; %s: %s", more.reason, more.message)
	}
	return true, told
}

func configurationWarnings(in cluster.Input, p plan.Plan) []finding {
	var warnings []finding
	if settled, why := stepFinding(p, "userPasswordsFound"); !settled {
		warnings = append(warnings, why)
	}
	if refused := refusedUsers(in); len(refused) > 0 {
		warnings = append(warnings, finding{v1alpha1.ReasonUserRefused, fmt.Sprintf("the servers refuse the permissions of user %s, who is as before or off; mend spec.users", strings.Join(refused, ", "))})
	}
	if advice, small := cluster.SizingAdvice(in); small {
		warnings = append(warnings, finding{v1alpha1.ReasonVolumeSmallForMaxmemory, advice})
	}
	if advice, crowded := cluster.CrowdedShards(in); crowded {
		warnings = append(warnings, finding{v1alpha1.ReasonShardOnOneWorker, advice})
	}
	if advice, small := cluster.MemoryAdvice(in); small {
		warnings = append(warnings, finding{v1alpha1.ReasonMemoryBelowMaxmemory, advice})
	}
	if advice, short := cluster.GraceAdvice(in); short {
		warnings = append(warnings, finding{v1alpha1.ReasonGracePeriodShort, advice})
	}
	if !build.Names(in.Spec.Users, name.UserDefault) {
		warnings = append(warnings, finding{v1alpha1.ReasonDefaultUserOpen, `everybody who reaches the servers may do everything: spec.users does not name the user "default"; add it with a passwordSecret, or with enabled: false`})
	}
	if in.Spec.Shards < 3 && in.Spec.Replicas > 0 {
		warnings = append(warnings, finding{v1alpha1.ReasonNoAutomaticFailover, fmt.Sprintf("with %d shards the servers cannot elect a new primary by vote, so failover depends on the operator; three shards or more can", in.Spec.Shards)})
	}
	return warnings
}

// refusedUsers are the users of whom any member says that its server refuses them.
func refusedUsers(in cluster.Input) []string {
	var refused []string
	for _, member := range in.State.Members {
		refused = append(refused, member.Agent.Value.RefusedUsers...)
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

// summarise sums the conditions up in state, reason and message.
func summarise(status *v1alpha1.ValkeyClusterStatus) {
	is := func(conditionType string) (*metav1.Condition, bool) {
		condition := meta.FindStatusCondition(status.Conditions, conditionType)
		return condition, condition != nil && condition.Status == metav1.ConditionTrue
	}
	ready, isReady := is(v1alpha1.ConditionReady)
	degraded, isDegraded := is(v1alpha1.ConditionDegraded)
	progressing, isProgressing := is(v1alpha1.ConditionProgressing)
	deciding := ready
	switch {
	case isDegraded && (degraded.Reason == v1alpha1.ReasonNameTaken || degraded.Reason == v1alpha1.ReasonIdentityConflict):
		status.State, deciding = v1alpha1.StateFailed, degraded
	case isDegraded:
		status.State, deciding = v1alpha1.StateDegraded, degraded
	case !status.Formed:
		status.State = v1alpha1.StateInitializing
	case isReady && isProgressing:
		status.State, deciding = v1alpha1.StateReconciling, progressing
	case isReady:
		status.State = v1alpha1.StateReady
	default:
		status.State = v1alpha1.StateReconciling
	}
	status.Reason, status.Message = deciding.Reason, deciding.Message
}

// readyShards counts the shards whose members all answer, own or follow, and are ready.
func readyShards(in cluster.Input) int32 {
	ready := int32(0)
	for shard := range int(in.Spec.Shards) {
		if cluster.ShardInSync(in, shard) {
			ready++
		}
	}
	return ready
}
