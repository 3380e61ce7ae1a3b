package loopback

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
)

// ballast is the file in a volume's root that takes its room away.
const ballast = ".lab-ballast"

// FillRule fills the volumes that match.
type FillRule struct {
	Match string            `json:"match,omitempty"`
	Leave resource.Quantity `json:"leave,omitzero"` // bytes left free
}

func (r FillRule) validate() error {
	if r.Leave.Sign() < 0 {
		return errors.New("fill cannot leave less than nothing")
	}
	return nil
}

// keepFilled acts out the fill rules on this node until ctx ends. Filling is
// no CSI call, so it looks each second.
func (n *node) keepFilled(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := n.fillOnce(); err != nil {
			klog.ErrorS(err, "filling volumes")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *node) fillOnce() error {
	n.mu.Lock() // nothing is unmounted meanwhile
	defer n.mu.Unlock()
	s, _, err := n.pool.settings()
	if err != nil {
		return err
	}
	staged, err := n.staged()
	if err != nil {
		return err
	}
	var errs []error
	for id, dir := range staged {
		errs = append(errs, n.fill(s.Fill, id, filepath.Join(dir, ballast)))
	}
	return errors.Join(errs...)
}

// staged are the volumes mounted on this node, with the mount point that the
// kubelet stages them at.
func (n *node) staged() (map[string]string, error) {
	mounts, err := loopMounts()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for dir, device := range mounts {
		file, err := backingFile(device)
		if err != nil || filepath.Base(dir) != "globalmount" {
			continue // not ours, or gone meanwhile
		}
		if id, ok := strings.CutSuffix(filepath.Base(file), ".img"); ok && filepath.Dir(file) == n.pool.Dir {
			found[id] = dir
		}
	}
	return found, nil
}

// fill makes the ballast of a volume that a rule matches, and removes that of
// one that none does any more.
func (n *node) fill(rules []FillRule, id, file string) error {
	v, _, err := n.pool.get(id)
	if err != nil {
		return err
	}
	_, err = os.Stat(file)
	filled := err == nil
	for _, rule := range rules {
		if !strings.Contains(id+" "+v.Claim, rule.Match) {
			continue
		}
		if filled {
			return nil
		}
		return allocate(file, rule.Leave.Value())
	}
	if filled {
		return os.Remove(file)
	}
	return nil
}

// allocate takes all room of a file's file system but leave bytes.
func allocate(file string, leave int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return err
	}
	// What is free cannot always be taken in one piece: halve down to a block.
	offset, step := int64(0), int64(st.Bavail)*st.Bsize-leave
	for step >= st.Bsize {
		err := unix.Fallocate(int(f.Fd()), 0, offset, step)
		if err == nil {
			offset += step
			err = unix.Fstatfs(int(f.Fd()), &st)
			step = min(step, int64(st.Bavail)*st.Bsize-leave)
		} else if errors.Is(err, unix.ENOSPC) {
			step, err = step/2, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
