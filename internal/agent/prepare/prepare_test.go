package prepare_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/agent/prepare"
)

func TestInstallReplacesTheProgram(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	path := filepath.Join(directory, "agent")
	if err := os.WriteFile(path, []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prepare.Install(directory); err != nil {
		t.Fatal(err)
	}
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	installed, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if installed.Mode().Perm() != 0o755 || installed.Size() != self.Size() {
		t.Errorf("installed with mode %o and %d bytes, want 755 and %d", installed.Mode().Perm(), installed.Size(), self.Size())
	}
	if entries, _ := os.ReadDir(directory); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := prepare.Install(filepath.Join(directory, "missing")); err == nil {
		t.Error("installed into a missing directory")
	}
}

// Changing owners takes root. For anybody else only the user's own files can be
// looked at: nothing to change.
func TestChown(t *testing.T) {
	t.Parallel()
	uid, gid := os.Getuid(), os.Getgid()
	changes := uid == 0
	if changes {
		uid, gid = 999, 998
	}
	data, outside := layVolume(t)
	want := prepare.Outcome{Seen: 5, Skipped: 1, UID: uid, GID: gid}
	if changes {
		want.Changed = 5
	}
	compare(t, want, data, uid, gid)
	if changes {
		if owner(t, filepath.Join(data, "appendonlydir/a.aof")) != 999 || owner(t, filepath.Join(data, "link")) != 999 {
			t.Error("a file was left to its old owner")
		}
		if owner(t, outside) != 0 || owner(t, filepath.Join(data, "lost+found/x")) != 0 {
			t.Error("a file that is none of the volume's business was given away")
		}
	}
	want.Changed = 0
	compare(t, want, data, uid, gid)
}

// layVolume returns a volume and a file outside of it that a link in it names.
func layVolume(t *testing.T) (data, outside string) {
	t.Helper()
	data, outside = t.TempDir(), filepath.Join(t.TempDir(), "outside")
	for _, name := range []string{"appendonlydir", "lost+found"} {
		if err := os.Mkdir(filepath.Join(data, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		filepath.Join(data, "nodes.conf"), filepath.Join(data, "appendonlydir/a.aof"), filepath.Join(data, "lost+found/x"), outside,
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(data, "link")); err != nil {
		t.Fatal(err)
	}
	return data, outside
}

func TestChownOfAMissingDirectory(t *testing.T) {
	t.Parallel()
	if _, err := prepare.Chown(filepath.Join(t.TempDir(), "missing"), 1, 1); err == nil {
		t.Error("the owner of a missing directory was changed")
	}
}

func compare(t *testing.T, want prepare.Outcome, data string, uid, gid int) {
	t.Helper()
	got, err := prepare.Chown(data, uid, gid)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

func owner(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("%s: no owner is told", path)
	}
	return stat.Uid
}
