package name_test

import (
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/name"
)

// Bounds of the schema: shards 1..500, replicas 0..5, names of 38 characters.
const (
	mostShards  = 500
	mostNodes   = 6
	longestName = 38
)

var clusterName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// anyCluster draws names that the schema accepts. The alphabet is small and
// the words are those of our own names, so that collisions are found if they
// can be.
func anyCluster() *rapid.Generator[string] {
	words := rapid.SampledFrom([]string{"a", "b", "0", "1", "-", "-0", "-1", "-0-0", "-data", "-nodes", "-acl", "valkey-", "internal-", "-users"})
	return rapid.Map(rapid.SliceOfN(words, 1, 6), join).Filter(func(text string) bool {
		return len(text) <= longestName && clusterName.MatchString(text) && !regexp.MustCompile(`-nodes$`).MatchString(text)
	})
}

func join(words []string) string {
	text := ""
	for _, word := range words {
		text += word
	}
	return text
}

// kinds are the names of the objects of one cluster by kind.
func kinds(cluster string, shard, node int) map[string][]string {
	member := name.Node(cluster, shard, node)
	return map[string][]string{
		"ValkeyNode":          {member},
		"Service":             {name.Service(cluster), name.HeadlessService(cluster)},
		"ConfigMap":           {name.Service(cluster)},
		"PodDisruptionBudget": {name.Service(cluster)},
		"Secret":              {name.ACLSecret(cluster), name.PasswordsSecret(cluster)},
		"workload":            {name.Workload(member)},
		"claim":               {name.Claim(member)},
	}
}

// Two clusters of one namespace never want an object of the same name.
func TestNamesOfTwoClustersNeverCollide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one := anyCluster().Draw(t, "one")
		other := anyCluster().Filter(func(other string) bool { return other != one }).Draw(t, "other")
		draw := func(label string, most int) int { return rapid.IntRange(0, most-1).Draw(t, label) }
		mine := kinds(one, draw("shard", mostShards), draw("node", mostNodes))
		theirs := kinds(other, draw("other shard", mostShards), draw("other node", mostNodes))
		for kind, names := range mine {
			for _, taken := range names {
				if slices.Contains(theirs[kind], taken) {
					t.Fatalf("clusters %s and %s both want the %s %s", one, other, kind, taken)
				}
			}
		}
	})
}

// Two members of one cluster have different names.
func TestNamesOfTwoMembersNeverCollide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cluster := anyCluster().Draw(t, "cluster")
		member := func(label string) (shard, node int) {
			return rapid.IntRange(0, mostShards-1).Draw(t, label+" shard"), rapid.IntRange(0, mostNodes-1).Draw(t, label+" node")
		}
		shard, node := member("one")
		otherShard, otherNode := member("other")
		same := shard == otherShard && node == otherNode
		if got := name.Node(cluster, shard, node) == name.Node(cluster, otherShard, otherNode); got != same {
			t.Fatalf("members %d-%d and %d-%d of %s: same name is %v", shard, node, otherShard, otherNode, cluster, got)
		}
	})
}

// The longest names are valid. A StatefulSet's pod carries the name of a
// revision in a label: the set's name and eleven characters, at most 63.
func TestLongestNamesAreValid(t *testing.T) {
	t.Parallel()
	cluster := "abcdefghijklmnopqrstuvwxyzabcdefghijkl"
	if len(cluster) != longestName {
		t.Fatalf("the name has %d characters, want %d", len(cluster), longestName)
	}
	member := name.Node(cluster, mostShards-1, mostNodes-1)
	labels := map[string]string{
		"client Service":   name.Service(cluster),
		"headless Service": name.HeadlessService(cluster),
		"pod":              name.Workload(member) + "-0",
		"revision label":   name.Workload(member) + "-0123456789",
		"claim":            name.Claim(member),
	}
	for what, text := range labels {
		if problems := validation.IsDNS1035Label(text); len(problems) > 0 {
			t.Errorf("%s %s: %v", what, text, problems)
		}
	}
}
