// Package guard decides whether a member's server may start. The decision is a
// pure function of what the member's files say, of who the operator says
// belongs to the shard, and of what the other members' agents answered; so it
// comes out the same for everybody who looks at the same facts.
//
// It reads nothing, waits for nothing and knows no clock: a member that has to
// wait is asked about again.
package guard

import (
	"fmt"
	"slices"

	"valkey.io/valkey-operator/internal/agent/protocol"
)

// Member is what the files of the member say that wants to start.
type Member struct {
	// Node is its index in the shard.
	Node int
	// ID is its own in the Valkey cluster, empty for one that never ran.
	ID string
	// Known says that there is a node table, which Role, OwnsSlots and Epoch are from.
	Known     bool
	Role      protocol.Role
	OwnsSlots bool
	Epoch     uint64
	// Empty says whether the server would start without a key.
	Empty protocol.Answer
	// Damage is what is wrong with its files.
	Damage Damage
	// Restored says that its place is from a copy of the node table, a moment old.
	Restored bool
	// Released says that somebody allowed it to start without data.
	Released bool
}

// Damage is what a member's files say against any start: each is a clause, and
// empty when there is nothing.
type Damage struct {
	// TooNew is why this version of the server cannot read them, Table why the
	// node table cannot be used, Data what the server said when it could not load them.
	TooNew, Table, Data string
}

// Shard is what is known about the shard of the member.
type Shard struct {
	// Nodes are the indices of its nodes, the member's own among them, by the
	// operator's word; without NodesKnown they say nothing.
	Nodes      []int
	NodesKnown bool
	// Answers are the facts of its agents that answered. There may be several of
	// one node, while an old pod still ends, and the member's own.
	Answers []protocol.Facts
	// Elsewhere are the ids of the nodes of other shards whose agents answered.
	Elsewhere []string
	// Patient says that members that have not answered may still be waited for.
	Patient bool
}

// Verdict is a decision and the sentence that explains it. Remedy is what to
// do when the one thing that the decision waits for does not come.
type Verdict struct {
	Decision protocol.Decision
	Message  string
	Remedy   string
}

// NeedsShard tells whether the decision depends on the rest of the shard. Only
// the primary of some slots can do harm by starting.
func NeedsShard(member Member) bool {
	return member.Known && member.Role == protocol.RolePrimary && member.OwnsSlots
}

// Decide returns DecisionStart or DecisionStartReplaced, DecisionUndecided for a
// member that is to be asked about again soon, or why it is held.
//
// The first danger it averts: a primary that comes back without its data under
// its old identity makes its replicas copy the emptiness. Such a member waits,
// without a limit, until the shard has a newer primary or everybody has said
// that there is nothing to lose. Silence is not an answer.
//
// The second: a primary that was replaced while it was down comes back first
// after all have stopped, and takes writes that its successor undoes. So a primary
// with data waits for the others' word too, but for a short time only: it is,
// as far as anyone can tell, the one with the newest data.
//
// Emptiness that is unknown is none: then there are files, and the server
// judges them.
func Decide(member Member, shard Shard) Verdict {
	if verdict, unusable := damaged(member.Damage); unusable {
		return verdict
	}
	if !NeedsShard(member) {
		return start("it is no primary of any slots")
	}
	if successor, found := successor(member, shard); found {
		return replaced(member, successor)
	}
	if member.Empty == protocol.Yes {
		return decideEmpty(member, shard)
	}
	return decideFull(member, shard)
}

// damaged is the verdict on files that no server can be started on.
func damaged(damage Damage) (verdict Verdict, unusable bool) {
	switch {
	case damage.TooNew != "":
		return Verdict{Decision: protocol.DecisionVersionTooOld, Message: damage.TooNew}, true
	case damage.Table != "":
		return Verdict{Decision: protocol.DecisionTableDamaged, Message: damage.Table}, true
	case damage.Data != "":
		return Verdict{Decision: protocol.DecisionDataDamaged, Message: damage.Data}, true
	}
	return Verdict{}, false
}

// decideFull is about a primary with data of whose successor nobody knows.
func decideFull(member Member, shard Shard) Verdict {
	node, waits := firstSilent(member, shard)
	switch {
	case !shard.NodesKnown && member.Restored:
		return Verdict{
			Decision: protocol.DecisionTableDamaged,
			Message:  "the node table was damaged, its copy says that this member is the primary, and the list of members that could deny it cannot be read",
		}
	case waits && member.Restored:
		return Verdict{Decision: protocol.DecisionTableDamaged, Message: fmt.Sprintf(
			"the node table was damaged, and its copy says that this member is the primary, which node %d could deny but has not answered", node)}
	case waits && shard.Patient:
		return Verdict{Decision: protocol.DecisionUndecided, Message: fmt.Sprintf("node %d is asked whether the shard has a newer primary", node)}
	}
	return start("it is the primary with data, and nobody knows a newer one")
}

// firstSilent is a node of the shard that has not answered, and whether there is one.
func firstSilent(member Member, shard Shard) (node int, silent bool) {
	if !shard.NodesKnown {
		return 0, false
	}
	for _, node := range shard.Nodes {
		spoke := func(peer protocol.Facts) bool { return peer.Node == node }
		if node != member.Node && !slices.ContainsFunc(shard.Answers, spoke) {
			return node, true
		}
	}
	return 0, false
}

func decideEmpty(member Member, shard Shard) Verdict {
	if member.Released {
		return start("it was allowed to start without its data")
	}
	if !shard.NodesKnown {
		return held("the list of members cannot be read")
	}
	for _, node := range shard.Nodes {
		if node == member.Node {
			continue
		}
		if why := mayHoldKeys(node, shard.Answers); why != "" {
			return held(why)
		}
	}
	return start("nobody else in the shard holds a key")
}

func start(why string) Verdict { return Verdict{Decision: protocol.DecisionStart, Message: why} }

func held(why string) Verdict {
	return Verdict{Decision: protocol.DecisionHeldEmpty, Message: "this member owns slots but holds no key, and " + why}
}

// replaced is the verdict on a member whose place a successor took, or the
// primary that the successor follows.
func replaced(member Member, successor protocol.Facts) Verdict {
	verdict := Verdict{Decision: protocol.DecisionStartReplaced}
	if successor.Role == protocol.RolePrimary {
		verdict.Message = fmt.Sprintf("node %d is primary at epoch %d, after this member's %d",
			successor.Node, successor.ConfigEpoch, member.Epoch)
		verdict.Remedy = fmt.Sprintf("bring node %d back; if it is lost for good, delete this member's pod, "+
			"and it serves the older data that it has unless another replica knows newer", successor.Node)
		return verdict
	}
	verdict.Message = fmt.Sprintf("node %d follows primary %s at epoch %d, after this member's %d",
		successor.Node, successor.PrimaryID, successor.ConfigEpoch, member.Epoch)
	verdict.Remedy = fmt.Sprintf("bring the node with id %s back; if it is lost for good, have node %d take its place "+
		"(CLUSTER FAILOVER TAKEOVER there)", successor.PrimaryID, successor.Node)
	return verdict
}

// successor is the node that took the member's place, or one that follows it:
// voters give each primary an epoch of its own, higher than any before. The
// successor's own word counts first.
//
// A member without data takes that word alone. It has nothing to gain by a start
// before its successor is back; and should the replica have been attached to
// another shard, it would, alive behind closed doors, keep those that still follow
// it from taking its place.
func successor(member Member, shard Shard) (protocol.Facts, bool) {
	for _, peer := range shard.Answers {
		if isLater(member, peer) && isSuccessor(peer) {
			return peer, true
		}
	}
	if member.Empty == protocol.Yes {
		return protocol.Facts{}, false
	}
	for _, peer := range shard.Answers {
		if isLater(member, peer) && followsSuccessor(member, peer, shard.Elsewhere) {
			return peer, true
		}
	}
	return protocol.Facts{}, false
}

func isLater(member Member, peer protocol.Facts) bool {
	return peer.Node != member.Node && peer.ConfigEpoch > member.Epoch
}

func isSuccessor(peer protocol.Facts) bool {
	return peer.Role == protocol.RolePrimary && peer.OwnsSlots == protocol.Yes
}

// followsSuccessor is true for a replica of somebody else than the member who is
// not known to be of another shard; its epoch is that of whom it follows.
func followsSuccessor(member Member, peer protocol.Facts, elsewhere []string) bool {
	return peer.Role == protocol.RoleReplica && peer.PrimaryID != "" && peer.PrimaryID != member.ID &&
		!slices.Contains(elsewhere, peer.PrimaryID)
}

// mayHoldKeys says why the node may hold keys, and is empty when it does not.
func mayHoldKeys(node int, answers []protocol.Facts) string {
	answered := false
	for _, peer := range answers {
		if peer.Node != node {
			continue
		}
		answered = true
		switch peer.Empty {
		case protocol.No:
			return fmt.Sprintf("node %d holds keys", node)
		case protocol.Yes:
		default:
			return fmt.Sprintf("node %d does not know yet whether it holds keys", node)
		}
	}
	if !answered {
		return fmt.Sprintf("node %d has not answered", node)
	}
	return ""
}
