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
	shards, primaries := map[string]string{}, map[string]string{}
	for _, line := range lines {
		words := append(strings.Fields(line), "") // for one that was cut before its primary
		if len(words) > 3 {
			shards[words[0]], primaries[words[0]] = shardIDOf(words[1]), words[3]
		}
	}
	for i, line := range lines {
		words := strings.Fields(line)
		if len(words) < 4 {
			continue
		}
		own, primary := shardIDOf(words[1]), shards[lastOf(primaries, words[0])]
		if own == "" || primary == "" || own == primary {
			continue
		}
		lines[i] = strings.Replace(line, shardIDField+own, shardIDField+primary, 1)
		changed++
	}
	return strings.Join(lines, ""), changed
}

// lastOf is whom a node follows in the end: a table may say that its primary is
// a replica by now. Nodes that follow each other in a circle have no such one,
// and a node stays with itself.
func lastOf(primaries map[string]string, node string) string {
	last := node
	for range primaries {
		primary := primaries[last]
		if _, known := primaries[primary]; !known {
			return last
		}
		last = primary
	}
	return node
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
