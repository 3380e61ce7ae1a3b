package volume

import (
	"errors"
	"testing"
)

// record is a file that only notes what is written to it.
type record struct {
	from, end int64
	largest   int
	full      bool
}

func (r *record) WriteAt(text []byte, at int64) (int, error) {
	if r.full || at != r.end {
		return 0, errors.New("no space here")
	}
	r.end += int64(len(text))
	r.largest = max(r.largest, len(text))
	return len(text), nil
}

// Where a file system cannot reserve space, the ballast is written, without
// taking as much memory.
func TestWriteZeros(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]int64{"less than a block": 7, "blocks": 3 * zeros, "blocks and a bit": 16<<20 + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := &record{from: 5, end: 5}
			if err := writeZeros(file, file.from, count); err != nil {
				t.Fatal(err)
			}
			if file.end-file.from != count || file.largest > zeros {
				t.Errorf("%d bytes were written, %d at a time", file.end-file.from, file.largest)
			}
		})
	}
	if err := writeZeros(&record{full: true}, 0, 1); err == nil {
		t.Error("no error on a full disk")
	}
}
