package loopback

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"
)

const mib = 1 << 20

func create(c *controller, id string, size int64, class map[string]string) error {
	_, err := c.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
		Name: id, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, Parameters: class,
		VolumeCapabilities: []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}},
	})
	return err
}

func grow(ctx context.Context, c *controller, id string, size int64) (int64, error) {
	r, err := c.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: size}})
	return r.GetCapacityBytes(), err
}

func attach(t *testing.T, c *controller, id, node string) {
	t.Helper()
	if _, err := c.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node}); err != nil {
		t.Fatal(err)
	}
}

func detach(t *testing.T, c *controller, id, node string) {
	t.Helper()
	if _, err := c.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node}); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}

func newController(t *testing.T, settings string) *controller {
	t.Helper()
	return &controller{pool: pool(t, settings), now: time.Now}
}

func TestSizesAreRoundedUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		request := rapid.Int64Range(0, 1<<40).Draw(t, "request")
		unit := rapid.Int64Range(1, 1<<31).Draw(t, "unit")
		size, err := sizeFor(&csi.CapacityRange{RequiredBytes: request}, unit)
		if err != nil {
			t.Fatal(err)
		}
		if size < request || size < minVolume || size%unit != 0 {
			t.Fatalf("%d is no whole number of units of %d that holds %d", size, unit, request)
		}
		if size-unit >= max(request, minVolume) {
			t.Fatalf("%d is a unit more than %d needs", size, request)
		}
	})
}

func TestALimitBelowTheRoundedSizeIsOutOfRange(t *testing.T) {
	t.Parallel()
	_, err := sizeFor(&csi.CapacityRange{RequiredBytes: 100*mib + 1, LimitBytes: 100*mib + 2}, mib)
	wantCode(t, err, codes.OutOfRange)
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	const settings = `{"capacity": "1Gi", "maxVolume": "800Mi", "roundUp": "64Mi", "pools": {"other": {"capacity": "1Gi"}}}`
	for sentence, c := range map[string]struct {
		size int64
		want int64
		code codes.Code
	}{
		"a larger size":                     {200 * mib, 256 * mib, codes.OK},
		"the size it has":                   {128 * mib, 128 * mib, codes.OK},
		"a smaller size changes nothing":    {64 * mib, 128 * mib, codes.OK},
		"the last bytes of the pool":        {768 * mib, 768 * mib, codes.OK},
		"more than one volume may hold":     {801 * mib, 0, codes.OutOfRange},
		"more than the pool has room for":   {769 * mib, 0, codes.OutOfRange}, // 832Mi after rounding
		"more than it has with what is out": {790 * mib, 0, codes.OutOfRange},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			ctl := newController(t, settings)
			for id, class := range map[string]map[string]string{"a": nil, "b": nil, "elsewhere": {"pool": "other"}} {
				if err := create(ctl, id, 128*mib, class); err != nil {
					t.Fatal(err)
				}
			}
			got, err := grow(t.Context(), ctl, "a", c.size)
			wantCode(t, err, c.code)
			if got != c.want {
				t.Errorf("it holds %d, want %d", got, c.want)
			}
		})
	}
}

func TestAPoolPromisesNoMoreThanItHas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newController(t, `{"capacity": "512Mi"}`)
		for range rapid.IntRange(1, 12).Draw(rt, "calls") {
			id := fmt.Sprint("v", rapid.IntRange(0, 3).Draw(rt, "volume"))
			makeOrGrow(rt, c, id, rapid.Int64Range(1, 400*mib).Draw(rt, "size"))
			if c.pool.promised("", "") > 512*mib {
				rt.Fatal("more is promised than there is")
			}
		}
	})
}

// makeOrGrow asks for a volume of a size, and checks what came of it.
func makeOrGrow(t *rapid.T, c *controller, id string, size int64) {
	_, before, err := c.pool.get(id)
	if err != nil {
		err = create(c, id, size, nil)
	} else {
		_, err = grow(context.Background(), c, id, size)
	}
	_, after, _ := c.pool.get(id)
	if after < before {
		t.Fatalf("%s shrank from %d to %d", id, before, after)
	}
	if err == nil && after < size {
		t.Fatalf("%d promised, %d given", size, after)
	}
}

func TestAFullPoolIsWorthRetrying(t *testing.T) {
	t.Parallel()
	c := newController(t, `{}`)
	small := map[string]string{"pool": "small", "capacity": "512Mi"}
	if err := create(c, "a", 300*mib, small); err != nil {
		t.Fatal(err)
	}
	wantCode(t, create(c, "b", 300*mib, small), codes.ResourceExhausted)
	wantCode(t, create(c, "c", 300*mib, nil), codes.OK)
	_, err := grow(t.Context(), c, "a", 600*mib)
	wantCode(t, err, codes.ResourceExhausted)
	set(t, c.pool, `{"pools": {"small": {"capacity": "1Gi"}}}`)
	_, err = grow(t.Context(), c, "a", 600*mib)
	wantCode(t, err, codes.OK)
}

func TestOfflineOnlyGrowsWhatIsDetached(t *testing.T) {
	t.Parallel()
	c := newController(t, `{}`)
	if err := create(c, "a", 64*mib, map[string]string{"offlineOnly": "true"}); err != nil {
		t.Fatal(err)
	}
	attach(t, c, "a", "n1")
	_, err := grow(t.Context(), c, "a", 128*mib)
	wantCode(t, err, codes.FailedPrecondition)
	detach(t, c, "a", "n2") // another node's detach is not this one's
	_, err = grow(t.Context(), c, "a", 128*mib)
	wantCode(t, err, codes.FailedPrecondition)
	detach(t, c, "a", "n1")
	_, err = grow(t.Context(), c, "a", 128*mib)
	wantCode(t, err, codes.OK)
}

func TestAVolumeIsOnOneNode(t *testing.T) {
	t.Parallel()
	c := newController(t, `{}`)
	if err := create(c, "a", 64*mib, nil); err != nil {
		t.Fatal(err)
	}
	attach(t, c, "a", "n1")
	attach(t, c, "a", "n1")
	_, err := c.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "a", NodeId: "n2"})
	wantCode(t, err, codes.FailedPrecondition)
	_, err = c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "a"})
	wantCode(t, err, codes.FailedPrecondition)
	detach(t, c, "a", "n1")
	for range 2 {
		_, err = c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "a"})
		wantCode(t, err, codes.OK)
	}
}

func TestANameNeverLeadsOutOfThePool(t *testing.T) {
	t.Parallel()
	c := newController(t, `{}`)
	const outside = "../outside"
	wantCode(t, create(c, outside, 64*mib, nil), codes.InvalidArgument)
	_, err := c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: outside})
	wantCode(t, err, codes.InvalidArgument)
}

func TestAVolumeWhoseRecordIsSpoiltIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newController(t, `{}`)
	if err := create(c, "a", 64*mib, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.pool.record("a"), []byte("spoilt"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantCode(t, create(c, "a", 64*mib, nil), codes.Internal)
	_, err := c.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "a"})
	wantCode(t, err, codes.Internal)
	if b, err := os.ReadFile(c.pool.record("a")); err != nil || string(b) != "spoilt" {
		t.Errorf("the record is %q, %v", b, err)
	}
}

func TestModificationsAreLimitedInAPeriod(t *testing.T) {
	t.Parallel()
	c := newController(t, `{"modificationsPerPeriod": {"n": 2, "period": "6h"}}`)
	synctest.Test(t, func(t *testing.T) {
		if err := create(c, "a", 64*mib, nil); err != nil {
			t.Fatal(err)
		}
		step := func(size int64, want codes.Code) {
			t.Helper()
			_, err := grow(t.Context(), c, "a", size*mib)
			wantCode(t, err, want)
		}
		step(65, codes.OK)
		time.Sleep(time.Hour)
		step(66, codes.OK)
		step(67, codes.Internal)
		step(66, codes.OK) // no modification
		time.Sleep(5 * time.Hour)
		step(67, codes.OK)
		step(68, codes.Internal)
	})
}

func TestASlowGrowthGoesOnBetweenCalls(t *testing.T) {
	t.Parallel()
	c := newController(t, `{"expandDelay": "25s"}`)
	synctest.Test(t, func(t *testing.T) {
		if err := create(c, "a", 64*mib, nil); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for calls := 1; ; calls++ {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			got, err := grow(ctx, c, "a", 128*mib)
			cancel()
			if err == nil {
				if got != 128*mib || calls != 3 || time.Since(start) != 25*time.Second {
					t.Errorf("%d bytes after %d calls and %v", got, calls, time.Since(start))
				}
				break
			}
			wantCode(t, err, codes.DeadlineExceeded)
		}
	})
}
