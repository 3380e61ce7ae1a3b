package valkey

import (
	"errors"
	"fmt"
	"strings"
)

// ParseNodesConf reads a nodes.conf that is whole: it ends with the line of vars
// and names the server itself. A server writes it so and replaces it in one step;
// anything else was damaged later, and is an error even where a server would load it.
func ParseNodesConf(text string) (table NodeTable, self NodeEntry, err error) {
	table, err = ParseNodeTable(text)
	if err != nil {
		return NodeTable{}, NodeEntry{}, err
	}
	self, known := table.Myself()
	switch {
	case table.Vars == nil || !strings.HasSuffix(text, "\n"):
		return NodeTable{}, NodeEntry{}, errors.New("node table: its end is missing")
	case !known:
		return NodeTable{}, NodeEntry{}, errors.New("node table: it does not say which node is its own")
	}
	return table, self, nil
}

// Disproves says why the text of a damaged nodes.conf shows that a whole one is
// older; empty when nothing in it does. Only its complete lines are believed.
func (t NodeTable) Disproves(damaged string) string {
	highest := t.highestEpoch()
	own, _ := t.Myself()
	for line := range strings.Lines(damaged) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasSuffix(line, "\n") {
			continue
		}
		var found NodeTable
		if addLine(&found, fields) != nil {
			continue
		}
		if epoch := found.highestEpoch(); epoch > highest {
			return fmt.Sprintf("it knows of epoch %d, and the copy only of %d", epoch, highest)
		}
		if self, known := found.Myself(); known && (self.ID != own.ID || self.PrimaryID != own.PrimaryID || !self.Slots.Equal(own.Slots)) {
			return "the copy is of another id, role or slots"
		}
	}
	return ""
}

func (t NodeTable) highestEpoch() (highest uint64) {
	if t.Vars != nil {
		highest = t.Vars.CurrentEpoch
	}
	for _, node := range t.Nodes {
		highest = max(highest, node.ConfigEpoch)
	}
	return highest
}

// WithoutNextVote is a nodes.conf for a server that may have voted after it was
// written: it takes the vote in the next epoch for given.
func WithoutNextVote(text string) (string, error) {
	table, _, err := ParseNodesConf(text)
	if err != nil {
		return "", err
	}
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "vars ") {
			kept.WriteString(line)
		}
	}
	epoch := table.highestEpoch()
	fmt.Fprintf(&kept, "vars currentEpoch %d lastVoteEpoch %d\n", epoch, max(epoch+1, table.Vars.LastVoteEpoch))
	return kept.String(), nil
}
