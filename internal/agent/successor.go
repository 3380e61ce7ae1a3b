package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// successor chooses who takes a primary's place among the facts of the shard's
// other members, by host: the one with the newest data of those that follow it,
// are linked to it and are not stopping themselves. Without one it says why.
func successor(primary string, answers map[string]protocol.Facts) (host string, node int, why string) {
	var unfit []string
	best := protocol.Facts{}
	for _, from := range slices.Sorted(maps.Keys(answers)) {
		facts := answers[from]
		if trouble := unfitness(primary, facts); trouble != "" {
			unfit = append(unfit, fmt.Sprintf("node %d %s", facts.Node, trouble))
			continue
		}
		if host == "" || facts.Offset > best.Offset {
			host, best = from, facts
		}
	}
	switch {
	case host != "":
		return host, best.Node, ""
	case len(unfit) == 0:
		return "", 0, "no other member of the shard answers"
	}
	slices.Sort(unfit)
	return "", 0, strings.Join(unfit, ", ")
}

// unfitness is why a member cannot take the primary's place; empty: it can.
func unfitness(primary string, facts protocol.Facts) string {
	switch {
	case facts.Server != protocol.ServerRunning:
		return "is " + string(facts.Server)
	case facts.Role != protocol.RoleReplica || facts.PrimaryID != primary:
		return "does not follow it"
	case !facts.Ready:
		return "is not ready: " + facts.NotReady
	}
	return ""
}

// votes counts the primaries that own slots, and those whose vote would arrive: one
// that has not connected again to a replica which was away grants its vote in vain.
func votes(table valkey.NodeTable, senders map[valkey.NodeID]bool) (heard, voters int) {
	for _, node := range table.Nodes {
		if !node.Flags.Primary || node.Slots.IsEmpty() {
			continue
		}
		voters++
		if senders[node.ID] {
			heard++
		}
	}
	return heard, voters
}
