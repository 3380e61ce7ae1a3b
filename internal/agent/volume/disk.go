package volume

import (
	"fmt"
	"syscall"
	"time"

	"valkey.io/valkey-operator/internal/agent/protocol"
)

// Disk is the use of the file system that the data lies on, as of now. What is
// available is what a process without privileges may still write.
func Disk(data string, now time.Time) (protocol.Disk, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(data, &stat); err != nil {
		return protocol.Disk{}, fmt.Errorf("reading the use of the volume: %w", err)
	}
	// Blocks are counted in fragments where a file system has them.
	unit := stat.Frsize
	if unit == 0 {
		unit = stat.Bsize
	}
	return protocol.Disk{
		TotalBytes:     int64(stat.Blocks) * unit,
		AvailableBytes: int64(stat.Bavail) * unit,
		TotalInodes:    int64(stat.Files),
		FreeInodes:     int64(stat.Ffree),
		SampledAt:      now,
	}, nil
}
