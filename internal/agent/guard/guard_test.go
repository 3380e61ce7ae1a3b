package guard_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/protocol"
)

var (
	emptyOwner = guard.Member{Node: 0, ID: "me", Known: true, Role: protocol.RolePrimary, OwnsSlots: true, Epoch: 5, Empty: protocol.Yes}
	fullOwner  = with(emptyOwner, func(m *guard.Member) { m.Empty = protocol.No })
)

func with(member guard.Member, change func(*guard.Member)) guard.Member {
	change(&member)
	return member
}

func restored(m *guard.Member) { m.Restored = true }
func released(m *guard.Member) { m.Released = true }

func patient(shard guard.Shard) guard.Shard {
	shard.Patient = true
	return shard
}

func shard(nodes int, answers ...protocol.Facts) guard.Shard {
	known := guard.Shard{NodesKnown: true, Answers: answers}
	for node := range nodes {
		known.Nodes = append(known.Nodes, node)
	}
	return known
}

func elsewhere(shard guard.Shard, ids ...string) guard.Shard {
	shard.Elsewhere = ids
	return shard
}

func replica(node int, empty protocol.Answer) protocol.Facts {
	return protocol.Facts{Node: node, Role: protocol.RoleReplica, OwnsSlots: protocol.No, ConfigEpoch: 5, Empty: empty}
}

// follower is a replica of a primary with an id, at that primary's epoch.
func follower(node int, id string, epoch uint64) protocol.Facts {
	return protocol.Facts{Node: node, Role: protocol.RoleReplica, OwnsSlots: protocol.No, PrimaryID: id, ConfigEpoch: epoch, Empty: protocol.No}
}

func primary(node int, epoch uint64) protocol.Facts {
	return protocol.Facts{Node: node, Role: protocol.RolePrimary, OwnsSlots: protocol.Yes, ConfigEpoch: epoch, Empty: protocol.No}
}

func blank(node int) protocol.Facts { return protocol.Facts{Node: node, Empty: protocol.Yes} }

func TestDecide(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		member guard.Member
		shard  guard.Shard
		want   protocol.Decision
	}{
		"a blank member starts":                          {member: guard.Member{Empty: protocol.Yes}, want: protocol.DecisionStart},
		"a member with data and no node table starts":    {member: guard.Member{Empty: protocol.No}, want: protocol.DecisionStart},
		"an empty replica starts":                        {member: with(emptyOwner, func(m *guard.Member) { m.Role, m.OwnsSlots = protocol.RoleReplica, false }), shard: shard(2), want: protocol.DecisionStart},
		"an empty primary without slots starts":          {member: with(emptyOwner, func(m *guard.Member) { m.OwnsSlots = false }), shard: shard(2), want: protocol.DecisionStart},
		"an owner with data starts":                      {member: fullOwner, shard: shard(2), want: protocol.DecisionStart},
		"an owner with data starts, whatever others say": {member: fullOwner, shard: shard(2, replica(1, protocol.No)), want: protocol.DecisionStart},
		"an owner with data starts without a list":       {member: fullOwner, want: protocol.DecisionStart},
		"an owner with unknown files starts":             {member: with(emptyOwner, func(m *guard.Member) { m.Empty = "" }), shard: shard(2, replica(1, protocol.No)), want: protocol.DecisionStart},
		"an owner with data that was replaced knows it":  {member: fullOwner, shard: shard(2, primary(1, 6)), want: protocol.DecisionStartReplaced},

		"an owner with data whose silent successor has a replica knows it":  {member: fullOwner, shard: shard(3, follower(2, "it", 6)), want: protocol.DecisionStartReplaced},
		"an owner with data whom a replica still follows starts":            {member: fullOwner, shard: shard(3, follower(2, "me", 6)), want: protocol.DecisionStart},
		"an owner with data starts when a replica follows an older primary": {member: fullOwner, shard: shard(3, follower(2, "it", 5)), want: protocol.DecisionStart},
		"an owner with data starts when a replica follows another shard":    {member: fullOwner, shard: elsewhere(shard(3, follower(2, "it", 6)), "it"), want: protocol.DecisionStart},
		"held though a replica follows another one":                         {member: emptyOwner, shard: shard(3, follower(2, "it", 6)), want: protocol.DecisionHeldEmpty},
		"held while one replica has data, and another follows another one":  {member: emptyOwner, shard: shard(3, follower(1, "me", 5), follower(2, "it", 6)), want: protocol.DecisionHeldEmpty},

		"an owner with data asks again while a node is silent":         {member: fullOwner, shard: patient(shard(3, replica(1, protocol.No))), want: protocol.DecisionUndecided},
		"an owner with data starts once all nodes have answered":       {member: fullOwner, shard: patient(shard(3, replica(1, protocol.No), replica(2, ""))), want: protocol.DecisionStart},
		"an owner with data waits for nobody without a list":           {member: fullOwner, shard: guard.Shard{Patient: true}, want: protocol.DecisionStart},
		"a replica waits for nobody":                                   {member: with(fullOwner, func(m *guard.Member) { m.Role, m.OwnsSlots = protocol.RoleReplica, false }), shard: patient(shard(2)), want: protocol.DecisionStart},
		"a successor that answers is not waited for":                   {member: fullOwner, shard: patient(shard(3, primary(1, 6))), want: protocol.DecisionStartReplaced},
		"an owner by a copy of the table waits without a limit":        {member: with(fullOwner, restored), shard: shard(2), want: protocol.DecisionTableDamaged},
		"an owner by a copy of the table waits for a list":             {member: with(fullOwner, restored), want: protocol.DecisionTableDamaged},
		"an owner by a copy of the table starts when nobody denies it": {member: with(fullOwner, restored), shard: shard(2, replica(1, protocol.No)), want: protocol.DecisionStart},
		"an owner by a copy of the table, alone in its shard, starts":  {member: with(fullOwner, restored), shard: shard(1), want: protocol.DecisionStart},
		"an owner by a copy of the table that was replaced knows it":   {member: with(fullOwner, restored), shard: shard(2, primary(1, 6)), want: protocol.DecisionStartReplaced},
		"a replica by a copy of the table starts":                      {member: with(fullOwner, func(m *guard.Member) { restored(m); m.Role, m.OwnsSlots = protocol.RoleReplica, false }), shard: shard(2), want: protocol.DecisionStart},

		"held when the version is too old, whatever else":   {member: with(fullOwner, func(m *guard.Member) { m.Damage = guard.Damage{TooNew: "new", Table: "cut", Data: "bad"} }), shard: shard(2, primary(1, 6)), want: protocol.DecisionVersionTooOld},
		"held when the table is damaged, whatever is known": {member: guard.Member{Damage: guard.Damage{Table: "cut", Data: "bad"}}, shard: shard(2, primary(1, 6)), want: protocol.DecisionTableDamaged},
		"held when the data is damaged, replaced or not":    {member: with(fullOwner, func(m *guard.Member) { m.Damage.Data = "bad" }), shard: shard(2, primary(1, 6)), want: protocol.DecisionDataDamaged},
		"a replica is held when its data is damaged":        {member: guard.Member{Known: true, Role: protocol.RoleReplica, Damage: guard.Damage{Data: "bad"}}, want: protocol.DecisionDataDamaged},

		"an empty owner that was released starts":                    {member: with(emptyOwner, released), shard: shard(2, replica(1, protocol.No)), want: protocol.DecisionStart},
		"an empty owner that was released still knows its successor": {member: with(emptyOwner, released), shard: shard(2, primary(1, 6)), want: protocol.DecisionStartReplaced},
		"an empty owner alone in its shard starts":                   {member: emptyOwner, shard: shard(1), want: protocol.DecisionStart},
		"its own answer is not another's":                            {member: emptyOwner, shard: shard(1, protocol.Facts{Node: 0}), want: protocol.DecisionStart},
		"its own answer does not replace it":                         {member: emptyOwner, shard: shard(2, primary(0, 6)), want: protocol.DecisionHeldEmpty},
		"held without a list of members":                             {member: emptyOwner, shard: guard.Shard{Answers: []protocol.Facts{blank(1)}}, want: protocol.DecisionHeldEmpty},
		"held while nobody answers":                                  {member: emptyOwner, shard: shard(2), want: protocol.DecisionHeldEmpty},
		"held while a replica has data":                              {member: emptyOwner, shard: shard(2, replica(1, protocol.No)), want: protocol.DecisionHeldEmpty},
		"held while a replica does not know":                         {member: emptyOwner, shard: shard(2, replica(1, "")), want: protocol.DecisionHeldEmpty},
		"held while one of two is silent":                            {member: emptyOwner, shard: shard(3, replica(1, protocol.Yes)), want: protocol.DecisionHeldEmpty},
		"held while one of two has data":                             {member: emptyOwner, shard: shard(3, replica(1, protocol.Yes), replica(2, protocol.No)), want: protocol.DecisionHeldEmpty},
		"held while an old pod of a blank node has data":             {member: emptyOwner, shard: shard(2, blank(1), replica(1, protocol.No)), want: protocol.DecisionHeldEmpty},
		"starts when all others are empty":                           {member: emptyOwner, shard: shard(3, replica(1, protocol.Yes), replica(2, protocol.Yes)), want: protocol.DecisionStart},
		"starts when all others are blank":                           {member: emptyOwner, shard: shard(3, blank(1), blank(2)), want: protocol.DecisionStart},
		"somebody not on the list may speak too":                     {member: emptyOwner, shard: shard(2, blank(1), blank(7)), want: protocol.DecisionStart},

		"replaced by a primary at a higher epoch":       {member: emptyOwner, shard: shard(2, primary(1, 6)), want: protocol.DecisionStartReplaced},
		"replaced, though another one is silent":        {member: emptyOwner, shard: shard(3, primary(2, 6)), want: protocol.DecisionStartReplaced},
		"replaced, even without a list of members":      {member: emptyOwner, shard: guard.Shard{Answers: []protocol.Facts{primary(1, 6)}}, want: protocol.DecisionStartReplaced},
		"not replaced by a primary at the same epoch":   {member: emptyOwner, shard: shard(2, primary(1, 5)), want: protocol.DecisionHeldEmpty},
		"not replaced by a primary at a lower epoch":    {member: emptyOwner, shard: shard(2, primary(1, 4)), want: protocol.DecisionHeldEmpty},
		"not replaced by a replica of a higher epoch":   {member: emptyOwner, shard: shard(2, protocol.Facts{Node: 1, Role: protocol.RoleReplica, ConfigEpoch: 9, OwnsSlots: protocol.No, Empty: protocol.No}), want: protocol.DecisionHeldEmpty},
		"not replaced by a primary without slots":       {member: emptyOwner, shard: shard(2, protocol.Facts{Node: 1, Role: protocol.RolePrimary, ConfigEpoch: 9, OwnsSlots: protocol.No, Empty: protocol.No}), want: protocol.DecisionHeldEmpty},
		"not replaced by one whose slots are not known": {member: emptyOwner, shard: shard(2, protocol.Facts{Node: 1, Role: protocol.RolePrimary, ConfigEpoch: 9, Empty: protocol.No}), want: protocol.DecisionHeldEmpty},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := guard.Decide(test.member, test.shard)
			if got.Decision != test.want {
				t.Errorf("got %s (%s), want %s", got.Decision, got.Message, test.want)
			}
			if got.Message == "" {
				t.Error("the decision is not explained")
			}
		})
	}
}

// Members that need nothing of the shard get the same verdict whatever is known of it.
func TestNeedsShard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		member := guard.Member{
			Known:     rapid.Bool().Draw(t, "known"),
			Role:      rapid.SampledFrom([]protocol.Role{"", protocol.RoleReplica, protocol.RolePrimary}).Draw(t, "role"),
			OwnsSlots: rapid.Bool().Draw(t, "slots"),
			Epoch:     5,
			Empty:     rapid.SampledFrom([]protocol.Answer{"", protocol.Yes, protocol.No}).Draw(t, "empty"),
		}
		without, with := guard.Decide(member, guard.Shard{}), guard.Decide(member, shard(2, primary(1, 6)))
		if same := without == with; same == guard.NeedsShard(member) {
			t.Errorf("%+v: %v without the shard's word, %v with it", member, without, with)
		}
	})
}

// What replaced the member is named, with what to do if that is lost for good.
func TestReplacedNamesTheRemedy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answers []protocol.Facts
		want    string
	}{
		"its successor answers":                    {[]protocol.Facts{primary(1, 6)}, "bring node 1 back"},
		"only a replica of its successor answers":  {[]protocol.Facts{follower(2, "it", 6)}, "bring the node with id it back"},
		"the successor's own word comes before it": {[]protocol.Facts{follower(2, "it", 6), primary(1, 6)}, "bring node 1 back"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := guard.Decide(fullOwner, shard(3, test.answers...))
			if !strings.HasPrefix(got.Remedy, test.want) {
				t.Errorf("got %q, want it to begin with %q", got.Remedy, test.want)
			}
		})
	}
}
