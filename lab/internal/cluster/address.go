package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// Addresses, all inside the lab's own network namespaces: the bridge and what
// hangs on it, pods, services. The machine's own network has none of them.
const (
	hubIP        = "10.90.0.1"
	podCIDR      = "10.91.0.0/16"
	serviceCIDR  = "10.92.0.0/16"
	apiServiceIP = "10.92.0.1"
	dnsServiceIP = "10.92.0.10"
	apiInside    = "https://" + hubIP + ":6443"
)

// maxNodes is what a /24 and the memory of one machine carry with ease.
const maxNodes = 50

// nodeNumber is the N of node nN.
func nodeNumber(name string) (int, error) {
	digits, ok := strings.CutPrefix(name, "n")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > maxNodes || nodeName(n) != name {
		return 0, fmt.Errorf("a node's name is n1 to n%d, not %q", maxNodes, name)
	}
	return n, nil
}

func nodeName(n int) string { return "n" + strconv.Itoa(n) }
func nodeIP(n int) string   { return fmt.Sprintf("10.90.0.%d", 10+n) }
func podsOf(n int) string   { return fmt.Sprintf("10.91.%d.0/24", n) }
