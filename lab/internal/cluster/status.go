package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"valkey.io/valkey-operator/lab/internal/cgroup"
	"valkey.io/valkey-operator/lab/internal/footprint"
	"valkey.io/valkey-operator/lab/internal/images"
)

// leftovers lists what of this lab still exists on the machine, besides files
// in its home.
func (c Cluster) leftovers() []string {
	return slices.Concat(
		footprint.Processes(c.Home.Bin()),
		footprint.Mounts(c.Home.State()),
		footprint.LoopDevices(c.Home.Pool()+"/"),
		footprint.Cgroups(cgroup.For(c.Home.State())))
}

// ErrDown says that the cluster does not run.
var ErrDown = errors.New("the lab is down: start it with `lab up`")

// Status describes what runs. It returns ErrDown with the description where
// the control plane does not.
func (c Cluster) Status() (string, error) {
	var b strings.Builder
	describe := func(name string) {
		if pid := c.record(name).Pid(); pid != 0 {
			fmt.Fprintf(&b, "%-5s up, first process %d\n", name, pid)
		} else {
			fmt.Fprintf(&b, "%-5s down\n", name)
		}
	}
	describe("hub")
	for _, n := range c.nodes() {
		describe(nodeName(n))
	}
	fmt.Fprintf(&b, "home  %s\nlogs  %s and %s\n", c.Home.Root, c.Home.Log(), c.Home.NodeLog("nN"))
	fmt.Fprintf(&b, "volumes in use: %d\n", len(footprint.LoopDevices(c.Home.Pool()+"/")))
	if pins, err := images.ReadPins(c.Home); err == nil {
		b.WriteString("images:\n" + pins.String())
	}
	if c.record("hub").Pid() == 0 {
		return b.String(), ErrDown
	}
	return b.String(), nil
}

// Exec replaces this process with a command inside the hub or a node; with no
// command, a shell.
func (c Cluster) Exec(name string, args []string) error {
	pid := c.record(name).Pid()
	if pid == 0 {
		return fmt.Errorf("%s does not run", name)
	}
	if len(args) == 0 {
		args = []string{"bash"}
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	if err := os.Setenv("PATH", c.Home.Bin()+":"+os.Getenv("PATH")); err != nil {
		return err
	}
	enter := []string{"nsenter", "-t", strconv.Itoa(pid), "-m", "-n", "-p", "-u", "-i", "--"}
	return syscall.Exec(nsenter, append(enter, args...), os.Environ())
}
