package loopback

import (
	"context"
	"os"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultFS grows while mounted with CAP_SYS_ADMIN alone; ext4 takes
// CAP_SYS_RESOURCE too, which root in a sandbox often lacks.
const defaultFS = "xfs"

// maxVolumesPerNode is well above what a lab's node runs pods.
const maxVolumesPerNode = 128

// node is the driver's half on each node: devices, file systems and mounts.
type node struct {
	csi.UnimplementedNodeServer
	name string
	pool Pool
	mu   sync.Mutex // held while something is mounted or unmounted
}

func (n *node) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, _, err := n.pool.get(r.VolumeId)
	if err != nil {
		return nil, err
	}
	m := r.GetVolumeCapability().GetMount()
	if m == nil || r.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "a mount capability and a staging path are required")
	}
	if device, err := mountedFrom(r.StagingTargetPath); err != nil || device != "" {
		return &csi.NodeStageVolumeResponse{}, err
	}
	if err := n.stage(r.VolumeId, m, r.StagingTargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, n.own(v, r.StagingTargetPath)
}

func (n *node) stage(id string, m *csi.VolumeCapability_MountVolume, dir string) error {
	fstype := m.FsType
	if fstype == "" {
		fstype = defaultFS
	}
	device, hold, err := attachLoop(n.pool.image(id))
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	defer hold.Close() // the mount holds the device from here on
	if err := format(device, fstype); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	options := append([]string{"discard"}, m.MountFlags...)
	if fstype == "xfs" {
		options = append(options, "nouuid")
	}
	return run("mount", "-t", fstype, "-o", strings.Join(options, ","), device, dir)
}

// own gives the volume's root to the owner that the settings name.
func (n *node) own(v volume, dir string) error {
	s, _, err := n.pool.settings()
	if err == nil {
		if o := s.limits(v).RootOwner; o != nil {
			err = os.Chown(dir, o.UID, o.GID)
		}
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func unmount(dir string) error {
	device, err := mountedFrom(dir)
	if err != nil || device == "" {
		return err
	}
	return run("umount", dir)
}

func (n *node) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &csi.NodeUnstageVolumeResponse{}, unmount(r.StagingTargetPath)
}

func (n *node) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if device, err := mountedFrom(r.TargetPath); err != nil || device != "" {
		return &csi.NodePublishVolumeResponse{}, err
	}
	device, err := mountedFrom(r.StagingTargetPath)
	if err != nil {
		return nil, err
	}
	if device == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is not staged", r.VolumeId)
	}
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	options := "bind"
	if r.Readonly {
		options += ",ro"
	}
	return &csi.NodePublishVolumeResponse{}, run("mount", "-o", options, r.StagingTargetPath, r.TargetPath)
}

func (n *node) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := unmount(r.TargetPath); err != nil {
		return nil, err
	}
	if err := os.Remove(r.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume tells the loop device that its file has grown, then grows
// the mounted file system into it.
func (n *node) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, size, err := n.pool.get(r.VolumeId)
	if err != nil {
		return nil, err
	}
	dir := r.StagingTargetPath
	if dir == "" {
		dir = r.VolumePath
	}
	device, err := mountedFrom(dir)
	if err != nil {
		return nil, err
	}
	if device == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "nothing of ours is mounted at %s", dir)
	}
	if err := growDevice(device); err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, growFileSystem(device, dir)
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId: n.name, MaxVolumesPerNode: maxVolumesPerNode,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{topologyKey: n.name}},
	}, nil
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	out := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		out.Capabilities = append(out.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return out, nil
}
