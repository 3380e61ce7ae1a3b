package agent

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/agent/probe"
	"valkey.io/valkey-operator/internal/agent/process"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
	"valkey.io/valkey-operator/internal/valkey"
)

// limited is a reserve of a running process, and what limits the process's files,
// in the system's words.
func limited(t *testing.T) (r *reserve, limit func() string) {
	t.Helper()
	lines := process.NewTail(io.Discard, 1)
	server, err := process.Start(process.Command{Path: "sh", Args: []string{"-c", "echo $$; exec sleep 600"}, Output: lines})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-server.Done()
	})
	for deadline := time.Now().Add(time.Minute); len(lines.Lines()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the process says nothing")
		}
	}
	limits := filepath.Join("/proc", lines.Lines()[0], "limits")
	config := Config{Data: t.TempDir(), Settings: filepath.Join(t.TempDir(), "valkey.conf"), MostBallast: 1 << 20}
	return &reserve{config: config, board: newBoard(config, slog.New(slog.DiscardHandler)), server: server}, func() string {
		text, err := os.ReadFile(limits)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "Max file size")
		return strings.Fields(after)[0]
	}
}

// What is freed while the log is held is the server's as well: a limit from when
// nothing was left would keep it from writing its node table.
func TestAHeldLogGetsWhatIsFreed(t *testing.T) {
	t.Parallel()
	r, limit := limited(t)
	writeFile(t, r.config.Settings, "appendfsync everysec\n")
	log := filepath.Join(r.config.Data, volume.LogDirectory, volume.LogFile)
	writeFile(t, log+".manifest", "file "+volume.LogFile+".1.incr.aof seq 1 type i\n")
	writeFile(t, log+".1.incr.aof", "")
	for _, step := range []struct {
		what string
		free int64
		want string
	}{
		{"nothing is left", 0, "0"},
		{"a little is freed", gainNeeded - 1, "0"},
		{"more is freed", 4 << 20, "3145728"},
		{"the log takes some of it", 2 << 20, "3145728"},
		{"and more, and some is freed", 5<<20 - 1, "3145728"},
	} {
		r.hold(space{free: step.free, reserve: 8 << 20})
		if got := limit(); got != step.want {
			t.Errorf("%s: files are limited to %s bytes, want %s", step.what, got, step.want)
		}
	}
	r.letGo()
	if got := limit(); got != "unlimited" {
		t.Errorf("files are limited to %s bytes when the log is let go", got)
	}
}

// says makes the server's last word one of a log that can be written, or cannot.
func says(b *board, writes bool) {
	b.setPhase(probe.Up)
	b.answered(time.Now(), &valkey.View{Info: valkey.Info{Persistence: valkey.PersistenceInfo{AOFEnabled: true, AOFLastWriteOK: writes}}})
}

// A file system may have space that the member must not use. Its server is worth
// more than its ballast.
func TestABallastThatAServerCannotWriteBesideIsReleased(t *testing.T) {
	t.Parallel()
	config := Config{Data: t.TempDir(), MostBallast: 1 << 20}
	r := &reserve{config: config, board: newBoard(config, slog.New(slog.DiscardHandler))}
	writeFile(t, config.Data+"/.valkey-operator/lock", "")
	now := time.Now()
	look := func(after time.Duration) int64 {
		found := space{disk: protocol.Disk{AvailableBytes: 1 << 30}, free: 1 << 30, reserve: 1 << 20, ballast: volume.Ballast(config.Data)}
		r.refill(found, now.Add(after))
		return volume.Ballast(config.Data)
	}
	says(r.board, true)
	if got := look(0); got != 1<<20 {
		t.Fatalf("the ballast has %d bytes", got)
	}
	says(r.board, false)
	if look(0) != 1<<20 || look(failsTime-1) != 1<<20 {
		t.Error("the ballast was released for what the server said before it found space")
	}
	if got := look(failsTime); got != 0 {
		t.Errorf("%d bytes of ballast are in place beside a log that cannot be written", got)
	}
	says(r.board, true)
	if got := look(refillRetry); got != 0 {
		t.Errorf("%d bytes of ballast were put in place at once", got)
	}
	if got := look(failsTime + refillRetry); got != 1<<20 {
		t.Errorf("the ballast has %d bytes in the end", got)
	}
}

// Where no ballast can be had, as on a file system that is read-only, the member
// tries seldom and says so once.
func TestABallastThatCannotBeHadIsTriedSeldom(t *testing.T) {
	t.Parallel()
	config := Config{Data: filepath.Join(t.TempDir(), "data"), MostBallast: 1 << 20}
	writeFile(t, config.Data+"/.valkey-operator", "a file in its way")
	var told strings.Builder
	r := &reserve{config: config, board: newBoard(config, slog.New(slog.NewTextHandler(&told, nil)))}
	says(r.board, true)
	now := time.Now()
	for _, after := range []time.Duration{0, time.Second, refillRetry, 2 * refillRetry} {
		r.refill(space{reserve: 1 << 20}, now.Add(after))
	}
	if got := strings.Count(told.String(), "could not be put in place"); got != 1 {
		t.Errorf("it said so %d times", got)
	}
	if !r.refillAt.Equal(now.Add(3 * refillRetry)) {
		t.Errorf("it tries again at %s", r.refillAt)
	}
	if err := os.Remove(config.Data + "/.valkey-operator"); errors.Join(err, os.Mkdir(config.Data+"/.valkey-operator", 0o700)) != nil {
		t.Fatal(err)
	}
	r.refill(space{reserve: 1 << 20}, now.Add(3*refillRetry))
	if got := volume.Ballast(config.Data); got != 1<<20 {
		t.Errorf("the ballast has %d bytes once it can be had", got)
	}
}
