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

// Decide returns DecisionStart, DecisionStartReplaced or DecisionHeldEmpty.
//
// The one danger it averts: a primary that comes back without its data under
// its old identity makes its replicas copy the emptiness. Such a member waits,
// without a limit, until the shard has a newer primary or everybody has said
// that there is nothing to lose. Silence is not an answer.
//
// Emptiness that is unknown is none: then there are files, and the server
// judges them.
func Decide(member Member, shard Shard) Verdict {
	if !NeedsShard(member) {
		return start("it is no primary of any slots")
	}
	if successor, found := successor(member, shard); found {
		return replaced(member, successor)
	}
	if member.Empty != protocol.Yes {
		return start("it is the primary with data, and nobody knows a newer one")
	}
	return decideEmpty(member, shard)
}

func decideEmpty(member Member, shard Shard) Verdict {
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
