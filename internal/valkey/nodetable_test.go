package valkey

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	idA = "60c52a526c779ae3cff691622ba70a2cf94bec1e"
	idB = "67292d4e2f481dfb8a1db456a49d45b93610b9cb"
)

// sample is a file that a real server gave.
func sample(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func TestParseNodeTableOfAServer(t *testing.T) {
	t.Parallel()
	want := map[NodeID]NodeEntry{
		"d044668947b4f3cdf2c4b15cc3d9f2aa25999fd9": {
			Addr:  NodeAddr{Host: "127.77.81.4", Port: 6379, BusPort: 16379},
			Flags: NodeFlags{Replica: true}, PrimaryID: idA, ConfigEpoch: 1, LinkConnected: true,
		},
		idA: {
			Addr:  NodeAddr{Host: "127.77.81.1", Port: 6379, BusPort: 16379, Hostname: "one.example"},
			Flags: NodeFlags{Myself: true, Primary: true}, ConfigEpoch: 1, LinkConnected: true,
			Slots: Slots{{0, 5460}}, Migrating: []OpenSlot{{Slot: 100, Peer: idB}},
		},
		"73381b1160d3b2418d9dcd9f93c9ad1e35188b36": {
			Addr:  NodeAddr{Host: "127.77.81.3", Port: 6379, BusPort: 16379},
			Flags: NodeFlags{Primary: true, Failed: true}, ConfigEpoch: 3, Slots: Slots{{10923, 16383}},
		},
		idB: {
			Addr:  NodeAddr{Host: "127.77.81.2", Port: 6379, BusPort: 16379},
			Flags: NodeFlags{Primary: true}, ConfigEpoch: 2, LinkConnected: true, Slots: Slots{{5461, 10922}},
		},
	}
	for file, vars := range map[string]*TableVars{"nodes-8.1.txt": nil, "nodes-conf-8.1.txt": {CurrentEpoch: 3}} {
		table, err := ParseNodeTable(sample(t, file))
		if err != nil {
			t.Fatal(err)
		}
		got := map[NodeID]NodeEntry{}
		for _, n := range table.Nodes {
			id := n.ID
			n.ID = ""
			got[id] = n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
		if diff := cmp.Diff(vars, table.Vars); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}

func TestNodeTableLookups(t *testing.T) {
	t.Parallel()
	table, err := ParseNodeTable(sample(t, "nodes-8.1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	mine, _ := table.Myself()
	owner, _ := table.Owner(6000)
	_, strangerKnown := table.ByID("abc")
	replicas := table.ReplicasOf(idA)
	if mine.ID != idA || owner.ID != idB || strangerKnown || len(replicas) != 1 || !table.Owned().Equal(AllSlots()) {
		t.Errorf("mine %s, owner %s, stranger %v, replicas %v, owned %s", mine.ID, owner.ID, strangerKnown, replicas, table.Owned())
	}
	if _, owned := (NodeTable{}).Owner(1); owned {
		t.Error("an empty table has an owner")
	}
}

func TestParseNodeTableLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		line string
		want NodeEntry
	}{
		"a server that does not know its own address": {
			line: idA + " :7091@17091 myself,master - 0 0 0 connected",
			want: NodeEntry{Addr: NodeAddr{Port: 7091, BusPort: 17091}, Flags: NodeFlags{Myself: true, Primary: true}, LinkConnected: true},
		},
		"an IPv6 address": {
			line: idA + " fd00::7:6379@16379,,shard-id=x slave,fail?,nofailover " + idB + " 1 2 9 disconnected",
			want: NodeEntry{
				Addr:  NodeAddr{Host: "fd00::7", Port: 6379, BusPort: 16379},
				Flags: NodeFlags{Replica: true, Suspected: true, NoFailover: true}, PrimaryID: idB, ConfigEpoch: 9,
			},
		},
		"an address without a bus port, from an old file": {
			line: idA + " 10.0.0.1:6379 master - 1 2 9 connected 5",
			want: NodeEntry{
				Addr:  NodeAddr{Host: "10.0.0.1", Port: 6379},
				Flags: NodeFlags{Primary: true}, ConfigEpoch: 9, LinkConnected: true, Slots: Slots{{5, 5}},
			},
		},
		"no address, and a handshake": {
			line: idA + " :0@0 master,noaddr,handshake - 1 2 9 disconnected",
			want: NodeEntry{Flags: NodeFlags{Primary: true, NoAddress: true, Handshake: true}, ConfigEpoch: 9},
		},
		"open slots of both kinds, and a flag of the future": {
			line: idA + " 10.0.0.1:6379@16379 master,shiny - 1 2 9 connected 1-2 [3->-" + idB + "] [4-<-" + idB + "]",
			want: NodeEntry{
				Addr:  NodeAddr{Host: "10.0.0.1", Port: 6379, BusPort: 16379},
				Flags: NodeFlags{Primary: true}, ConfigEpoch: 9, LinkConnected: true, Slots: Slots{{1, 2}},
				Migrating: []OpenSlot{{3, idB}}, Importing: []OpenSlot{{4, idB}},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.ID = idA
			table, err := ParseNodeTable(test.line + "\n")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]NodeEntry{test.want}, table.Nodes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseNodeTableRefuses(t *testing.T) {
	t.Parallel()
	good := idA + " 10.0.0.1:6379@16379 master - 1 2 9 connected 1-2"
	tests := map[string]string{
		"an empty text":            "",
		"a newline alone":          "\n",
		"zero bytes":               strings.Repeat("\x00", len(good)),
		"vars alone":               "vars currentEpoch 3 lastVoteEpoch 0",
		"vars cut short":           good + "\nvars currentEpoch 3 lastVoteEpoch",
		"vars that are no numbers": good + "\nvars currentEpoch x lastVoteEpoch 0",
		"a line cut short":         good[:70],
		"an id cut short":          good[1:],
		"a node met twice":         good + "\n" + good,
		"no address":               strings.Replace(good, "10.0.0.1:6379@16379", "x", 1),
		"a port beyond all ports":  strings.Replace(good, "6379@", "66379@", 1),
		"a bus port of letters":    strings.Replace(good, "16379", "bus", 1),
		"an epoch of letters":      strings.Replace(good, " 9 ", " nine ", 1),
		"a primary that is no id":  strings.Replace(good, " - ", " me ", 1),
		"a slot out of bounds":     good + " 16384",
		"an open slot cut short":   good + " [3->-" + idB,
		"an open slot to nobody":   good + " [3->-]",
		"an open slot of letters":  good + " [x->-" + idB + "]",
		"brackets around nothing":  good + " []",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if table, err := ParseNodeTable(text); err == nil {
				t.Errorf("accepted as %+v", table)
			}
		})
	}
}

func FuzzParseNodeTable(f *testing.F) {
	for _, file := range []string{"nodes-8.1.txt", "nodes-9.1.txt", "nodes-conf-8.1.txt", "nodes-conf-9.1.txt"} {
		f.Add(sample(f, file))
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ParseNodeTable(text)
		if err != nil {
			return
		}
		for _, n := range table.Nodes {
			if !isNodeID(string(n.ID)) || !n.Slots.Equal(NewSlots(n.Slots...)) {
				t.Errorf("accepted %+v", n)
			}
		}
	})
}
