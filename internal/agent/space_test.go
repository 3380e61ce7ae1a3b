package agent

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/internal/agent/process"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

func TestMeasureTellsTheReserveAsUsed(t *testing.T) {
	t.Parallel()
	config := Config{Data: t.TempDir(), MostBallast: 1 << 20}
	with, err := config.measure(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if with.reserve != 1<<20 || with.ballast != 0 || with.disk.AvailableBytes != max(0, with.free-with.reserve) {
		t.Errorf("a reserve that is not in place: %+v", with)
	}
	config.Ephemeral = true
	without, err := config.measure(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if without.reserve != 0 || without.disk.AvailableBytes != without.free {
		t.Errorf("a member that keeps nothing: %+v", without)
	}
}

func TestTightAndAmple(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		available, reserve int64
		tight, ample       bool
	}{
		"nothing is left":                {0, 100, true, false},
		"a quarter of the reserve":       {25, 100, true, false},
		"more than that":                 {26, 100, false, false},
		"as much as the reserve":         {100, 100, false, true},
		"nothing is left of no reserve":  {0, 0, false, true},
		"much is left beside no reserve": {100, 0, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := space{disk: protocol.Disk{AvailableBytes: test.available}, reserve: test.reserve}
			if found.isTight() != test.tight || found.isAmple() != test.ample {
				t.Errorf("tight: %t, ample: %t", found.isTight(), found.isAmple())
			}
		})
	}
}

func TestTwoSamples(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		began := time.Unix(1800000000, 0)
		now := began
		var samples []protocol.Disk
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			samples = remember(samples, protocol.Disk{SampledAt: now})
			newest, before := twoSamples(samples)
			if !newest.SampledAt.Equal(now) {
				t.Fatalf("the newest is of %s, not of now", newest.SampledAt)
			}
			if (before != nil) != (now.Sub(began) >= protocol.SampleInterval) {
				t.Fatalf("%s after the first look, there being one before is %t", now.Sub(began), before != nil)
			}
			if before != nil && now.Sub(before.SampledAt) < protocol.SampleInterval {
				t.Fatalf("the one before is only %s older", now.Sub(before.SampledAt))
			}
			if len(samples) > 24 { // two of each second
				t.Fatalf("%d samples are kept", len(samples))
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "pause")) * time.Millisecond)
		}
	})
}

func TestGrowthIsOfTheLowPoints(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		used []int64 // one look a minute
		want int64
	}{
		"nothing is known":                            {nil, 0},
		"one minute":                                  {[]int64{5}, 0},
		"two minutes":                                 {[]int64{5, 7}, 2},
		"a saw-tooth that does not grow":              {[]int64{10, 20, 30, 10, 20, 30, 10, 20, 30, 10, 20, 30}, 0},
		"a saw-tooth that grows":                      {[]int64{10, 20, 30, 11, 21, 31, 12, 22, 32, 13, 23, 33}, 3},
		"what shrinks does not grow":                  {[]int64{30, 20, 10, 5}, 0},
		"what was more than an hour ago is forgotten": {append(make([]int64, 10), repeat(7, 60)...), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept lows
			for minute, used := range test.used {
				at := time.Unix(1800000000, 0).Add(time.Duration(minute) * time.Minute)
				kept.note(used, at)
				kept.note(used+100, at.Add(time.Second))
			}
			if got := kept.growth(); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// What a larger volume takes for itself is not what its server writes.
func TestGrowthBeginsAnewWithALargerVolume(t *testing.T) {
	t.Parallel()
	b := newBoard(Config{}, slog.New(slog.DiscardHandler))
	for minute, total := range []int64{100, 100, 200, 200} {
		at := time.Unix(1800000000, 0).Add(time.Duration(minute) * time.Minute)
		b.setDisk(protocol.Disk{TotalBytes: total, AvailableBytes: total*9/10 - int64(minute), SampledAt: at})
	}
	if got := b.lows.growth(); got != 1 {
		t.Errorf("the use grew by %d bytes in the minute since the volume did, want 1", got)
	}
}

func repeat(number int64, count int) []int64 {
	numbers := make([]int64, count)
	for i := range numbers {
		numbers[i] = number
	}
	return numbers
}

func TestFilesOf(t *testing.T) {
	t.Parallel()
	well := valkey.PersistenceInfo{
		AOFEnabled: true, AOFLastWriteOK: true, AOFLastRewriteOK: true, LastBGSaveOK: true, AOFCurrentBytes: 90, AOFBaseBytes: 40,
	}
	memory := valkey.MemoryInfo{Used: 70, Max: 100, Dataset: 30}
	files := protocol.Files{Log: true, LogBytes: 90, LogBaseBytes: 40, NextBytes: 40, UsedMemoryBytes: 70, MaxMemoryBytes: 100}
	tests := map[string]struct {
		change func(*valkey.Info)
		held   bool
		want   func(*protocol.Files)
	}{
		"all is well":                       {},
		"the log cannot be written":         {change: func(i *valkey.Info) { i.Persistence.AOFLastWriteOK = false }, want: func(f *protocol.Files) { f.WriteFailed = true }},
		"the log is held":                   {held: true, want: func(f *protocol.Files) { f.WriteFailed = true }},
		"the log could not be rewritten":    {change: func(i *valkey.Info) { i.Persistence.AOFLastRewriteOK = false }, want: func(f *protocol.Files) { f.RewriteFailed = true }},
		"a dump failed":                     {change: func(i *valkey.Info) { i.Persistence.LastBGSaveOK = false }, want: func(f *protocol.Files) { f.RewriteFailed = true }},
		"the data has outgrown its rewrite": {change: func(i *valkey.Info) { i.Memory.Dataset = 50 }, want: func(f *protocol.Files) { f.NextBytes = 50 }},
		"a rewrite counts as used already":  {change: func(i *valkey.Info) { i.Persistence.AOFRewriteInProgress = true }, want: func(f *protocol.Files) { f.Writing, f.NextBytes = true, 0 }},
		"a dump counts as used already":     {change: func(i *valkey.Info) { i.Persistence.BGSaveInProgress = true }, want: func(f *protocol.Files) { f.Writing, f.NextBytes = true, 0 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, want := valkey.Info{Persistence: well, Memory: memory}, files
			if test.change != nil {
				test.change(&info)
			}
			if test.want != nil {
				test.want(&want)
			}
			if diff := cmp.Diff(want, filesOf(info, test.held)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAServerWithoutALog(t *testing.T) {
	t.Parallel()
	got := filesOf(valkey.Info{Persistence: valkey.PersistenceInfo{LastBGSaveOK: true}}, false)
	if diff := cmp.Diff(protocol.Files{}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestWantsRewrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files  protocol.Files
		failed bool
		free   int64
		want   bool
	}{
		"nothing failed":                           {protocol.Files{Log: true, LogBytes: 900, NextBytes: 100}, false, 1000, false},
		"one failed, and there is room now":        {protocol.Files{Log: true, LogBytes: 150, NextBytes: 100}, true, 126, true},
		"one failed, and there is hardly room":     {protocol.Files{Log: true, LogBytes: 150, NextBytes: 100}, true, 125, false},
		"one failed, and another one runs":         {protocol.Files{Log: true, Writing: true}, true, 1000, false},
		"a full disk that a rewrite makes room on": {protocol.Files{Log: true, WriteFailed: true, LogBytes: 200, NextBytes: 100}, false, 126, true},
		"a full disk that it makes little room on": {protocol.Files{Log: true, WriteFailed: true, LogBytes: 199, NextBytes: 100}, false, 126, false},
		"there is no log":                          {protocol.Files{}, true, 1000, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := wantsRewrite(test.files, test.failed, test.free); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestLacksSpace(t *testing.T) {
	t.Parallel()
	const full = "# Failed after writing (0) bytes to tmp cluster config file: No space left on device"
	tests := map[string]struct {
		exit  process.Exit
		lines []string
		want  string
	}{
		"its node table did not fit":    {process.Exit{Code: 1}, []string{"all is well", full, "# Fatal: can't update cluster config file."}, full},
		"its log did not fit":           {process.Exit{Code: 1}, []string{"# Short write while writing to the AOF file: (nwritten=1, expected=2)", "Exiting..."}, "# Short write while writing to the AOF file: (nwritten=1, expected=2)"},
		"it ended for something else":   {process.Exit{Code: 1}, []string{"Fatal error"}, ""},
		"it was killed on a full disk":  {process.Exit{Code: 137, Signal: 9}, []string{full}, ""},
		"it ended well on a full disk":  {process.Exit{}, []string{full}, ""},
		"it ended without a word on it": {process.Exit{Code: 1}, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quote, lacks := lacksSpace(test.exit, test.lines)
			if quote != test.want || lacks != (test.want != "") {
				t.Errorf("got %q, %t, want %q", quote, lacks, test.want)
			}
		})
	}
}

func TestOwesLog(t *testing.T) {
	t.Parallel()
	failing := valkey.PersistenceInfo{AOFEnabled: true, AOFPendingBytes: 10}
	writing := valkey.PersistenceInfo{AOFEnabled: true, AOFPendingBytes: 10, AOFLastWriteOK: true}
	tests := map[string]struct {
		info valkey.Info
		free int64
		want bool
	}{
		"a primary without space":                  {valkey.Info{Role: valkey.RolePrimary, Persistence: failing}, 9, true},
		"a primary that finds space":               {valkey.Info{Role: valkey.RolePrimary, Persistence: failing}, 10, false},
		"a primary that writes":                    {valkey.Info{Role: valkey.RolePrimary, Persistence: writing}, 0, false},
		"a replica, whose primary has all of that": {valkey.Info{Role: valkey.RoleReplica, Persistence: failing}, 0, false},
		"a server that has not said a word":        {valkey.Info{}, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := owesLog(valkey.View{Info: test.info}, test.free); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestWantIsOver(t *testing.T) {
	t.Parallel()
	ended := time.Unix(1800000000, 0)
	tests := map[string]struct {
		free  int64
		after time.Duration
		want  bool
	}{
		"there is no more space":       {10, time.Second, false},
		"there is a little more":       {10 + gainNeeded - 1, time.Second, false},
		"there is enough more":         {10 + gainNeeded, time.Second, true},
		"nothing changed for a minute": {10, fullRetry, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (want{at: ended, free: 10}).isOver(test.free, ended.Add(test.after)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// blankThen is the agent of a member that was started blank, and whose server wrote
// a key and ended for want of space.
func blankThen(t *testing.T) *agent {
	t.Helper()
	a := &agent{log: slog.New(slog.DiscardHandler), config: Config{
		Identity: volume.Identity{ClusterID: "c1"}, Data: t.TempDir(), Run: t.TempDir(), Settings: filepath.Join(t.TempDir(), "valkey.conf"),
	}}
	a.board = newBoard(a.config, a.log)
	writeFile(t, a.config.Settings, "appendonly yes\n")
	if verdict := a.tryStart(t.Context()); verdict.Decision != protocol.DecisionStart {
		t.Fatalf("a blank member is told %+v", verdict)
	}
	t.Cleanup(func() { _ = a.lock.Close() })
	writeFile(t, filepath.Join(a.config.Data, volume.TableFile), strings.Repeat("a", 40)+" 127.0.0.1:1@2 myself,master - 0 0 7 connected 0-5460\nvars currentEpoch 7 lastVoteEpoch 0\n")
	writeFile(t, filepath.Join(a.config.Data, volume.LogDirectory, volume.LogFile+".manifest"), "file "+volume.LogFile+".1.incr.aof seq 1 type i\n")
	writeFile(t, filepath.Join(a.config.Data, volume.LogDirectory, volume.LogFile+".1.incr.aof"), "*3\r\n$3\r\nSET\r\n")
	a.lacked = &want{at: time.Now(), free: 1 << 62, quote: "No space left on device"}
	a.board.forget()
	return a
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// A member that waits for space is no blank one, though it was started as such:
// what its server wrote since may be all that there is of its shard.
func TestAMemberThatWaitsForSpaceTellsWhatItHolds(t *testing.T) {
	t.Parallel()
	a := blankThen(t)
	if facts := a.board.facts(time.Now()); facts.Empty != "" || facts.NodeID != "" {
		t.Errorf("before its files are read again the facts are %+v", facts)
	}
	if verdict := a.tryStart(t.Context()); verdict.Decision != protocol.DecisionVolumeFull {
		t.Fatalf("it is told %+v", verdict)
	}
	first := a.tryStart(t.Context())
	writeFile(t, filepath.Join(a.config.Data, "somebody's"), strings.Repeat("x", 1<<20))
	if second := a.tryStart(t.Context()); second != first {
		t.Errorf("it is told %q, and then %q", first.Message, second.Message)
	}
	facts := a.board.facts(time.Now())
	if facts.Empty != protocol.No || len(facts.NodeID) != 40 || facts.Role != protocol.RolePrimary || facts.OwnsSlots != protocol.Yes {
		t.Errorf("while it waits the facts are %+v", facts)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want bool
	}{
		"9.1":         {"Valkey server v=9.1.2 sha=00000000:0 malloc=jemalloc-5.3.1 bits=64 build=9108e8f1788612b\n", true},
		"10.0":        {"Valkey server v=10.0.0 sha=00000000:0", true},
		"9.0":         {"Valkey server v=9.0.7 sha=00000000:0", false},
		"8.1":         {"Valkey server v=8.1.1 sha=00000000:0", false},
		"unstable":    {"Valkey server v=255.255.255 sha=4d1a2f3e:0", true},
		"nothing":     {"", false},
		"another one": {"Redis server v=7.2.4 sha=00000000:0", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := len(versionLines(parseVersion(test.text))) > 0; got != test.want {
				t.Errorf("it gets the new settings: %t, want %t", got, test.want)
			}
		})
	}
}

func TestAProgramThatDoesNotTellItsVersion(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"/missing", "false"} {
		if got := (Config{Program: program}).serverVersion(t.Context()); got != (version{}) {
			t.Errorf("%s is of version %v", program, got)
		}
	}
}
