package cluster

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// voice is a member whose server answers with its node table.
type voice struct {
	state.Member
	id     valkey.NodeID
	ip     string
	table  valkey.NodeTable
	myself valkey.NodeEntry
}

func (v voice) server() plan.Server {
	return plan.Server{Node: v.Name, Address: name.ClientAddress(v.ip)}
}

// worker is the Kubernetes node that the member's pod runs on.
func (v voice) worker() string {
	pod, _ := state.LivePod(v.Pods)
	return pod.Worker
}

// primaryWithSlots says whether the member serves slots by its own word.
func (v voice) primaryWithSlots() bool {
	return v.myself.Flags.Primary && !v.myself.Slots.IsEmpty()
}

// voices are the wanted members whose servers answer with their tables and
// whose agents confirm that they are this cluster's: safety rests on that
// check before any member is introduced to another.
func (in Input) voices() []voice {
	var voices []voice
	for _, member := range in.wanted() {
		table, myself, known := member.Table()
		pod, one := state.LivePod(member.Pods)
		if !known || !one || pod.IP == "" || !member.Agent.Known {
			continue
		}
		voices = append(voices, voice{Member: member, id: myself.ID, ip: pod.IP, table: table, myself: myself})
	}
	return voices
}

// everyVoice are the voices, and whether every wanted member is among them.
func (in Input) everyVoice() ([]voice, bool) {
	voices := in.voices()
	return voices, len(voices) == len(in.wanted())
}

// ids are the ids of the wanted members, and whether all of them are known.
func (in Input) ids() (map[valkey.NodeID]state.Member, bool) {
	ids, all := map[valkey.NodeID]state.Member{}, true
	for _, member := range in.wanted() {
		id, known := member.ID()
		if !known {
			all = false
			continue
		}
		ids[id] = member
	}
	return ids, all
}

// membersAnswer: every member's server answers, but for those that are down by our
// hand. It never holds anything up but says who is missing, and
// why.
func membersAnswer(in Input) plan.Verdict {
	var silent, held []string
	reason, look := v1alpha1.ReasonMembersStarting, plan.LookWorld
	if in.formed() {
		reason = v1alpha1.ReasonMemberUnreachable
	}
	for _, member := range in.wanted() {
		if _, _, known := member.Table(); known && member.Agent.Known || in.away(member) && !overdue(member) {
			continue
		}
		if member.Agent.Known && member.Agent.Value.Server == protocol.ServerHeld {
			held = append(held, member.Name+" ("+member.Agent.Value.Message+")")
			continue
		}
		silent = append(silent, member.Name+why(member))
		look = min(look, lookFor(in, member))
	}
	switch {
	case len(held) > 0:
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonMemberHeld, Look: plan.LookServer,
			Note: "held back by their agents: " + strings.Join(held, ", "),
		}
	case len(silent) > 0:
		return plan.Verdict{
			Hold: plan.Wait, Reason: reason, Look: look,
			Note: fmt.Sprintf("waiting for %d of %d members: %s", len(silent), len(in.wanted()), strings.Join(bounded(silent), ", ")),
		}
	default:
		return settled()
	}
}

// startingTime is how long after its creation a pod's server is expected any
// moment: pulling an image may take it, an answer then comes within tenths of a second.
const startingTime = time.Minute

// lookFor is how soon to look at a silent member again: nobody tells when a
// server begins to answer, while a pod that does not run wakes us when it does.
func lookFor(in Input, member state.Member) time.Duration {
	pod, one := state.LivePod(member.Pods)
	switch {
	case !one || pod.IP == "":
		return plan.LookWorld
	case in.formed() || in.State.Now.Sub(pod.CreatedAt) > startingTime:
		return plan.LookServer
	}
	return plan.LookGossip
}

// why is the best explanation of a member's silence.
func why(member state.Member) string {
	if member.Agent.Known && member.Agent.Value.Message != "" {
		return " (" + member.Agent.Value.Message + ")"
	}
	if pod, one := state.LivePod(member.Pods); one && pod.Problem != "" {
		return " (" + pod.Problem + ")"
	}
	return ""
}

// bounded keeps a list short enough for a message.
func bounded(list []string) []string {
	const most = 6
	if len(list) <= most {
		return list
	}
	return append(append([]string{}, list[:most]...), fmt.Sprintf("and %d more", len(list)-most))
}

// unheardTime is how long answers may be missed. The longest that is known to
// pass by itself is a new password on its way to the servers, for which the
// kubelet takes a minute or more.
const unheardTime = 2 * time.Minute

// Unheard says whether a formed cluster merely missed answers: every member
// that is silent has a pod that its worker, which asks more often, calls ready,
// no other member suspects it, and it has not been so for long.
func Unheard(in Input) bool {
	waiting := meta.FindStatusCondition(in.State.Status.Conditions, v1alpha1.ConditionProgressing)
	if waiting != nil && waiting.Status == metav1.ConditionTrue && waiting.Reason == v1alpha1.ReasonMemberUnreachable &&
		in.State.Now.Sub(waiting.LastTransitionTime.Time) > unheardTime {
		return false
	}
	missed := false
	for _, member := range in.wanted() {
		if member.Server.Known && member.Agent.Known {
			continue
		}
		pod, one := state.LivePod(member.Pods)
		if !one || !pod.Ready || suspected(in, member) {
			return false
		}
		missed = true
	}
	return missed && in.formed()
}

// suspected says whether a member that answers calls another one failing.
func suspected(in Input, silent state.Member) bool {
	if silent.Record == nil {
		return false
	}
	for _, member := range in.State.Members {
		table, _, known := member.Table()
		if !known {
			continue
		}
		entry, found := table.ByID(valkey.NodeID(silent.Record.Status.NodeID))
		if found && (entry.Flags.Failed || entry.Flags.Suspected) {
			return true
		}
	}
	return false
}
