package loopback

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mounts of loop devices in this mount namespace, by mount point.
func loopMounts() (map[string]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	devices := map[string]string{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		left, right, ok := strings.Cut(s.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if ok && len(l) > 4 && len(r) > 1 && strings.HasPrefix(r[1], "/dev/loop") {
			devices[l[4]] = r[1]
		}
	}
	return devices, s.Err()
}

// mountedFrom returns the loop device mounted at dir, "" where none is.
func mountedFrom(dir string) (string, error) {
	devices, err := loopMounts()
	if err != nil {
		return "", status.Error(codes.Internal, err.Error())
	}
	return devices[dir], nil
}

// backingFile is the file behind a loop device.
func backingFile(device string) (string, error) {
	b, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "loop/backing_file"))
	return strings.TrimSpace(string(b)), err
}

// attachLoop attaches file to a free loop device that the kernel detaches by
// itself at the last unmount, even where the whole node is killed. The caller
// closes hold once a mount holds the device.
func attachLoop(file string) (device string, hold *os.File, err error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", nil, err
	}
	defer control.Close()
	back, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return "", nil, err
	}
	defer back.Close()
	config := unix.LoopConfig{Fd: uint32(back.Fd()), Size: 4096}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:], file)
	for range 20 { // another node may take the free device first
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return "", nil, err
		}
		device = fmt.Sprintf("/dev/loop%d", n)
		hold, err = os.OpenFile(device, os.O_RDWR, 0)
		if err != nil {
			return "", nil, err
		}
		err = unix.IoctlLoopConfigure(int(hold.Fd()), &config)
		if err == nil {
			return device, hold, nil
		}
		hold.Close()
		if !errors.Is(err, unix.EBUSY) {
			return "", nil, fmt.Errorf("%s: %w", device, err)
		}
	}
	return "", nil, fmt.Errorf("no free loop device for %s", file)
}

// growDevice tells a loop device that its file has grown.
func growDevice(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return status.Errorf(codes.Internal, "set capacity of %s: %v", device, err)
	}
	return nil
}

// growFileSystem grows what is mounted at dir into its device.
func growFileSystem(device, dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if st.Type == unix.XFS_SUPER_MAGIC {
		return run("xfs_growfs", dir)
	}
	return run("resize2fs", device)
}

// format makes a file system where there is none.
func format(device, fstype string) error {
	if exec.Command("blkid", "-p", device).Run() == nil {
		return nil
	}
	if fstype == "xfs" {
		return run("mkfs.xfs", "-q", "-f", device)
	}
	return run("mkfs."+fstype, "-q", "-F", "-m", "0", "-b", "4096", device)
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if name == "mkfs.xfs" {
		// Lets it make file systems under 300 MB, as its own tests do.
		cmd.Env = append(os.Environ(), "TEST_DIR=1", "TEST_DEV=1", "QA_CHECK_FS=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return status.Errorf(codes.Internal, "%s %v: %v: %s", name, args, err, strings.TrimSpace(string(out)))
	}
	return nil
}
