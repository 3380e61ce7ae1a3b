package volume_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"valkey.io/valkey-operator/internal/agent/volume"
)

func TestBallastSize(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ total, want int64 }{
		"an unknown volume has none":      {0, 0},
		"a tiny one gives up a twentieth": {64 << 20, (64 << 20) / 20},
		"a small one has the least":       {1 << 30, 16 << 20},
		"a middling one a hundredth":      {10 << 30, (10 << 30) / 100},
		"a large one has the most":        {1 << 40, 256 << 20},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := volume.BallastSize(test.total); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestBallastTakesRealSpace(t *testing.T) {
	t.Parallel()
	const size, step = 3 << 20, 2 << 20
	data := lay(t, map[string]string{".valkey-operator/identity.json": ""})
	for _, want := range []int64{step, size, size} {
		must(t, volume.AddBallast(data, size, step))
		if got := volume.Ballast(data); got != want {
			t.Fatalf("the ballast has %d bytes, want %d", got, want)
		}
	}
	info, err := os.Stat(filepath.Join(data, ".valkey-operator", "ballast"))
	must(t, err)
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Blocks*512 < size {
		t.Errorf("it takes %d blocks, want at least %d bytes", stat.Blocks, size)
	}
	for _, want := range []bool{true, false} {
		released, err := volume.ReleaseBallast(data)
		must(t, err)
		if released != want {
			t.Errorf("released: %t, want %t", released, want)
		}
	}
	if got := volume.Ballast(data); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
}

func TestBallastThatCannotBeMade(t *testing.T) {
	t.Parallel()
	if err := volume.AddBallast(filepath.Join(t.TempDir(), "missing"), 1, 1); err == nil {
		t.Error("no error without a volume")
	}
}
