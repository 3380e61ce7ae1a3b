package loopback

import (
	"context"
	"errors"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
)

// StatsRule changes the statistics of the volumes that match.
type StatsRule struct {
	Match   string `json:"match,omitempty"`
	Missing bool   `json:"missing,omitempty"` // fail instead
	// Capacity and Used replace what was measured.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	Used     *resource.Quantity `json:"used,omitempty"`
}

func (r StatsRule) validate() error {
	if !r.Missing && r.Capacity == nil && r.Used == nil {
		return errors.New("a rule of stats needs missing, capacity or used")
	}
	return nil
}

func (r StatsRule) apply(u *csi.VolumeUsage) error {
	if r.Missing {
		return status.Error(codes.Unavailable, "statistics are switched off in pool.json")
	}
	if r.Capacity != nil {
		u.Total = r.Capacity.Value()
	}
	if r.Used != nil {
		u.Used = r.Used.Value()
	}
	u.Available = max(0, u.Total-u.Used)
	return nil
}

// NodeGetVolumeStats measures the file system, and answers what the settings say instead.
func (n *node) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(r.VolumePath, &st); err != nil {
		return nil, status.Errorf(codes.NotFound, "%s: %v", r.VolumePath, err)
	}
	block := st.Bsize
	bytes := &csi.VolumeUsage{
		Unit: csi.VolumeUsage_BYTES, Total: int64(st.Blocks) * block,
		Available: int64(st.Bavail) * block, Used: int64(st.Blocks-st.Bfree) * block,
	}
	inodes := &csi.VolumeUsage{
		Unit: csi.VolumeUsage_INODES, Total: int64(st.Files),
		Available: int64(st.Ffree), Used: int64(st.Files - st.Ffree),
	}
	s, _, err := n.pool.settings()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	for _, rule := range s.Stats {
		if strings.Contains(n.pool.describe(r), rule.Match) {
			if err := rule.apply(bytes); err != nil {
				return nil, err
			}
			break
		}
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{bytes, inodes}}, nil
}
