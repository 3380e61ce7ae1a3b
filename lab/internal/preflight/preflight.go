// Package preflight says in one sentence why this machine cannot run a lab.
//
// It looks without changing anything, and each sentence names the remedy.
package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine is what is asked about; a test asks about one that it makes up.
type Machine struct {
	OS   string
	UID  int
	Root fs.FS // the file system's root
	// Find is exec.LookPath.
	Find func(program string) (string, error)
	// Load loads a kernel module.
	Load func(module string) error
}

// This is the machine that the program runs on.
func This() Machine {
	return Machine{
		OS: runtime.GOOS, UID: os.Getuid(), Root: os.DirFS("/"), Find: exec.LookPath,
		Load: func(module string) error { return exec.Command("modprobe", "-q", module).Run() },
	}
}

// Check returns every reason why a lab cannot run here, one sentence each.
func (m Machine) Check() error {
	if m.OS != "linux" {
		return fmt.Errorf("the lab needs Linux, this is %s: use another cluster by KUBECONFIG instead", m.OS)
	}
	if m.UID != 0 {
		return errors.New("the lab needs root, for namespaces, mounts and loop devices: run it with sudo")
	}
	return errors.Join(m.namespaces(), m.fileSystems(), m.devices(), m.cgroups(), m.programs())
}

func (m Machine) exists(path string) bool {
	_, err := fs.Stat(m.Root, path)
	return err == nil
}

func (m Machine) namespaces() error {
	var missing []string
	for _, ns := range []string{"pid", "mnt", "net", "uts", "ipc"} {
		if !m.exists("proc/self/ns/" + ns) {
			missing = append(missing, ns)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("this kernel has no %s namespaces: use one built with CONFIG_NAMESPACES", strings.Join(missing, ", "))
	}
	return nil
}

func (m Machine) fileSystems() error {
	var errs []error
	for _, name := range []string{"xfs", "overlay", "tmpfs"} {
		if !m.hasFileSystem(name) && (m.Load(name) != nil || !m.hasFileSystem(name)) {
			errs = append(errs, fmt.Errorf("this kernel has no %s file system and `modprobe %[1]s` does not bring it", name))
		}
	}
	return errors.Join(errs...)
}

func (m Machine) hasFileSystem(name string) bool {
	b, err := fs.ReadFile(m.Root, "proc/filesystems")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 && f[len(f)-1] == name {
			return true
		}
	}
	return false
}

func (m Machine) devices() error {
	if !m.exists("dev/loop-control") && (m.Load("loop") != nil || !m.exists("dev/loop-control")) {
		return errors.New("this machine has no loop devices (/dev/loop-control): load the kernel's loop module")
	}
	return nil
}

func (m Machine) cgroups() error {
	b, err := fs.ReadFile(m.Root, "proc/self/mounts")
	if err == nil {
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 2 && (f[2] == "cgroup" || f[2] == "cgroup2") {
				return nil
			}
		}
	}
	return errors.New("no cgroup hierarchy is mounted: mount one at /sys/fs/cgroup")
}

// programs looks for what the lab runs, by the Debian package that has it.
func (m Machine) programs() error {
	var missing []string
	for _, need := range [][2]string{
		{"nft", "nftables"},
		{"mkfs.xfs", "xfsprogs"},
		{"mkfs.ext4", "e2fsprogs"},
		{"ip", "iproute2"},
		{"nsenter", "util-linux"},
		{"mount", "mount"},
		{"tar", "tar"},
	} {
		if _, err := m.Find(need[0]); err != nil {
			missing = append(missing, need[1])
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("programs are missing: apt-get install -y %s", strings.Join(missing, " "))
	}
	return nil
}
