// Package footprint lists what a lab could leave behind on a machine, so that
// the list before a lab and the list after it can be compared.
//
// It only reads.
package footprint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"valkey.io/valkey-operator/lab/internal/cgroup"
)

// sysctls are the machine-wide settings that Kubernetes' programs, and the lab, set.
var sysctls = []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward", "net/ipv4/neigh/default/gc_thresh3"}

// Processes lists the processes of clusters: those in a PID namespace other
// than this one's whose program lies below dir.
func Processes(dir string) []string {
	ours, _ := os.Readlink("/proc/self/ns/pid")
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	var found []string
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(exe, dir+"/") {
			continue // ended meanwhile, or not of this lab
		}
		ns, err := os.Readlink(filepath.Join(filepath.Dir(link), "ns/pid"))
		if err == nil && ns != ours {
			found = append(found, "process "+strings.Split(link, "/")[2]+" "+exe)
		}
	}
	return found
}

// Mounts lists the mounts of this mount namespace, those that contain text.
func Mounts(text string) []string {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return []string{"mounts unreadable: " + err.Error()}
	}
	var found []string
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, text) {
			found = append(found, "mount "+strings.TrimSpace(line))
		}
	}
	return found
}

// LoopDevices lists the loop devices that hold a file below dir.
func LoopDevices(dir string) []string {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var found []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.HasPrefix(string(b), dir) {
			found = append(found, "loop device "+strings.Split(f, "/")[3]+" "+strings.TrimSpace(string(b)))
		}
	}
	return found
}

// Cgroups lists the groups of a lab.
func Cgroups(group cgroup.Group) []string {
	dirs, err := group.Dirs()
	if err != nil {
		return []string{"cgroups unreadable: " + err.Error()}
	}
	for i := range dirs {
		dirs[i] = "cgroup " + dirs[i]
	}
	return dirs
}

// Machine lists everything of the kinds above on the whole machine, with its
// links, addresses, routes, firewall rules and the settings a kubelet changes;
// of processes only those of clusters, for others come and go.
func Machine(dir string) []string {
	list := slices.Concat(Processes(dir), Mounts(""), LoopDevices("/"), Cgroups(""))
	for _, ask := range [][]string{{"ip", "-oneline", "link"}, {"ip", "-oneline", "address"}, {"ip", "route"}, {"ip", "netns"}, {"nft", "list", "ruleset"}} {
		out, err := exec.Command(ask[0], ask[1:]...).Output()
		if err != nil {
			out = []byte(err.Error())
		}
		for line := range bytes.Lines(out) {
			text, _, _ := strings.Cut(string(line), "valid_lft") // counts down
			list = append(list, strings.Join(ask, " ")+": "+strings.TrimSpace(text))
		}
	}
	for _, s := range sysctls {
		b, _ := os.ReadFile("/proc/sys/" + s)
		list = append(list, "sysctl "+s+" "+strings.TrimSpace(string(b)))
	}
	slices.Sort(list)
	return list
}
