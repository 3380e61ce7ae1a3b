package valkey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SlotCount is the number of hash slots of every Valkey cluster: keys are
// hashed with a 16 bit checksum of which the protocol keeps 14 bits.
const SlotCount = 16384

// SlotRange is a run of slots; both ends belong to it.
type SlotRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// String is the range in the server's own notation: "7" or "0-5460".
func (r SlotRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Slots is a set of slots, held as sorted ranges that neither overlap nor touch.
// Every function of this package returns such sets; NewSlots makes one from any ranges.
type Slots []SlotRange

// AllSlots is the set that a whole cluster has to cover.
func AllSlots() Slots { return Slots{{First: 0, Last: SlotCount - 1}} }

// NewSlots returns the set of all slots in the given ranges. Ranges that run
// backwards are empty, and slots outside 0..SlotCount-1 are left out.
func NewSlots(ranges ...SlotRange) Slots {
	kept := make([]SlotRange, 0, len(ranges))
	for _, r := range ranges {
		r.First, r.Last = max(r.First, 0), min(r.Last, SlotCount-1)
		if r.First <= r.Last {
			kept = append(kept, r)
		}
	}
	slices.SortFunc(kept, func(a, b SlotRange) int { return a.First - b.First })
	var merged Slots
	for _, r := range kept {
		if n := len(merged); n > 0 && r.First <= merged[n-1].Last+1 {
			merged[n-1].Last = max(merged[n-1].Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// ParseSlots reads the notation of String: ranges or single slots apart by
// white space. An empty text is the empty set.
func ParseSlots(text string) (Slots, error) {
	fields := strings.Fields(text)
	ranges := make([]SlotRange, 0, len(fields))
	for _, field := range fields {
		r, err := parseSlotRange(field)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	return NewSlots(ranges...), nil
}

func parseSlotRange(text string) (SlotRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	f, errFirst := parseSlot(first)
	l, errLast := parseSlot(last)
	if errFirst != nil || errLast != nil || f > l {
		return SlotRange{}, fmt.Errorf("%q is no range of slots", text)
	}
	return SlotRange{First: f, Last: l}, nil
}

func parseSlot(text string) (int, error) {
	slot, err := strconv.ParseUint(text, 10, 16)
	if err != nil || slot >= SlotCount {
		return 0, fmt.Errorf("%q is no slot", text)
	}
	return int(slot), nil
}

// String lists the ranges in ascending order, as in "0-5460 7000".
func (s Slots) String() string {
	words := make([]string, len(s))
	for i, r := range s {
		words[i] = r.String()
	}
	return strings.Join(words, " ")
}

// Count is the number of slots in the set.
func (s Slots) Count() int {
	total := 0
	for _, r := range s {
		total += r.Last - r.First + 1
	}
	return total
}

// IsEmpty tells whether the set has no slot at all.
func (s Slots) IsEmpty() bool { return len(s) == 0 }

// Contains tells whether the slot is in the set.
func (s Slots) Contains(slot int) bool {
	return slices.ContainsFunc(s, func(r SlotRange) bool { return r.First <= slot && slot <= r.Last })
}

// Equal tells whether both sets hold the same slots.
func (s Slots) Equal(other Slots) bool { return slices.Equal(s, other) }

// Union is the set of slots that are in either set.
func (s Slots) Union(other Slots) Slots {
	return NewSlots(slices.Concat(s, other)...)
}

// Minus is the set of slots that are in s and not in other.
func (s Slots) Minus(other Slots) Slots {
	rest := s
	for _, hole := range other {
		rest = rest.without(hole)
	}
	return rest
}

func (s Slots) without(hole SlotRange) Slots {
	var rest []SlotRange
	for _, r := range s {
		rest = append(rest,
			SlotRange{First: r.First, Last: min(r.Last, hole.First-1)},
			SlotRange{First: max(r.First, hole.Last+1), Last: r.Last})
	}
	return NewSlots(rest...)
}

// Intersect is the set of slots that are in both sets.
func (s Slots) Intersect(other Slots) Slots { return s.Minus(s.Minus(other)) }

// ShardSlots is the part of all slots that the given shard (counted from 0)
// of a fresh cluster serves: contiguous, ascending, sizes differing by one at
// most. A shard outside 0..shards-1 serves nothing.
func ShardSlots(shards, shard int) Slots {
	if shard < 0 || shard >= shards {
		return nil
	}
	return NewSlots(SlotRange{
		First: SlotCount * shard / shards,
		Last:  SlotCount*(shard+1)/shards - 1,
	})
}
