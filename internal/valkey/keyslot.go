package valkey

import "strings"

// KeySlot is the slot that a key belongs to. Only the part between the first
// { and the next } counts, if there is anything between them.
func KeySlot(key string) int {
	if _, tail, opened := strings.Cut(key, "{"); opened {
		if tag, _, closed := strings.Cut(tail, "}"); closed && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % SlotCount
}

// crc16Polynomial is x^16 + x^12 + x^5 + 1: the checksum known as XMODEM.
const crc16Polynomial = 0x1021

func crc16(text string) uint16 {
	var sum uint16
	for i := range len(text) {
		sum ^= uint16(text[i]) << 8
		for range 8 {
			carry := sum & 0x8000
			sum <<= 1
			if carry != 0 {
				sum ^= crc16Polynomial
			}
		}
	}
	return sum
}
