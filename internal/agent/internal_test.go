package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/agent/guard"
	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

func replicaView(keys int64, link *valkey.PrimaryLink) *valkey.View {
	return &valkey.View{Info: valkey.Info{Role: valkey.RoleReplica, Keys: keys, Replication: valkey.ReplicationInfo{Primary: link}}}
}

func TestEmptinessOfAStartedServer(t *testing.T) {
	t.Parallel()
	loading := &valkey.View{Info: valkey.Info{Loading: &valkey.LoadProgress{}}}
	primary := &valkey.View{Info: valkey.Info{Role: valkey.RolePrimary}}
	tests := map[string]struct {
		files protocol.Answer
		state protocol.ServerState
		view  *valkey.View
		want  protocol.Answer
	}{
		"empty files are no word once a server runs on them": {protocol.Yes, protocol.ServerStarting, nil, ""},
		"full files neither":                                   {protocol.No, protocol.ServerStarting, nil, ""},
		"loading what files held":                              {protocol.No, protocol.ServerLoading, loading, protocol.No},
		"loading what a primary sent, or nothing":              {protocol.Yes, protocol.ServerLoading, loading, ""},
		"a primary without keys":                               {protocol.Yes, protocol.ServerRunning, primary, protocol.Yes},
		"a primary without keys on files that held some":       {protocol.No, protocol.ServerRunning, primary, protocol.Yes},
		"a silent primary without keys":                        {protocol.Yes, protocol.ServerSilent, primary, ""},
		"a stopping primary without keys":                      {protocol.Yes, protocol.ServerStopping, primary, ""},
		"a replica without keys whose primary may send some":   {protocol.Yes, protocol.ServerRunning, replicaView(0, &valkey.PrimaryLink{Up: true}), ""},
		"a replica without keys that copies":                   {protocol.Yes, protocol.ServerRunning, replicaView(0, &valkey.PrimaryLink{SyncInProgress: true}), ""},
		"a replica without keys whose primary is out of reach": {protocol.Yes, protocol.ServerRunning, replicaView(0, &valkey.PrimaryLink{}), protocol.Yes},
		"a replica with keys":                                  {protocol.Yes, protocol.ServerRunning, replicaView(1, &valkey.PrimaryLink{}), protocol.No},
		"a silent replica with keys":                           {protocol.Yes, protocol.ServerSilent, replicaView(1, &valkey.PrimaryLink{}), protocol.No},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := emptiness(test.files, test.state, test.view); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// following adds the node table of a replica, with flags of its primary.
func following(view *valkey.View, primary valkey.NodeFlags) *valkey.View {
	view.TableKnown = true
	view.Table.Nodes = []valkey.NodeEntry{
		{ID: "me", PrimaryID: "it", Flags: valkey.NodeFlags{Myself: true, Replica: true}}, {ID: "it", Flags: primary},
	}
	return view
}

func TestMayStand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		view   *valkey.View
		waited time.Duration
		want   bool
	}{
		"its primary is out of reach":           {replicaView(1, &valkey.PrimaryLink{}), time.Second, false},
		"it copies its primary's data":          {replicaView(1, &valkey.PrimaryLink{SyncInProgress: true}), time.Second, false},
		"it has the data and sees its primary":  {following(replicaView(1, &valkey.PrimaryLink{Up: true}), valkey.NodeFlags{}), time.Second, true},
		"its primary is still marked failed":    {following(replicaView(1, &valkey.PrimaryLink{Up: true}), valkey.NodeFlags{Failed: true}), time.Second, false},
		"its primary is suspected":              {following(replicaView(1, &valkey.PrimaryLink{Up: true}), valkey.NodeFlags{Suspected: true}), time.Second, false},
		"it does not tell its primary":          {replicaView(1, &valkey.PrimaryLink{Up: true}), time.Second, false},
		"it has waited long enough":             {replicaView(1, &valkey.PrimaryLink{}), noFailoverTime, true},
		"it was promoted by hand in the end":    {&valkey.View{Info: valkey.Info{Role: valkey.RolePrimary}}, noFailoverTime, true},
		"it was promoted by hand in the middle": {&valkey.View{Info: valkey.Info{Role: valkey.RolePrimary}}, time.Second, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mayStand(*test.view, test.waited); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestWaitsInVain(t *testing.T) {
	t.Parallel()
	now := time.Unix(1800000000, 0)
	tests := map[string]struct {
		seen probe.Seen
		want string
	}{
		"for a moment":            {probe.Seen{Phase: probe.Up, Replaced: true, UpAt: now.Add(-closedTooLong + 1)}, ""},
		"for minutes":             {probe.Seen{Phase: probe.Up, Replaced: true, UpAt: now.Add(-150 * time.Second)}, "; it has not learned of its successor for 2m0s and admits nobody until it does: bring node 1 back"},
		"it has learned of it":    {probe.Seen{Phase: probe.Up, UpAt: now.Add(-time.Hour)}, ""},
		"it is being stopped":     {probe.Seen{Phase: probe.Stopping, Replaced: true, UpAt: now.Add(-time.Hour)}, ""},
		"it was not even started": {probe.Seen{Phase: probe.Held, Replaced: true}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := waitsInVain(guard.Verdict{Remedy: "bring node 1 back"}, test.seen, now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOnlyOperator(t *testing.T) {
	t.Parallel()
	text := "user default on nopass ~* +@all\nuser _operator on >secret +ping\nuser _operators on +@all\nuser _replication on >other +psync\n"
	want := "user default reset off\nuser _operator on >secret +ping\n"
	if diff := cmp.Diff(want, onlyOperator(text)); diff != "" {
		t.Errorf("users behind closed doors (-want +got):\n%s", diff)
	}
}

func TestAppendOnly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want bool
	}{
		"not mentioned":      {"save \"\"\n", false},
		"on":                 {"appendonly yes\n", true},
		"off":                {"appendonly no\n", false},
		"in other spellings": {"  AppendOnly\t\"YES\"  \n", true},
		"the last one wins":  {"appendonly yes\nappendonly no\n", false},
		"a comment is none":  {"# appendonly yes\n", false},
		"another setting":    {"appendonlydir yes\n", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{Settings: filepath.Join(t.TempDir(), "valkey.conf")}
			if err := os.WriteFile(config.Settings, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := config.appendOnly(); err != nil || got != test.want {
				t.Errorf("got %t (%v), want %t", got, err, test.want)
			}
		})
	}
}

func TestShardNodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		nodes []int
		known bool
	}{
		"the shard's own list":              {`{"clusterID":"c1","shards":[[0],[0,1,2]]}`, []int{0, 1, 2}, true},
		"another cluster's list is unknown": {`{"clusterID":"c2","shards":[[0],[0,1,2]]}`, nil, false},
		"a list without the shard":          {`{"clusterID":"c1","shards":[[0]]}`, nil, false},
		"a damaged list":                    {`{"clusterID":"c1","sha`, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{Identity: volume.Identity{ClusterID: "c1", Shard: 1}, Members: filepath.Join(t.TempDir(), "members.json")}
			if err := os.WriteFile(config.Members, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			nodes, known := config.shardNodes()
			if diff := cmp.Diff(test.nodes, nodes); diff != "" || known != test.known {
				t.Errorf("known %t, want %t; nodes (-want +got):\n%s", known, test.known, diff)
			}
		})
	}
}

func TestConfHasTheLastWord(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, userReplication), []byte("s3\"cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := Config{Data: "/data", Run: directory, Settings: "/etc/valkey/config/valkey.conf", Passwords: directory, PodIP: "10.0.0.7"}
	if err := config.writeConf(start{noFailover: true}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(config.confFile())
	if err != nil {
		t.Fatal(err)
	}
	want := `include "/etc/valkey/config/valkey.conf"
port 6379
bind * -::*
protected-mode no
daemonize no
supervised no
logfile ""
pidfile ""
dir "/data"
cluster-enabled yes
cluster-config-file nodes.conf
dbfilename dump.rdb
appenddirname appendonlydir
appendfilename appendonly.aof
aclfile "` + directory + `/users.acl"
primaryuser _replication
primaryauth "s3\"cret"
cluster-announce-ip 10.0.0.7
cluster-replica-no-failover yes
`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(text), "\n")); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLargeClustersJoinWithALongerTimeout(t *testing.T) {
	t.Parallel()
	for members, want := range map[int]time.Duration{
		0: 500 * time.Millisecond, 6: 500 * time.Millisecond, 10: 500 * time.Millisecond,
		60: 3 * time.Second, 100: 5 * time.Second, 3000: 5 * time.Second,
	} {
		if got := joiningTimeout(members); got != want {
			t.Errorf("%d members start with %s, want %s", members, got, want)
		}
	}
}

func TestMembersAreCounted(t *testing.T) {
	t.Parallel()
	config := Config{Identity: volume.Identity{ClusterID: "c"}, Members: filepath.Join(t.TempDir(), "members.json")}
	for text, want := range map[string]int{
		`{"clusterID":"c","shards":[[0,1],[0,1],[0]]}`: 5,
		`{"clusterID":"other","shards":[[0,1]]}`:       0,
		`{`:                                            0,
	} {
		if err := os.WriteFile(config.Members, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := config.memberCount(); got != want {
			t.Errorf("%s has %d members, want %d", text, got, want)
		}
	}
}
