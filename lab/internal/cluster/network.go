package cluster

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// ipIn runs ip commands, one a line, in a process's network namespace.
func ipIn(pid int, lines ...string) error {
	for _, line := range lines {
		args := append([]string{"-t", strconv.Itoa(pid), "-n", "ip"}, strings.Fields(line)...)
		if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// wireHub makes the bridge that joins the nodes, inside the hub's namespace.
func wireHub(pid int) error {
	return ipIn(pid,
		"link set lo up",
		"link add br0 type bridge",
		"addr add "+hubIP+"/24 dev br0",
		"link set br0 up")
}

// wireNode joins a node to the bridge and lets it and its peers (by number,
// with their first processes) reach each other's pods by plain routes.
func wireNode(hub, pid, n int, peers map[int]int) error {
	veth := "v-" + nodeName(n)
	// A killed node's end goes with its namespace, which the kernel tears down
	// a moment later; the name must be free.
	_ = ipIn(hub, "link del "+veth)
	err := ipIn(hub,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", veth, pid),
		fmt.Sprintf("link set %s master br0 up", veth),
		fmt.Sprintf("route replace %s via %s", podsOf(n), nodeIP(n)))
	if err != nil {
		return err
	}
	err = ipIn(pid,
		"link set lo up",
		fmt.Sprintf("addr add %s/24 dev eth0", nodeIP(n)),
		"link set eth0 up",
		"route add default via "+hubIP)
	if err != nil {
		return err
	}
	for peer, peerPid := range peers {
		if err := ipIn(pid, fmt.Sprintf("route replace %s via %s", podsOf(peer), nodeIP(peer))); err != nil {
			return err
		}
		if peerPid == 0 {
			continue
		}
		if err := ipIn(peerPid, fmt.Sprintf("route replace %s via %s", podsOf(n), nodeIP(n))); err != nil {
			return err
		}
	}
	return nil
}
