package loopback

import (
	"context"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// minVolume is what the smallest file system needs.
	minVolume = 16 << 20

	// Parameters of a StorageClass beside the limits.
	scopeParameter = "scope" // "node": a volume is reachable only from the node it was made for
	poolParameter  = "pool"  // volumes of the same pool share its capacity

	// What the provisioner says of the claim, by the names csi-provisioner uses.
	claimNameParameter      = "csi.storage.k8s.io/pvc/name"
	claimNamespaceParameter = "csi.storage.k8s.io/pvc/namespace"
)

// controller is the driver's central half: it makes, attaches and grows
// volumes, and knows nothing of mounts.
type controller struct {
	csi.UnimplementedControllerServer
	pool Pool
	now  func() time.Time
	mu   sync.Mutex // held while volumes are read and written
}

// sizeFor rounds a request up to whole units and checks it against its limit.
func sizeFor(r *csi.CapacityRange, unit int64) (int64, error) {
	size := max(r.GetRequiredBytes(), minVolume)
	size = (size + unit - 1) / unit * unit
	if l := r.GetLimitBytes(); l > 0 && size > l {
		return 0, status.Errorf(codes.OutOfRange, "%d bytes needed, the limit is %d", size, l)
	}
	return size, nil
}

func (c *controller) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := newVolume(r)
	if err != nil {
		return nil, err
	}
	s, _, err := c.pool.settings()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	limits := s.limits(v)
	size, err := sizeFor(r.CapacityRange, limits.RoundUp.Value())
	if err != nil {
		return nil, err
	}
	old, have, err := c.pool.get(v.Name)
	switch {
	case err == nil && have < size:
		return nil, status.Errorf(codes.AlreadyExists, "%s exists with %d bytes", v.Name, have)
	case err == nil:
		v, size = old, have
	case status.Code(err) == codes.NotFound:
		err = c.create(v, limits, size)
	}
	if err != nil {
		return nil, err
	}
	out := &csi.Volume{VolumeId: v.Name, CapacityBytes: size}
	if v.Pinned != "" {
		out.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{topologyKey: v.Pinned}}}
	}
	return &csi.CreateVolumeResponse{Volume: out}, nil
}

func (c *controller) create(v volume, limits Limits, size int64) error {
	if err := c.pool.room("", v, limits, size); err != nil {
		return err
	}
	if err := c.pool.put(v.Name, v); err != nil {
		return err
	}
	return c.pool.resize(v.Name, size)
}

func newVolume(r *csi.CreateVolumeRequest) (volume, error) {
	if r.Name == "" || len(r.VolumeCapabilities) == 0 {
		return volume{}, status.Error(codes.InvalidArgument, "name and capabilities are required")
	}
	for _, capability := range r.VolumeCapabilities {
		if capability.GetBlock() != nil {
			return volume{}, status.Error(codes.InvalidArgument, "block volumes are not supported")
		}
	}
	limits, err := classLimits(r.Parameters)
	if err != nil {
		return volume{}, status.Error(codes.InvalidArgument, err.Error())
	}
	v := volume{
		Name: r.Name, Claim: claimOf(r.Parameters), FSType: r.VolumeCapabilities[0].GetMount().GetFsType(),
		Pool: r.Parameters[poolParameter], Limits: limits,
	}
	if t := r.GetAccessibilityRequirements().GetPreferred(); len(t) > 0 && r.Parameters[scopeParameter] == "node" {
		v.Pinned = t[0].Segments[topologyKey]
	}
	return v, nil
}

// claimOf is the claim that a volume is made for, as NAMESPACE/NAME.
func claimOf(parameters map[string]string) string {
	if name := parameters[claimNameParameter]; name != "" {
		return parameters[claimNamespaceParameter] + "/" + name
	}
	return ""
}

func (c *controller) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, _, err := c.pool.get(r.VolumeId)
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	if err == nil && v.Node != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is attached to %s", r.VolumeId, v.Node)
	}
	return &csi.DeleteVolumeResponse{}, c.pool.remove(r.VolumeId)
}

func (c *controller) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, _, err := c.pool.get(r.VolumeId)
	switch {
	case err != nil:
		return nil, err
	case v.Node != "" && v.Node != r.NodeId:
		return nil, status.Errorf(codes.FailedPrecondition, "%s is attached to %s", r.VolumeId, v.Node)
	case v.Pinned != "" && v.Pinned != r.NodeId:
		return nil, status.Errorf(codes.FailedPrecondition, "%s lives on %s", r.VolumeId, v.Pinned)
	}
	v.Node = r.NodeId
	return &csi.ControllerPublishVolumeResponse{}, c.pool.put(r.VolumeId, v)
}

func (c *controller) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, _, err := c.pool.get(r.VolumeId)
	if err != nil || r.NodeId != "" && v.Node != r.NodeId {
		return &csi.ControllerUnpublishVolumeResponse{}, nil // attached there no more
	}
	v.Node = ""
	return &csi.ControllerUnpublishVolumeResponse{}, c.pool.put(r.VolumeId, v)
}

func (c *controller) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, _, err := c.pool.get(r.VolumeId); err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: r.VolumeCapabilities,
	}}, nil
}

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	out := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		out.Capabilities = append(out.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return out, nil
}
