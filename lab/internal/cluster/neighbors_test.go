package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBoundsAreRaisedAndRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bounds{dir: dir, record: filepath.Join(dir, "record")}
	set := func(name, value string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when, name string, want int) {
		t.Helper()
		if got, err := b.read(name); err != nil || got != want {
			t.Errorf("%s, %s is %d (%v), want %d", when, name, got, err, want)
		}
	}
	set("low", "128\n")
	set("high", "9000\n")
	wanted := map[string]int{"low": 1000, "high": 1000}
	for range 2 { // the second time as after a lab that did not come to its end
		if err := b.raise(wanted); err != nil {
			t.Fatal(err)
		}
		expect("raised", "low", 1000)
		expect("raised", "high", 9000)
	}
	for range 2 { // the second time there is nothing to restore
		if err := b.restore(); err != nil {
			t.Fatal(err)
		}
		expect("restored", "low", 128)
		expect("restored", "high", 9000)
	}
	if err := b.raise(map[string]int{"absent": 1}); err == nil {
		t.Error("a setting that does not exist was raised")
	}
}
