package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// slotCount is the number of hash slots of every Valkey cluster.
const slotCount = 16384

// crc16 is CRC-16/XMODEM (polynomial 0x1021), by which the cluster
// specification maps a key to its slot.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// tags finds one hash tag for every slot.
func tags() [slotCount]string {
	var found [slotCount]string
	for i, missing := 0, slotCount; missing > 0; i++ {
		tag := strconv.FormatInt(int64(i), 16)
		if slot := crc16(tag) % slotCount; found[slot] == "" {
			found[slot] = tag
			missing--
		}
	}
	return found
}

// spread makes n keys in ascending order of slot, evenly over all slots.
func spread(n int, prefix string) []*entry {
	all := tags()
	entries := make([]*entry, n)
	for i := range n {
		slot := i * slotCount / n
		entries[i] = &entry{key: fmt.Sprintf("%s:%d:{%s}", prefix, i, all[slot]), slot: slot}
	}
	return entries
}

// slotsIn counts the slots of one range of CLUSTER NODES, such as 0-5460 or 7.
// A slot on the move, which stands in brackets, counts as none.
func slotsIn(r string) int {
	if strings.HasPrefix(r, "[") {
		return 0
	}
	from, to, ok := strings.Cut(r, "-")
	if !ok {
		to = from
	}
	first, err := strconv.Atoi(from)
	if err != nil {
		return 0
	}
	last, err := strconv.Atoi(to)
	if err != nil {
		return 0
	}
	return last - first + 1
}
