package cluster

import (
	"strings"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/state"
)

const (
	// samplePatience is how much older than its agent's own interval a sample may
	// be: an agent whose worker is busy is late, clocks of two machines differ, and
	// a pass takes the seconds of its slowest server.
	samplePatience = 10 * time.Second
	// oldestSample is how old the older of two looks in a row may be.
	oldestSample = 2*protocol.SampleInterval + samplePatience
)

// A file system is smaller than its volume by what it keeps for itself: ext4 by
// 15 percent of 64Mi, 5 of 1Gi and 3 of 10Gi, xfs by a log of 64Mi from its
// smallest volume, 300Mi, on. The agent's reserve of up to 5 percent may be left
// out of the total, too. One that has yet to grow by its increment misses more.
const (
	overheadShare = 0.10
	overheadBytes = 64 << 20
	overheadLimit = 0.30
	// excessShare is by how much a file system may seem larger than its claim:
	// drivers round up, and may tell the claim the smaller number.
	excessShare = 0.10
)

// use is how full a volume is, as far as two looks in a row say.
type use struct {
	total, used, available float64 // bytes, of the newer look
	// percent is of bytes or inodes, whichever is more, and peak what it comes to
	// while the next rewrite is being written; of two looks, the lower ones.
	percent, peak float64
	next          float64 // bytes of the next rewrite
}

// useOf is the use of a member's volume. It is unknown, with the reason, unless
// both looks of its agent are fresh and can be true of its claim's volume.
func useOf(in Input, member state.Member) state.Fact[use] {
	if !member.Agent.Known {
		return state.Unknown[use]("its agent does not answer")
	}
	facts := member.Agent.Value
	if facts.Disk == nil || facts.DiskBefore == nil || !facts.DiskBefore.SampledAt.Before(facts.Disk.SampledAt) {
		return state.Unknown[use]("its agent has yet to look twice")
	}
	for _, disk := range []protocol.Disk{*facts.DiskBefore, *facts.Disk} {
		if why := distrust(in, member, disk); why != "" {
			return state.Unknown[use](why)
		}
	}
	before, now := percentOf(*facts.DiskBefore), percentOf(*facts.Disk)
	seen := use{
		total: float64(facts.Disk.TotalBytes), available: float64(facts.Disk.AvailableBytes),
		percent: min(before, now),
	}
	seen.used = seen.total - seen.available
	seen.next = nextBytes(facts.Files, seen.used)
	seen.peak = max(seen.percent, min(peakOf(*facts.DiskBefore, seen.next), peakOf(*facts.Disk, seen.next)))
	return state.Seen(seen)
}

// distrust says why a look is not believed; empty when it is.
func distrust(in Input, member state.Member, disk protocol.Disk) string {
	age := in.State.Now.Sub(disk.SampledAt)
	if age > oldestSample || age < -samplePatience {
		return "its agent's look at it is not of now; is the agent's worker, or a clock, behind?"
	}
	if disk.TotalBytes <= 0 || disk.AvailableBytes < 0 || disk.AvailableBytes > disk.TotalBytes {
		return "its agent tells sizes that cannot be true"
	}
	if member.Claim == nil || member.Claim.Capacity.Sign() <= 0 {
		return "its claim has no volume yet"
	}
	capacity, total := member.Claim.Capacity.AsApproximateFloat64(), float64(disk.TotalBytes)
	switch {
	case sharesFileSystem(member, disk):
		return "its file system is larger than the volume, so others share it, and growing the claim gives it nothing"
	case capacity-total > min(capacity*overheadLimit, capacity*overheadShare+overheadBytes):
		return "its file system has not grown to the volume's size yet"
	}
	return ""
}

// sharesFileSystem says whether the file system is larger than the member's
// volume: then it is a worker's disk or a server's share, and others fill it too.
func sharesFileSystem(member state.Member, disk protocol.Disk) bool {
	return member.Claim != nil && member.Claim.Capacity.Sign() > 0 &&
		float64(disk.TotalBytes) > member.Claim.Capacity.AsApproximateFloat64()*(1+excessShare)
}

// percentOf is the use of bytes or inodes, whichever is more. A file system that
// counts no inodes, or tells numbers of them that cannot be true, is judged by its bytes.
func percentOf(disk protocol.Disk) float64 {
	percent := 100 * float64(disk.TotalBytes-disk.AvailableBytes) / float64(disk.TotalBytes)
	if disk.TotalInodes > 0 && disk.FreeInodes >= 0 && disk.FreeInodes <= disk.TotalInodes {
		percent = max(percent, 100*float64(disk.TotalInodes-disk.FreeInodes)/float64(disk.TotalInodes))
	}
	return percent
}

func peakOf(disk protocol.Disk, next float64) float64 {
	return 100 * (float64(disk.TotalBytes-disk.AvailableBytes) + next) / float64(disk.TotalBytes)
}

// nextBytes is what the next rewrite is expected to take. It holds what is in
// memory, or else on the disk: a number beyond both is not believed.
func nextBytes(files *protocol.Files, used float64) float64 {
	if files == nil || files.NextBytes <= 0 {
		return 0
	}
	next := float64(files.NextBytes)
	if next > used+max(0, float64(files.UsedMemoryBytes)) {
		return 0
	}
	return next
}

// hourlyGrowth is by how many bytes the use grew within an hour; more than
// there is in all is not believed.
func hourlyGrowth(files *protocol.Files, used float64) float64 {
	if files == nil || files.GrowthBytes <= 0 || float64(files.GrowthBytes) > used {
		return 0
	}
	return float64(files.GrowthBytes)
}

// outOfSpace says whether a member's server shows that its volume has no room
// left, which needs no numbers to be believed. Where they are known and tell of
// room, the cause is another one, and no size would mend it.
func outOfSpace(in Input, member state.Member) bool {
	if !member.Agent.Known {
		return false
	}
	facts, seen := member.Agent.Value, useOf(in, member)
	if facts.Disk != nil && sharesFileSystem(member, *facts.Disk) {
		return false
	}
	if seen.Known && seen.Value.peak < ThresholdPercent(in.Spec) {
		return false
	}
	return serverLacksSpace(facts, seen) || startLacksSpace(facts)
}

// serverLacksSpace says whether a server told lately that it cannot write its
// log, or could not rewrite it for lack of room.
func serverLacksSpace(facts protocol.Facts, seen state.Fact[use]) bool {
	if facts.Files == nil || facts.AgeMillis > oldestSample.Milliseconds() {
		return false
	}
	return facts.Files.WriteFailed || facts.Files.RewriteFailed && seen.Known && seen.Value.available < seen.Value.next
}

// startLacksSpace says whether a server is down because its disk is full: its
// agent knows, or quotes the system's own words for ENOSPC.
func startLacksSpace(facts protocol.Facts) bool {
	if facts.Server == protocol.ServerRunning || facts.Server == protocol.ServerLoading {
		return false
	}
	return facts.Decision == protocol.DecisionVolumeFull || strings.Contains(strings.ToLower(facts.Message), "no space left on device")
}

// leastAvailable is the share of a file system below which a failed write is
// taken to lack space. The agent may just have given back its reserve of as much.
const leastAvailable = 0.05

// DiskFull says whether a member's server refuses writes, or does not start,
// because its volume has no space left.
func DiskFull(member state.Member) bool {
	if !member.Agent.Known {
		return false
	}
	facts := member.Agent.Value
	if startLacksSpace(facts) {
		return true
	}
	return facts.Files != nil && facts.Files.WriteFailed && facts.Disk != nil && facts.Disk.TotalBytes > 0 &&
		float64(facts.Disk.AvailableBytes) < leastAvailable*float64(facts.Disk.TotalBytes)
}

// NearlyFull says whether a member's volume is filled to the threshold, and
// whether that is known. One that was told to be must fall a little below it first.
func NearlyFull(in Input, member state.Member, told bool) (full, known bool) {
	settings := settingsOf(in.Spec)
	if told {
		settings.threshold -= easedPercent
	}
	seen := useOf(in, member)
	return seen.Known && seen.Value.percent >= settings.threshold, seen.Known
}

// farAway is from when on a prediction of a full volume is none.
const farAway = 365 * 24 // hours

// TimeToFull is when a volume will be full if it goes on to fill up as within
// the last hour, by its agent's word; unknown while it does not, or not within a year.
func TimeToFull(facts protocol.Facts) (time.Duration, bool) {
	if facts.Disk == nil || facts.Disk.TotalBytes <= 0 {
		return 0, false
	}
	hourly := hourlyGrowth(facts.Files, float64(facts.Disk.TotalBytes-facts.Disk.AvailableBytes))
	if hourly == 0 {
		return 0, false
	}
	hours := float64(max(0, facts.Disk.AvailableBytes)) / hourly
	return time.Duration(hours * float64(time.Hour)), hours < farAway
}
