package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
)

var member = volume.Identity{ClusterID: "c1", Shard: 1, Node: 0}

// lay writes files, and their directories, below a new directory.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	data := t.TempDir()
	for name, text := range files {
		path := filepath.Join(data, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return data
}

// list are the files below the directory, with their contents.
func list(t *testing.T, data string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(data, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(data, path)
		files[name] = string(text)
		return err
	}))
	return files
}

const (
	// emptyDump is a header, one auxiliary field and the end.
	emptyDump = "REDIS0011\xfa\x01a\x01b\xff12345678"
	// fullDump selects database 0 and begins with the string key k.
	fullDump = "REDIS0011\xfe\x00\x00\x01k\x01v\xff12345678"
	manifest = "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
	base     = volume.LogDirectory + "/appendonly.aof.1.base.rdb"
	incr     = volume.LogDirectory + "/appendonly.aof.1.incr.aof"
	index    = volume.LogDirectory + "/appendonly.aof.manifest"
)

func TestEmptiness(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		log   bool
		want  protocol.Answer
	}{
		"no files, without a log":                        {want: protocol.Yes},
		"no files, with a log":                           {log: true, want: protocol.Yes},
		"a dump without keys":                            {files: map[string]string{"dump.rdb": emptyDump}, want: protocol.Yes},
		"a dump with keys":                               {files: map[string]string{"dump.rdb": fullDump}, want: protocol.No},
		"a dump that is cut short is unknown":            {files: map[string]string{"dump.rdb": emptyDump[:12]}, want: ""},
		"a dump without a byte is unknown":               {files: map[string]string{"dump.rdb": ""}, want: ""},
		"a dump of something else is unknown":            {files: map[string]string{"dump.rdb": "something else"}, want: ""},
		"a dump is not read by a server with a log":      {files: map[string]string{"dump.rdb": fullDump}, log: true, want: protocol.Yes},
		"a log is not read by a server without one":      {files: map[string]string{index: manifest, base: fullDump, incr: ""}, want: protocol.Yes},
		"a log without keys":                             {files: map[string]string{index: manifest, base: emptyDump, incr: ""}, log: true, want: protocol.Yes},
		"a log with keys in its base":                    {files: map[string]string{index: manifest, base: fullDump, incr: ""}, log: true, want: protocol.No},
		"a log with keys in its increment":               {files: map[string]string{index: manifest, base: emptyDump, incr: "x"}, log: true, want: protocol.No},
		"a log whose base is cut short is unknown":       {files: map[string]string{index: manifest, base: emptyDump[:12], incr: ""}, log: true, want: ""},
		"a log whose base is missing is unknown":         {files: map[string]string{index: manifest, incr: ""}, log: true, want: ""},
		"a log whose manifest is damaged is unknown":     {files: map[string]string{index: "nonsense", base: emptyDump}, log: true, want: ""},
		"a log whose manifest is blank is unknown":       {files: map[string]string{index: "", base: emptyDump}, log: true, want: ""},
		"a log without a manifest is none to a server":   {files: map[string]string{base: fullDump, incr: "x"}, log: true, want: protocol.Yes},
		"a base in the log's own format with a command":  {files: map[string]string{index: "file b.aof seq 1 type b\n", "appendonlydir/b.aof": "x"}, log: true, want: protocol.No},
		"a base in the log's own format without command": {files: map[string]string{index: "file b.aof seq 1 type b\n", "appendonlydir/b.aof": ""}, log: true, want: protocol.Yes},
		"history that a rewrite made superfluous":        {files: map[string]string{index: "file h.aof seq 1 type h\n" + manifest, base: emptyDump, incr: ""}, log: true, want: protocol.Yes},
		"a one-file log of old versions with a command":  {files: map[string]string{"appendonly.aof": "x"}, log: true, want: protocol.No},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := volume.Emptiness(lay(t, test.files), test.log); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAFileThatCannotBeReadIsUnknown(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	must(t, os.Mkdir(filepath.Join(data, volume.DumpFile), 0o755))
	if got := volume.Emptiness(data, false); got != "" {
		t.Errorf("got %q, want unknown", got)
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	const marker = ".valkey-operator/identity.json"
	tests := map[string]struct {
		files   map[string]string
		foreign bool
		fails   bool
	}{
		"a blank volume is marked":                {},
		"what file systems keep is no data":       {files: map[string]string{"lost+found/x": "", ".snapshot/hourly/x": ""}},
		"the member's own volume":                 {files: map[string]string{marker: `{"version":1,"clusterID":"c1","shard":1,"node":0}`, "dump.rdb": "x"}},
		"a marker of a later version with more":   {files: map[string]string{marker: `{"version":7,"clusterID":"c1","shard":1,"node":0,"more":1}`}},
		"another cluster's volume":                {files: map[string]string{marker: `{"version":1,"clusterID":"c2","shard":1,"node":0}`}, foreign: true},
		"another shard's volume":                  {files: map[string]string{marker: `{"version":1,"clusterID":"c1","shard":2,"node":0}`}, foreign: true},
		"another node's volume":                   {files: map[string]string{marker: `{"version":1,"clusterID":"c1","shard":1,"node":1}`}, foreign: true},
		"a node table without a marker":           {files: map[string]string{"nodes.conf": "x"}, foreign: true},
		"any data without a marker":               {files: map[string]string{"postgres/base": "x"}, foreign: true},
		"a damaged marker is nobody's word":       {files: map[string]string{marker: "{"}, fails: true},
		"a marker that is a directory cannot say": {files: map[string]string{marker + "/x": ""}, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := lay(t, test.files)
			lock, err := volume.Lock(data)
			must(t, err)
			defer func() { _ = lock.Close() }()
			before := list(t, data)
			err = volume.Claim(data, member)
			if isForeign(err) != test.foreign || (err != nil) != (test.foreign || test.fails) {
				t.Errorf("got %v, want foreign: %t, failed: %t", err, test.foreign, test.fails)
			}
			if diff := cmp.Diff(before, list(t, data)); err != nil && diff != "" {
				t.Errorf("a refused volume was touched (-before +after):\n%s", diff)
			}
			if err == nil {
				belongsToMember(t, data)
			}
		})
	}
}

func isForeign(err error) bool {
	var foreign *volume.ForeignError
	return errors.As(err, &foreign)
}

func belongsToMember(t *testing.T, data string) {
	t.Helper()
	must(t, volume.Claim(data, member))
	if err := volume.Claim(data, volume.Identity{ClusterID: "c1", Shard: 1, Node: 9}); !isForeign(err) {
		t.Errorf("another member got %v, want a foreign volume", err)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first, err := volume.Lock(data)
	must(t, err)
	if _, err := volume.Lock(data); !errors.Is(err, volume.ErrLocked) {
		t.Errorf("the second one got %v, want %v", err, volume.ErrLocked)
	}
	must(t, first.Close())
	second, err := volume.Lock(data)
	must(t, err)
	must(t, second.Close())
	if _, err := volume.Lock(filepath.Join(data, "missing", "\x00")); err == nil || errors.Is(err, volume.ErrLocked) {
		t.Errorf("an impossible directory got %v, want another error", err)
	}
}

func TestCleanRemovesLeftoversAlone(t *testing.T) {
	t.Parallel()
	data := lay(t, map[string]string{
		"temp-12.rdb": "", "temp-rewriteaof-12.aof": "", "temp-rewriteaof-bg-3.aof": "", "appendonlydir/temp-rewriteaof-4.aof": "",
		"appendonlydir/temp-appendonly.aof.manifest": "", "nodes.conf.tmp-7-1800000000000": "", "appendonlydir/appendonly.aof.manifest": "",
		"dump.rdb": "", "template.rdb": "", "appendonlydir/appendonly.aof.1.base.rdb": "", "nodes.conf": "", "temp.rdb": "", "other/temp-1.rdb": "",
	})
	removed, err := volume.Clean(data)
	must(t, err)
	if len(removed) != 6 {
		t.Errorf("removed %v, want 6 files", removed)
	}
	want := map[string]string{
		"appendonlydir/appendonly.aof.manifest": "",
		"dump.rdb":                              "", "template.rdb": "", "appendonlydir/appendonly.aof.1.base.rdb": "", "nodes.conf": "", "temp.rdb": "", "other/temp-1.rdb": "",
	}
	if diff := cmp.Diff(want, list(t, data)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	must(t, volume.RemoveDump(data))
	must(t, volume.RemoveDump(data))
	if _, there := list(t, data)["dump.rdb"]; there {
		t.Error("the dump is still there")
	}
}

func TestSelf(t *testing.T) {
	t.Parallel()
	const id = "07c37dfeb235213a872192d90877d0cd55635b91"
	tests := map[string]struct {
		files map[string]string
		known bool
		fails bool
	}{
		"no table":        {},
		"a damaged table": {files: map[string]string{"nodes.conf": "\n"}, fails: true},
		"a cut table":     {files: map[string]string{"nodes.conf": id + " 127.0.0.1:6379@16379 my"}, fails: true},
		"a table": {known: true, files: map[string]string{
			"nodes.conf": id + " 127.0.0.1:6379@16379 myself,master - 0 0 3 connected 0-5460\nvars currentEpoch 3 lastVoteEpoch 0\n",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, known, err := volume.Self(lay(t, test.files))
			if known != test.known || (err != nil) != test.fails {
				t.Fatalf("known %t (%v), want %t", known, err, test.known)
			}
			if known && (string(self.ID) != id || self.ConfigEpoch != 3 || self.Slots.Count() != 5461) {
				t.Errorf("got %+v", self)
			}
		})
	}
}

func TestLogEnd(t *testing.T) {
	t.Parallel()
	const index = "appendonlydir/appendonly.aof.manifest"
	tests := map[string]struct {
		files map[string]string
		file  string
		size  int64
	}{
		"no log":              {},
		"a damaged manifest":  {files: map[string]string{index: "nonsense"}},
		"a base alone":        {files: map[string]string{index: "file b.rdb seq 1 type b\n", "appendonlydir/b.rdb": "x"}},
		"a file that is gone": {files: map[string]string{index: "file i.aof seq 1 type i\n"}},
		"the last increment":  {files: map[string]string{index: "file i.aof seq 1 type i\nfile j.aof seq 2 type i\n", "appendonlydir/i.aof": "x", "appendonlydir/j.aof": "yz"}, file: "j.aof", size: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, size, known := volume.LogEnd(lay(t, test.files))
			if known != (test.file != "") || known && (file != test.file || size != test.size) {
				t.Errorf("got %q, %d, %t", file, size, known)
			}
		})
	}
}

func TestDisk(t *testing.T) {
	t.Parallel()
	now := time.Unix(1800000000, 0)
	disk, err := volume.Disk(t.TempDir(), now)
	must(t, err)
	if disk.TotalBytes <= 0 || disk.AvailableBytes < 0 || disk.AvailableBytes > disk.TotalBytes || !disk.SampledAt.Equal(now) {
		t.Errorf("got %+v", disk)
	}
	if _, err := volume.Disk("/missing", now); err == nil {
		t.Error("a missing directory has a disk")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
