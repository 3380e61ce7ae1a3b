package cluster

import (
	"fmt"
	"strings"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// stopsNeeded: a member is stopped only while its volume grows by that. It is
// started again when the driver has done its part, when the growth is over for
// any other cause, when the shard needs the member, and when nothing came of it.
func stopsNeeded(in Input) plan.Verdict {
	verdict := plan.Verdict{Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld}
	var notes []string
	for _, member := range in.wanted() {
		inVain, why := stopOver(in, member)
		if why == "" && member.Record != nil && member.Record.StoppedInVain != "" && !StopsMembers(in.Spec) {
			why = "what was tried in vain is forgotten"
		}
		if why == "" {
			continue
		}
		verdict.Actions = append(verdict.Actions, in.setStopped(member, false, inVain))
		notes = append(notes, fmt.Sprintf("node %s is not stopped any more: %s", member.Name, why))
	}
	if len(notes) == 0 {
		return settled()
	}
	verdict.Note = strings.Join(bounded(notes), "; ")
	return verdict
}

// offlineVolumesGrown: no volume waits for its member to be stopped. If the user
// wants that, one member of a shard at a time is stopped, replicas first, and a
// primary only after a replica has taken its place.
func offlineVolumesGrown(in Input) plan.Verdict {
	if !build.StorageEnabled(in.Spec) || !in.formed() {
		return settled()
	}
	waiting, away := in.waitingForStop(), in.awayToGrow()
	switch {
	case len(waiting) == 0 && len(away) == 0:
		return firstRefusals(in)
	case !StopsMembers(in.Spec):
		return manualStops(waiting)
	}
	if failed := in.stoppedInVain(); len(failed) > 0 {
		return plan.Verdict{
			Hold: plan.Blocked, Reason: v1alpha1.ReasonExpansionStalled,
			Note: fmt.Sprintf("%s had been stopped for %s and the volume did not grow, so nobody else is stopped; see the events of its claim and the driver's resizer, then set spec.storage.expansion.offlinePolicy to Manual and back to RollingRestart to try again, or set another size",
				strings.Join(bounded(failed), ", "), stopPatience),
		}
	}
	return newStops(in, away)
}

// RuleOfflineVolumesGrown is looked up in a plan by those who tell what it says.
const RuleOfflineVolumesGrown = "offlineVolumesGrown"

// firstRefusals waits until a driver that says that it grows no volume in use can
// be believed.
func firstRefusals(in Input) plan.Verdict {
	for _, member := range in.wanted() {
		if _, refused := refusedInUse(member); refused {
			return plan.Verdict{
				Hold: plan.Wait, Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookWorld,
				Note: fmt.Sprintf("the driver of claim %s says that it grows no volume in use; it is believed when it has said so for %s", member.Claim.Name, refusedTime),
			}
		}
	}
	return settled()
}

// StopsMembers says whether the user lets members be stopped for their volumes to
// grow.
func StopsMembers(spec v1alpha1.ValkeyClusterSpec) bool {
	return build.StorageEnabled(spec) && spec.Storage.Expansion.OfflinePolicy == v1alpha1.OfflineRollingRestart
}

// manualStops says what a person has to do.
func manualStops(waiting []state.Member) plan.Verdict {
	if len(waiting) == 0 {
		return settled()
	}
	var names []string
	for _, member := range waiting {
		names = append(names, member.Name)
	}
	first := waiting[0]
	return plan.Verdict{
		Hold: plan.Blocked, Reason: v1alpha1.ReasonOfflineExpansionRequired,
		Note: fmt.Sprintf("the volumes of %d members (%s) grow only while no pod uses them; set spec.storage.expansion.offlinePolicy to RollingRestart to have the members stopped one after the other, or stop each yourself, replicas first: scale %s %s to 0 until claim %s has the condition FileSystemResizePending or the new capacity, then back to 1",
			len(names), strings.Join(bounded(names), ", "), first.Record.Spec.Template.WorkloadType, name.Workload(first.Name), first.Claim.Name),
	}
}

// newStops stops members where that is safe now, and says what it waits for
// where it is not.
func newStops(in Input, away []state.Member) plan.Verdict {
	taken := in.takeTurns()
	verdict := plan.Verdict{Reason: v1alpha1.ReasonVolumeExpanding, Look: plan.LookServer, Actions: taken.stops.actions}
	var notes []string
	for _, member := range away {
		notes = append(notes, describeAway(member))
	}
	if taken.unwell != "" {
		notes = append(notes, "nobody is stopped while "+taken.unwell)
	}
	verdict.Note = strings.Join(bounded(append(notes, taken.stops.notes...)), "; ")
	if len(verdict.Actions) == 0 {
		verdict.Hold = plan.Wait
	}
	return verdict
}

func (in Input) setStopped(member state.Member, stopped bool, inVain string) plan.Action {
	return plan.EnsureNode{Node: member.Name, Manager: name.FieldManagerStop, Fields: build.NodeStop(in.build(), build.Stop{
		Shard: member.Shard, Node: member.Node, Version: member.Record.Version, Stopped: stopped, At: in.State.Now, InVain: inVain,
	})}
}
