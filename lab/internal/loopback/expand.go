package loopback

import (
	"context"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ControllerExpandVolume grows a volume's file. A growth that takes its time
// (expandDelay) goes on between calls: a caller that gave up finds it further
// on, or done, when it asks again.
func (c *controller) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	for {
		size, left, err := c.expand(r)
		if err != nil {
			return nil, err
		}
		if left <= 0 {
			return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// expand does what can be done now. It returns the volume's size, or how long
// the growth still takes.
func (c *controller) expand(r *csi.ControllerExpandVolumeRequest) (size int64, left time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, have, err := c.pool.get(r.VolumeId)
	if err != nil {
		return 0, 0, err
	}
	s, _, err := c.pool.settings()
	if err != nil {
		return 0, 0, status.Error(codes.Internal, err.Error())
	}
	limits := s.limits(v)
	size, err = sizeFor(r.CapacityRange, limits.RoundUp.Value())
	if err != nil || size <= have {
		return have, 0, err
	}
	if err := c.allowed(v, limits, size); err != nil {
		return 0, 0, err
	}
	if v.Expanding == nil || v.Expanding.Size != size {
		v.Expanding = &expansion{Size: size, Since: c.now()}
	}
	if left := v.Expanding.Since.Add(limits.ExpandDelay.Duration).Sub(c.now()); left > 0 {
		return 0, left, c.pool.put(r.VolumeId, v)
	}
	if err := c.pool.resize(r.VolumeId, size); err != nil {
		return 0, 0, err
	}
	v.Expanding, v.Grown = nil, append(v.Grown, c.now())
	return size, 0, c.pool.put(r.VolumeId, v)
}

// allowed checks a growth against everything that may forbid it.
func (c *controller) allowed(v volume, l Limits, size int64) error {
	if l.OfflineOnly != nil && *l.OfflineOnly && v.Node != "" {
		return status.Errorf(codes.FailedPrecondition, "the volume is attached to %s and grows only while it is not in use", v.Node)
	}
	if rate := l.ModificationsPerPeriod; rate != nil {
		recent := slices.DeleteFunc(slices.Clone(v.Grown), func(t time.Time) bool { return c.now().Sub(t) >= rate.Period.Duration })
		if len(recent) >= rate.N {
			// As a large cloud's driver words it, with the code it uses.
			return status.Errorf(codes.Internal, "VolumeModificationRateExceeded: %d modifications in %v are the limit; try again after %s",
				rate.N, rate.Period.Duration, recent[len(recent)-rate.N].Add(rate.Period.Duration).UTC().Format(time.RFC3339))
		}
	}
	return c.pool.room(v.Name, v, l, size)
}
