package valkeytest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMemoryIsKeptInBytes(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{"0": "0", "100": "100", "1kb": "1024", "2k": "2000", "3MB": "3145728", "1gb": "1073741824"} {
		if kept, err := Memory(written); err != nil || kept != want {
			t.Errorf("%s is kept as %q (%v), want %s", written, kept, err, want)
		}
	}
	for _, wrong := range []string{"", "kb", "1bb", "-1", "many", "1.5gb"} {
		if kept, err := Memory(wrong); err == nil {
			t.Errorf("%q is kept as %s", wrong, kept)
		}
	}
}

func TestSettingsLastUntilTheProcessEndsAndFilesForEver(t *testing.T) {
	t.Parallel()
	c := New(Options{Settings: map[string]Setting{"hz": {Value: "10", Read: Integer(1, 500)}}})
	n := c.Add("10.0.0.1:6379")
	value := func() string {
		value, _, err := connect(t, n).ConfigGet(t.Context(), "hz")
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	restart := func(written map[string]string) {
		n.Kill()
		n.Start(Start{Settings: written})
	}
	said := []string{value()}
	if err := connect(t, n).ConfigSet(t.Context(), "hz", "20"); err != nil {
		t.Fatal(err)
	}
	said = append(said, value())
	restart(nil)
	said = append(said, value())
	restart(map[string]string{"hz": "30"})
	said = append(said, value())
	restart(nil)
	said = append(said, value())
	if diff := cmp.Diff([]string{"10", "20", "10", "30", "30"}, said); diff != "" {
		t.Error(diff)
	}
	restart(map[string]string{"hz": "often"})
	if n.Running() {
		t.Error("a server runs with a setting that it does not take")
	}
}
