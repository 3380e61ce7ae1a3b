package agent

import (
	"slices"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/agent/volume"
)

// space is what one look at the volume finds.
type space struct {
	disk protocol.Disk
	// free is what the file system says to be available now, in bytes.
	free int64
	// ballast is what is in place of it, reserve what is to be in place.
	ballast, reserve int64
}

// measure looks at the volume. The part of the reserve that is not in place is
// told as used: what is left of it is for the server's last words alone.
func (c Config) measure(now time.Time) (space, error) {
	disk, err := volume.Disk(c.Data, now)
	if err != nil {
		return space{}, err
	}
	found := space{disk: disk, free: disk.AvailableBytes, reserve: c.reserve(disk.TotalBytes)}
	if found.reserve > 0 {
		found.ballast = min(volume.Ballast(c.Data), found.reserve)
	}
	found.disk.AvailableBytes = max(0, found.free-(found.reserve-found.ballast))
	return found, nil
}

// reserve is how large the ballast shall be on a volume of so many bytes. A
// member that keeps nothing has no last words.
func (c Config) reserve(total int64) int64 {
	if c.Ephemeral {
		return 0
	}
	return min(volume.BallastSize(total), c.MostBallast)
}

// isTight says that the server is about to be unable to write. The last quarter
// of a reserve before the end is what it may write between two looks.
func (s space) isTight() bool {
	return s.reserve > 0 && s.disk.AvailableBytes <= s.reserve/4
}

// isAmple says that there is space to put the whole ballast in place, and as
// much again beside it: so much more than isTight asks for that the two do not
// take turns.
func (s space) isAmple() bool { return s.disk.AvailableBytes >= s.reserve }

// remember adds a sample to those of the last SampleInterval, the oldest of
// which is the newest that is as old as that. A newer one within the same
// second replaces the last.
func remember(samples []protocol.Disk, newest protocol.Disk) []protocol.Disk {
	if last := len(samples) - 1; last > 0 && newest.SampledAt.Sub(samples[last-1].SampledAt) < time.Second {
		samples = samples[:last]
	}
	samples = append(samples, newest)
	for len(samples) > 1 && newest.SampledAt.Sub(samples[1].SampledAt) >= protocol.SampleInterval {
		samples = samples[1:]
	}
	return samples
}

// twoSamples are the newest sample and the one a SampleInterval before it, nil
// where there is none yet.
func twoSamples(samples []protocol.Disk) (newest, before *protocol.Disk) {
	if len(samples) == 0 {
		return nil, nil
	}
	newest = &samples[len(samples)-1]
	if newest.SampledAt.Sub(samples[0].SampledAt) >= protocol.SampleInterval {
		before = &samples[0]
	}
	return newest, before
}

const (
	// minutesKept is for how many minutes the use of the volume is remembered.
	minutesKept = 60
	// lowMinutes is within how many minutes a rewrite is expected to end and
	// leave the use at its lowest.
	lowMinutes = 5
)

// lows are the least bytes in use of each of the last minutes, oldest first.
type lows struct {
	minutes []int64
	began   time.Time // when the last minute began
}

// note takes one look into account.
func (l *lows) note(used int64, now time.Time) {
	if last := len(l.minutes) - 1; last >= 0 && now.Sub(l.began) < time.Minute {
		l.minutes[last] = min(l.minutes[last], used)
		return
	}
	l.began = now
	l.minutes = append(l.minutes, used)
	if len(l.minutes) > minutesKept {
		l.minutes = l.minutes[1:]
	}
}

// growth is by how much the lowest use of the newest minutes is above that of
// the oldest ones. Use goes up and down with each rewrite: only its low points
// can be compared.
func (l *lows) growth() int64 {
	window := min(lowMinutes, len(l.minutes)/2)
	if window == 0 {
		return 0
	}
	newest := slices.Min(l.minutes[len(l.minutes)-window:])
	return max(0, newest-slices.Min(l.minutes[:window]))
}
