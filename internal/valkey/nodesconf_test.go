package valkey

import (
	"strings"
	"testing"
)

const (
	idOne = "1111111111111111111111111111111111111111"
	idTwo = "2222222222222222222222222222222222222222"
	whole = idOne + " 10.0.0.1:6379@16379 master - 0 0 4 connected 0-100\n" +
		idTwo + " 10.0.0.2:6379@16379 myself,slave " + idOne + " 0 0 4 connected\n" +
		"vars currentEpoch 5 lastVoteEpoch 3\n"
)

func TestParseNodesConf(t *testing.T) {
	t.Parallel()
	if _, self, err := ParseNodesConf(whole); err != nil || self.ID != idTwo {
		t.Errorf("got %s, %v", self.ID, err)
	}
	for end := range len(whole) {
		if _, _, err := ParseNodesConf(whole[:end]); err == nil {
			t.Errorf("cut after %d bytes it is taken for whole: %q", end, whole[:end])
		}
	}
	if _, _, err := ParseNodesConf(strings.Replace(whole, "myself,", "", 1)); err == nil {
		t.Error("a table of nobody is taken for whole")
	}
}

func TestDisproves(t *testing.T) {
	t.Parallel()
	table, _, err := ParseNodesConf(whole)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		damaged string
		older   bool
	}{
		"nothing":                     {"", false},
		"its first half":              {whole[:len(whole)/2], false},
		"a later epoch":               {strings.Replace(whole, " 4 connected 0", " 6 connected 0", 1)[:100], true},
		"a later epoch in a cut line": {strings.Replace(whole, " 4 connected 0", " 6 connected 0", 1)[:80], false},
		"later vars":                  {"vars currentEpoch 6 lastVoteEpoch 6\n", true},
		"itself as a primary":         {idTwo + " 10.0.0.2:6379@16379 myself,master - 0 0 4 connected 0-100\n", true},
		"another one as itself":       {idOne + " 10.0.0.1:6379@16379 myself,master - 0 0 4 connected 0-100\n", true},
		"lines that are not readable": {"\x00\x00\n\n", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if why := table.Disproves(test.damaged); (why != "") != test.older {
				t.Errorf("got %q, want older: %t", why, test.older)
			}
		})
	}
}

func TestWithoutNextVote(t *testing.T) {
	t.Parallel()
	text, err := WithoutNextVote(whole)
	if want := strings.Replace(whole, "lastVoteEpoch 3", "lastVoteEpoch 6", 1); err != nil || text != want {
		t.Errorf("got %q, %v; want %q", text, err, want)
	}
}
