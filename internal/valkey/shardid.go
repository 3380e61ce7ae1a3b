package valkey

import "strings"

// HealShardIDs gives each replica in the text of a nodes.conf the shard id of
// its primary, and says how many had another. All else stays as it is, byte for
// byte; a line it does not understand is left to the server.
//
// A server hears of a node's shard id only from that node itself. One that
// learned of a replica before it became one, and is stopped before the next ping,
// has written a table in which the two differ. Versions before 8.1.2 refuse such
// a table as corrupted, at every start (valkey-io/valkey#2171); later ones take
// the primary's, as this does.
func HealShardIDs(text string) (healed string, changed int) {
	lines := strings.SplitAfter(text, "\n")
	shards := map[string]string{}
	for _, line := range lines {
		if words := strings.Fields(line); len(words) > 2 {
			shards[words[0]] = shardIDOf(words[1])
		}
	}
	for i, line := range lines {
		words := strings.Fields(line)
		if len(words) < 4 {
			continue
		}
		own, primary := shardIDOf(words[1]), shards[words[3]]
		if own == "" || primary == "" || own == primary {
			continue
		}
		lines[i] = strings.Replace(line, shardIDField+own, shardIDField+primary, 1)
		changed++
	}
	return strings.Join(lines, ""), changed
}

const shardIDField = "shard-id="

// shardIDOf is the shard id among the auxiliary fields of an address; empty
// when there is none.
func shardIDOf(address string) string {
	for field := range strings.SplitSeq(address, ",") {
		if id, found := strings.CutPrefix(field, shardIDField); found {
			return id
		}
	}
	return ""
}
