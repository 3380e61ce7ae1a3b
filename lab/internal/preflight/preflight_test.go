package preflight

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
)

// fit is a machine that can run a lab.
func fit() (Machine, fstest.MapFS) {
	root := fstest.MapFS{
		"proc/filesystems": {Data: []byte("nodev\ttmpfs\nnodev\toverlay\n\txfs\n")},
		"proc/self/mounts": {Data: []byte("cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n")},
		"dev/loop-control": {},
	}
	for _, ns := range []string{"pid", "mnt", "net", "uts", "ipc"} {
		root["proc/self/ns/"+ns] = &fstest.MapFile{}
	}
	return Machine{
		OS: "linux", Root: root,
		Find: func(string) (string, error) { return "/bin/true", nil },
		Load: func(string) error { return errors.New("no such module") },
	}, root
}

func TestCheck(t *testing.T) {
	t.Parallel()
	without := func(path string) func(*Machine, fstest.MapFS) {
		return func(_ *Machine, root fstest.MapFS) { delete(root, path) }
	}
	for sentence, c := range map[string]struct {
		change func(*Machine, fstest.MapFS)
		want   string // "" lets it run
	}{
		"a fit machine may run a lab":                    {func(*Machine, fstest.MapFS) {}, ""},
		"another system is refused":                      {func(m *Machine, _ fstest.MapFS) { m.OS = "darwin" }, "the lab needs Linux, this is darwin"},
		"a plain user is refused":                        {func(m *Machine, _ fstest.MapFS) { m.UID = 1000 }, "the lab needs root"},
		"a kernel without network namespaces is refused": {without("proc/self/ns/net"), "no net namespaces"},
		"a kernel without xfs is refused": {
			func(_ *Machine, root fstest.MapFS) {
				root["proc/filesystems"].Data = []byte("nodev tmpfs\nnodev overlay\n")
			},
			"no xfs file system",
		},
		"a file system that its module brings is enough": {
			func(m *Machine, root fstest.MapFS) {
				file := root["proc/filesystems"]
				all := file.Data
				file.Data = []byte("nodev tmpfs\nnodev overlay\n")
				m.Load = func(string) error { file.Data = all; return nil }
			}, "",
		},
		"a machine without loop devices is refused": {without("dev/loop-control"), "no loop devices"},
		"a machine without cgroups is refused":      {without("proc/self/mounts"), "no cgroup hierarchy"},
		"missing programs are named by package": {
			func(m *Machine, _ fstest.MapFS) {
				m.Find = func(program string) (string, error) {
					if program == "nft" || program == "mkfs.xfs" {
						return "", exec.ErrNotFound
					}
					return program, nil
				}
			}, "apt-get install -y nftables xfsprogs",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			m, root := fit()
			c.change(&m, root)
			err := m.Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Check() = %v, want %q", err, c.want)
			}
		})
	}
}
