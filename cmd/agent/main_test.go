package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/agent"
	"valkey.io/valkey-operator/internal/agent/volume"
)

const complete = "--cluster-id c1 --shard 2 --node 1 --peers a,b --data /data --config /c/valkey.conf " +
	"--members /c/members.json --acl /a/users.acl --passwords /p --run /run/valkey"

func TestParse(t *testing.T) {
	want := agent.Config{
		Identity: volume.Identity{ClusterID: "c1", Shard: 2, Node: 1}, Peers: []string{"a", "b"},
		Data: "/data", Run: "/run/valkey", Settings: "/c/valkey.conf", Members: "/c/members.json",
		ACL: "/a/users.acl", Passwords: "/p", Ephemeral: true, MostBallast: volume.MostBallast, PodIP: "10.0.0.7", Program: "valkey-server", Version: version,
	}
	t.Setenv("POD_IP", "10.0.0.7")
	got, err := parse(strings.Fields(complete + " --ephemeral"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ podIP, words, says string }{
		"a missing flag":        {"10.0.0.7", strings.Replace(complete, "--data /data ", "", 1), "missing: --data"},
		"a missing address":     {"", complete, "POD_IP"},
		"a word that is no use": {"10.0.0.7", complete + " more", "not understood: more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_IP", test.podIP)
			if _, err := parse(strings.Fields(test.words)); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q in it", err, test.says)
			}
		})
	}
}

func TestUsageErrorsAreNoFailures(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"", "install", "chown /data 999", "chown /data x 999", "start"} {
		if code, err := run(strings.Fields(words)); code != 2 || err == nil {
			t.Errorf("%q: exit code %d (%v), want 2", words, code, err)
		}
	}
}
