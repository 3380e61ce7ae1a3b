package loopback

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/klog/v2"
	pluginregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// DriverName is the driver's name in CSIDriver, StorageClass and volumes.
const DriverName = "loopback.csi.lab"

const topologyKey = "topology.loopback.csi.lab/node"

// ServeController serves the central half on a socket and, with a kubeconfig,
// provisions claims, until ctx ends.
func ServeController(ctx context.Context, pool Pool, socket, kubeconfig string) error {
	c := &controller{pool: pool, now: time.Now}
	if kubeconfig != "" {
		run, err := newProvisioner(kubeconfig, c)
		if err != nil {
			return err
		}
		go run(ctx)
	}
	s := newServer(pool)
	csi.RegisterIdentityServer(s, identity{})
	csi.RegisterControllerServer(s, c)
	return serve(ctx, s, socket)
}

// ServeNode serves a node's half on a socket and registers it with the kubelet
// that watches registrations, until ctx ends.
func ServeNode(ctx context.Context, pool Pool, name, socket, registrations string) error {
	n := &node{pool: pool, name: name}
	go n.keepFilled(ctx)
	s := newServer(pool)
	csi.RegisterIdentityServer(s, identity{})
	csi.RegisterNodeServer(s, n)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		r := grpc.NewServer()
		pluginregistration.RegisterRegistrationServer(r, registration{endpoint: socket})
		cancel(serve(ctx, r, filepath.Join(registrations, DriverName+"-reg.sock")))
	}()
	// A server that is stopped ends without an error: the cause may be the other's.
	return errors.Join(serve(ctx, s, socket), context.Cause(ctx))
}

// newServer acts out the faults that are set and logs each call that fails.
func newServer(pool Pool) *grpc.Server {
	return grpc.NewServer(grpc.UnaryInterceptor(
		func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			var response any
			err := pool.actOut(ctx, info.FullMethod, request)
			if err == nil {
				response, err = handle(ctx, request)
			}
			if err != nil {
				klog.ErrorS(err, info.FullMethod, "request", request)
				return nil, err
			}
			return response, nil
		}))
}

func serve(ctx context.Context, s *grpc.Server, socket string) error {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, s.Stop)
	defer stop()
	klog.InfoS("serving", "socket", socket)
	return s.Serve(l)
}

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: DriverName, VendorVersion: "1"}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := func(t csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

// registration answers the kubelet, which watches a directory for sockets of
// this API.
type registration struct {
	pluginregistration.UnimplementedRegistrationServer
	endpoint string
}

func (r registration) GetInfo(context.Context, *pluginregistration.InfoRequest) (*pluginregistration.PluginInfo, error) {
	return &pluginregistration.PluginInfo{
		Type: pluginregistration.CSIPlugin, Name: DriverName,
		Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (registration) NotifyRegistrationStatus(_ context.Context, s *pluginregistration.RegistrationStatus) (*pluginregistration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		klog.ErrorS(nil, "the kubelet refused the driver", "error", s.Error)
	}
	return &pluginregistration.RegistrationStatusResponse{}, nil
}
