package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestARecordNamesOneProcessForGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) Record {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return Record(path)
	}
	pid := os.Getpid()
	for sentence, c := range map[string]struct {
		record Record
		want   int
	}{
		"the process that was recorded":           {write("a", fmt.Sprintf("%d %s\n", pid, startTime(pid))), pid},
		"another process that has its pid by now": {write("b", fmt.Sprintf("%d 1\n", pid)), 0},
		"a record without a start time":           {write("c", fmt.Sprintf("%d\n", pid)), 0},
		"an empty record":                         {write("d", ""), 0},
		"no record":                               {Record(filepath.Join(dir, "none")), 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if got := c.record.Pid(); got != c.want {
				t.Errorf("Pid() = %d, want %d", got, c.want)
			}
		})
	}
}

func TestEndKillsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	// A shell that is deaf to SIGTERM; it says when it is.
	cmd := exec.Command("sh", "-c", `trap "" TERM; echo deaf; while :; do sleep 0.1; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	r := Record(filepath.Join(t.TempDir(), "pid"))
	if err := r.write(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	if err := r.End(context.Background(), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := r.Pid(); got != 0 {
		t.Errorf("%d still runs", got)
	}
	if err := r.End(context.Background(), 0); err != nil {
		t.Errorf("ending what has ended is no error: %v", err)
	}
}
