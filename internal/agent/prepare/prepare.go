// Package prepare is the work of a member pod's init containers: it brings the
// agent's program into the pod and gives the volume to the server's user.
//
// It reads no file of the volume and changes nothing but owners.
package prepare

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Install copies the running program to agent in the directory, in one step, so
// that nobody ever starts a half-written one.
func Install(directory string) (err error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	defer func() { _ = self.Close() }()
	temp, err := os.CreateTemp(directory, "agent.*")
	if err != nil {
		return fmt.Errorf("installing the agent: %w", err)
	}
	_, err = io.Copy(temp, self)
	err = errors.Join(err, temp.Chmod(0o755), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), filepath.Join(directory, "agent"))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("installing the agent: %w", err)
	}
	return nil
}

// Outcome counts what Chown did.
type Outcome struct {
	Seen, Changed, Skipped int
	UID, GID               int
}

func (o Outcome) String() string {
	return fmt.Sprintf("gave %d of %d entries to %d:%d, left %d alone", o.Changed, o.Seen, o.UID, o.GID, o.Skipped)
}

// Chown gives a directory and everything in it to a user and a group, where
// they are not the owner already. It leaves alone lost+found, other file systems
// mounted inside, what is read-only (snapshots), and what it may not look into
// although the user already owns it.
func Chown(directory string, uid, gid int) (Outcome, error) {
	walk := walk{Outcome: Outcome{UID: uid, GID: gid}}
	root, err := os.Lstat(directory)
	if err != nil {
		return walk.Outcome, fmt.Errorf("changing owners: %w", err)
	}
	walk.root, walk.device = directory, ownerOf(root).Dev
	if err := filepath.WalkDir(directory, walk.visit); err != nil {
		return walk.Outcome, fmt.Errorf("changing owners: %w", err)
	}
	return walk.Outcome, nil
}

type walk struct {
	Outcome
	root   string
	device uint64
}

func (w *walk) visit(path string, entry fs.DirEntry, err error) error {
	if entry == nil {
		return err
	}
	info, infoErr := entry.Info()
	if errors.Is(infoErr, fs.ErrNotExist) {
		return nil
	}
	if infoErr != nil {
		return infoErr
	}
	owner := ownerOf(info)
	owned := int(owner.Uid) == w.UID && int(owner.Gid) == w.GID
	switch {
	case err != nil && owned && errors.Is(err, fs.ErrPermission):
		w.Skipped++
		return skip(entry)
	case err != nil:
		return err
	case owner.Dev != w.device, path == filepath.Join(w.root, "lost+found"):
		w.Skipped++
		return skip(entry)
	}
	w.Seen++
	if owned {
		return nil
	}
	return w.give(path, entry)
}

func (w *walk) give(path string, entry fs.DirEntry) error {
	err := os.Lchown(path, w.UID, w.GID)
	if errors.Is(err, syscall.EROFS) {
		w.Skipped++
		return skip(entry)
	}
	if err == nil {
		w.Changed++
	}
	return err
}

// ownerOf is what Linux tells about a file; on no other system does this run.
func ownerOf(info fs.FileInfo) syscall.Stat_t {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return *stat
	}
	return syscall.Stat_t{}
}

func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}
