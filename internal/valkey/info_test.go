package valkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseInfoOfServers(t *testing.T) {
	t.Parallel()
	none := strings.Repeat("0", idLength)
	tests := map[string]struct {
		file string
		want Info
	}{
		"a primary with a replica": {
			file: "info-primary-8.1.txt",
			want: Info{
				Version: "8.1.1", Role: RolePrimary, Keys: 11,
				Replication: ReplicationInfo{
					ID: "7a5b9ca2d5a8c12d04c0a90e52ac7640eefd9e4a", ID2: none, Offset: 309,
					Replicas: []ReplicaLink{{Host: "127.77.81.4", Port: 6379, State: "online", Offset: 309, LagSeconds: 1}},
				},
			},
		},
		"its replica": {
			file: "info-replica-8.1.txt",
			want: Info{
				Version: "8.1.1", Role: RoleReplica, Keys: 1,
				Replication: ReplicationInfo{
					ID: "7a5b9ca2d5a8c12d04c0a90e52ac7640eefd9e4a", ID2: none, Offset: 309,
					Primary: &PrimaryLink{Host: "127.77.81.1", Port: 6379, Up: true, LastIOSeconds: 6},
				},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseInfo(sample(t, test.file))
			if err != nil {
				t.Fatal(err)
			}
			if got.RunID == "" || got.UptimeSeconds == 0 || got.Memory.Used == 0 || !got.Persistence.AOFEnabled || !got.Persistence.AOFLastWriteOK {
				t.Errorf("something is missing in %+v", got)
			}
			got.RunID, got.UptimeSeconds, got.Memory, got.Persistence = "", 0, MemoryInfo{}, PersistenceInfo{}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseInfoNarrow(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text   string
		want   Info
		failed bool
	}{
		"loading": {
			text: "role:master\r\nloading:1\r\nloading_total_bytes:900\r\nloading_loaded_bytes:90\r\nloading_eta_seconds:4\r\n",
			want: Info{Role: RolePrimary, Loading: &LoadProgress{LoadedBytes: 90, TotalBytes: 900, ETASeconds: 4}},
		},
		"a replica without its primary": {
			text: "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n" +
				"master_last_io_seconds_ago:-1\r\nmaster_sync_in_progress:1\r\nslave_repl_offset:7\r\nmaster_repl_offset:9\r\n",
			want: Info{Role: RoleReplica, Replication: ReplicationInfo{
				Offset:  7,
				Primary: &PrimaryLink{Host: "10.0.0.1", Port: 6379, SyncInProgress: true, LastIOSeconds: -1},
			}},
		},
		"keys in two databases": {
			text: "role:master\r\ndb0:keys=3,expires=0,avg_ttl=0\r\ndb12:keys=4,expires=1,avg_ttl=9\r\ndbx:keys=100\r\n",
			want: Info{Role: RolePrimary, Keys: 7},
		},
		"the memory of keys and values": {
			text: "role:master\r\nused_memory:900\r\nmaxmemory:1000\r\nused_memory_dataset:300\r\n",
			want: Info{Role: RolePrimary, Memory: MemoryInfo{Used: 900, Max: 1000, Dataset: 300}},
		},
		"less than none for keys and values": {
			text: "role:master\r\nused_memory:900\r\nused_memory_dataset:18446744073709517212\r\n",
			want: Info{Role: RolePrimary, Memory: MemoryInfo{Used: 900}},
		},
		"fewer replicas listed than counted": {
			text: "role:master\r\nconnected_slaves:1000000000000\r\n", want: Info{Role: RolePrimary},
		},
		"no role":                     {text: "redis_version:7.2.4\r\n", failed: true},
		"a role that nobody knows":    {text: "role:sentinel\r\n", failed: true},
		"an uptime of letters":        {text: "role:master\r\nuptime_in_seconds:long\r\n", failed: true},
		"keys without a number":       {text: "role:master\r\ndb0:expires=0\r\n", failed: true},
		"a replica without an offset": {text: "role:master\r\nconnected_slaves:1\r\nslave0:ip=a,port=1,lag=0\r\n", failed: true},
		"an answer that is no text":   {text: "\x00\x01", failed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseInfo(test.text)
			if (err != nil) != test.failed {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseClusterInfo(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"8.1", "9.1"} {
		got, err := ParseClusterInfo(sample(t, "cluster-info-"+version+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		want := ClusterInfo{
			SlotsAssigned: SlotCount, SlotsOK: 10923, SlotsFail: 5461,
			KnownNodes: 4, Size: 3, CurrentEpoch: 3, MyEpoch: 1,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for name, text := range map[string]string{
		"no state":          "cluster_size:3",
		"a size of letters": "cluster_state:ok\ncluster_size:three",
		"a negative epoch":  "cluster_state:ok\ncluster_my_epoch:-1",
	} {
		if _, err := ParseClusterInfo(text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestViewOfAnswers(t *testing.T) {
	t.Parallel()
	info := answer{text: sample(t, "info-primary-9.1.txt")}
	nodes := answer{text: sample(t, "nodes-9.1.txt")}
	cluster := answer{text: sample(t, "cluster-info-9.1.txt")}
	loading := answer{err: NewReplyError("LOADING Valkey is loading the dataset in memory")}
	broken := answer{err: errors.New("broken pipe")}
	tests := map[string]struct {
		info, nodes, cluster answer
		known, failed        bool
	}{
		"all is told":                            {info: info, nodes: nodes, cluster: cluster, known: true},
		"a loading server tells its INFO":        {info: info, nodes: loading, cluster: loading},
		"without INFO there is no view":          {info: loading, nodes: nodes, cluster: cluster, failed: true},
		"a table that never came is no view":     {info: info, nodes: broken, cluster: cluster, failed: true},
		"a table that is damaged is no view":     {info: info, nodes: info, cluster: cluster, failed: true},
		"a CLUSTER INFO that is INFO is no view": {info: info, nodes: nodes, cluster: info, failed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view, err := viewOf(test.info, test.nodes, test.cluster)
			if (err != nil) != test.failed {
				t.Fatalf("error %v", err)
			}
			_, idKnown := view.MyID()
			want := []bool{test.known, test.known, test.known}
			if diff := cmp.Diff(want, []bool{idKnown, view.TableKnown, view.ClusterKnown}); diff != "" {
				t.Error(diff)
			}
			checkStored(t, view)
		})
	}
}

func checkStored(t *testing.T, view View) {
	t.Helper()
	stored, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	var read View
	if err := json.Unmarshal(stored, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(view, read); diff != "" {
		t.Errorf("a stored view reads back differently: %s", diff)
	}
}

func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(error) bool{
		"loading": IsLoading, "no auth": IsNoAuth, "no permission": IsNoPerm, "busy": IsBusy, "misconf": IsMisconf,
	}
	for message, want := range map[string]string{
		"LOADING Valkey is loading the dataset in memory":                   "loading",
		"NOAUTH Authentication required.":                                   "no auth",
		"WRONGPASS invalid username-password pair or user is disabled.":     "no auth",
		"NOPERM User _operator has no permissions to run the 'get' command": "no permission",
		"BUSY Valkey is busy running a script.":                             "busy",
		"MISCONF Errors writing to the AOF file: No space left on device":   "misconf",
		"ERR Unknown node abc":                                              "",
	} {
		err := fmt.Errorf("asking: %w", NewReplyError(message))
		if !Answered(err) {
			t.Errorf("%q counts as no answer", message)
		}
		for kind, is := range kinds {
			if is(err) != (kind == want) {
				t.Errorf("%q is %s: %v", message, kind, is(err))
			}
		}
	}
}

func TestOnlyAServerAnswers(t *testing.T) {
	t.Parallel()
	if !Answered(nil) || Answered(errors.New("connection refused")) {
		t.Error("what is an answer is told wrongly")
	}
}

func TestReplyErrorsHaveACode(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]ReplyError{
		"ERR Unknown node abc": {Code: "ERR", Message: "Unknown node abc"},
		"Unknown node abc":     {Code: "ERR", Message: "Unknown node abc"},
		"NOAUTH please":        {Code: "NOAUTH", Message: "NOAUTH please"},
	} {
		if diff := cmp.Diff(want, *NewReplyError(message)); diff != "" {
			t.Errorf("%q: %s", message, diff)
		}
	}
}

func TestTargetsHideTheirPassword(t *testing.T) {
	t.Parallel()
	target := Target{Address: "10.0.0.1:6379", Username: "_operator", Password: "secret"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, target); strings.Contains(text, "secret") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func FuzzParseInfo(f *testing.F) {
	for _, file := range []string{"info-primary-8.1.txt", "info-replica-8.1.txt", "info-primary-9.1.txt", "info-replica-9.1.txt", "cluster-info-9.1.txt"} {
		f.Add(sample(f, file))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if info, err := ParseInfo(text); err == nil && info.Role == "" {
			t.Error("accepted without a role")
		}
		if info, err := ParseClusterInfo(text); err != nil && info != (ClusterInfo{}) {
			t.Error("an error and a value")
		}
	})
}
