package cluster

import (
	"fmt"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// longLog is how many times as large as its last rewrite a log must be for
// another one to be worth it: the server's own default, which users may have
// turned off, and from which a failed rewrite keeps it for up to an hour.
const longLog = 2

// roomMargin is by how much more than the estimate there must be room for a rewrite.
const roomMargin = 1.1

// logsShort: no volume is full of a log that a rewrite would shorten. It is the
// first remedy of automatic growth, which waits for its end.
func logsShort(in Input) plan.Verdict {
	growths := AutoGrowth(in)
	if len(growths) == 0 {
		return settled()
	}
	// Nobody tells when a disk fills up: the agents must be asked.
	verdict := plan.Verdict{Look: protocol.SampleInterval}
	for _, growth := range growths {
		if growth.Reason == v1alpha1.ReasonAutoExpanding && growth.Target != nil {
			verdict.Look = plan.LookGossip // as soon as the target is written down
		}
		for _, member := range growth.shorten {
			if server, answers := in.serverOf(member); answers {
				verdict.Reason, verdict.Note = v1alpha1.EventDiskPressure, growth.Note
				verdict.Actions = append(verdict.Actions, plan.RewriteLog{Server: server})
			}
		}
	}
	return verdict
}

func (in Input) serverOf(member state.Member) (plan.Server, bool) {
	for _, v := range in.voices() {
		if v.Name == member.Name {
			return v.server(), true
		}
	}
	return plan.Server{}, false
}

// shortenLogs is the growth of a shard that waits until logs are rewritten: each
// full volume has one that would bring it below the threshold, or that is being
// rewritten already. It never is where servers are about to refuse writes.
func shortenLogs(settings growthSettings, pressed pressure) (ShardGrowth, bool) {
	if pressed.emergency || settings.mode != v1alpha1.AutoExpansionAuto {
		return ShardGrowth{}, false
	}
	waiting := ShardGrowth{
		Reason: v1alpha1.ReasonAutoArmed, RewriteFirst: true,
		Note: fmt.Sprintf("%s %s; rewriting its log comes first", pressed.worst, pressed.how),
	}
	for _, member := range pressed.members {
		files := member.Agent.Value.Files
		switch {
		case files == nil || !files.Log || files.LogBytes <= longLog*files.LogBaseBytes:
			return ShardGrowth{}, false
		case files.Writing:
		case rewriteHelps(settings, member):
			waiting.shorten = append(waiting.shorten, member.Member)
		default:
			return ShardGrowth{}, false
		}
	}
	return waiting, true
}

// rewriteHelps says whether there is room for a rewrite of a member's log, and
// the volume would be below the threshold after it, and during the next one.
func rewriteHelps(settings growthSettings, member pressedMember) bool {
	files, seen := member.Agent.Value.Files, member.use
	if !seen.Known || seen.Value.next <= 0 || files.RewriteFailed || member.Agent.Value.Server != protocol.ServerRunning {
		return false
	}
	if seen.Value.next*roomMargin > seen.Value.available || float64(files.LogBytes) > seen.Value.used {
		return false
	}
	after := seen.Value.used - float64(files.LogBytes) + 2*seen.Value.next
	return 100*after/seen.Value.total < settings.threshold
}
