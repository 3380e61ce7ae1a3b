package preflight

import (
	"fmt"
	"os/exec"
	"strings"
)

// ProbeNetwork makes a bridge, a pair of linked interfaces and a firewall table
// in a network namespace that is gone again when it returns: only trying tells
// whether the kernel can.
func ProbeNetwork() error {
	for _, try := range []struct{ what, script string }{
		{"network bridges", "ip link add probe0 type bridge"},
		{"virtual Ethernet pairs", "ip link add probe1 type veth peer name probe2"},
		{"nftables", "nft add table ip probe && nft add chain ip probe nat '{ type nat hook postrouting priority 100; }' && nft add rule ip probe nat masquerade"},
	} {
		out, err := exec.Command("unshare", "--net", "--", "sh", "-ec", try.script).CombinedOutput()
		if err != nil {
			return fmt.Errorf("this kernel does not let root make %s in a network namespace (%s): %s",
				try.what, try.script, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
