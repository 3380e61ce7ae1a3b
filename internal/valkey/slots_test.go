package valkey

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseSlots(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text   string
		want   string
		failed bool
	}{
		"nothing is the empty set":                  {text: " ", want: ""},
		"one slot":                                  {text: "7", want: "7"},
		"ranges are sorted":                         {text: "7000 0-5460", want: "0-5460 7000"},
		"neighbours and overlaps become one":        {text: "0-3 4 5-9 8-12", want: "0-12"},
		"the last slot":                             {text: "16383", want: "16383"},
		"one beyond the last slot is refused":       {text: "16384", failed: true},
		"a range that runs backwards is refused":    {text: "9-3", failed: true},
		"a negative slot is refused":                {text: "-3", failed: true},
		"a word is refused":                         {text: "all", failed: true},
		"a range without an end is refused":         {text: "3-", failed: true},
		"a sign before the number is refused":       {text: "+3", failed: true},
		"more than a sixteen bit number is refused": {text: "99999999999999999999", failed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseSlots(test.text)
			if (err != nil) != test.failed {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func anySlots(t *rapid.T, label string) Slots {
	return NewSlots(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) SlotRange {
		first := rapid.IntRange(-5, SlotCount+5).Draw(t, "first")
		return SlotRange{First: first, Last: first + rapid.IntRange(-3, 2000).Draw(t, "length")}
	}), 0, 8).Draw(t, label)...)
}

func TestSlotsAreSets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anySlots(t, "a"), anySlots(t, "b")
		slot := rapid.IntRange(0, SlotCount-1).Draw(t, "slot")
		inA, inB := a.Contains(slot), b.Contains(slot)
		for _, law := range []struct {
			name      string
			got, want bool
		}{
			{"union", a.Union(b).Contains(slot), inA || inB},
			{"minus", a.Minus(b).Contains(slot), inA && !inB},
			{"intersect", a.Intersect(b).Contains(slot), inA && inB},
			{"counts", a.Union(b).Count() == a.Count()+b.Count()-a.Intersect(b).Count(), true},
			{"order of union", a.Union(b).Equal(b.Union(a)), true},
			{"nothing left of itself", a.Minus(a).IsEmpty(), true},
			{"empty has no slots", a.IsEmpty(), a.Count() == 0},
		} {
			if law.got != law.want {
				t.Errorf("%s: a %q, b %q, slot %d", law.name, a, b, slot)
			}
		}
		read, err := ParseSlots(a.String())
		if err != nil || !read.Equal(a) {
			t.Errorf("%q reads back as %q, %v", a, read, err)
		}
		checkForm(t, a.Minus(b))
	})
}

// checkForm holds a set to what the type promises: ascending, neither
// overlapping nor touching, within bounds.
func checkForm(t *rapid.T, slots Slots) {
	end := -2
	for _, r := range slots {
		if r.First <= end+1 || r.Last < r.First || r.Last >= SlotCount {
			t.Errorf("malformed set %q", slots)
		}
		end = r.Last
	}
}

func TestShardsShareAllSlots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.IntRange(1, 1000).Draw(t, "shards")
		var all Slots
		for shard := range shards {
			part := ShardSlots(shards, shard)
			if !all.Intersect(part).IsEmpty() {
				t.Errorf("shard %d of %d has slots of another", shard, shards)
			}
			if extra := part.Count() - SlotCount/shards; len(part) != 1 || extra < 0 || extra > 1 {
				t.Errorf("shard %d of %d has %s", shard, shards, part)
			}
			all = all.Union(part)
		}
		if !all.Equal(AllSlots()) {
			t.Errorf("%d shards cover only %s", shards, all)
		}
	})
}

func TestShardThatIsNotThereServesNothing(t *testing.T) {
	t.Parallel()
	for _, shard := range []int{-1, 3, 4} {
		if slots := ShardSlots(3, shard); !slots.IsEmpty() {
			t.Errorf("shard %d of 3 has %s", shard, slots)
		}
	}
}

func TestKeySlot(t *testing.T) {
	t.Parallel()
	// The first is the check value of the checksum's own definition, the others
	// were asked from a server by CLUSTER KEYSLOT.
	for key, want := range map[string]int{
		"123456789": 0x31c3, "": 0, "foo": 12182, "{a}b": 15495, "foo{}{bar}": 8363, "foo{bar": 15278, "{foo}.1": 12182,
	} {
		if got := KeySlot(key); got != want {
			t.Errorf("%q is in slot %d, not %d", key, got, want)
		}
	}
}

func FuzzParseSlots(f *testing.F) {
	for _, seed := range []string{"", "0-5460 7000", "16383", "5-1", "1-2-3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slots, err := ParseSlots(text)
		if err != nil {
			return
		}
		again, err := ParseSlots(slots.String())
		if err != nil || !again.Equal(slots) {
			t.Errorf("%q reads back as %q, %v", slots, again, err)
		}
	})
}
