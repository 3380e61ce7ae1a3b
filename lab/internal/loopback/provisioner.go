package loopback

import (
	"context"
	"maps"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	provision "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const fsTypeParameter = "csi.storage.k8s.io/fstype"

// provisioner turns claims into CreateVolume calls, as csi-provisioner does.
// It sits in the driver's process, not behind its socket.
type provisioner struct{ controller *controller }

// newProvisioner returns the loop that serves claims.
func newProvisioner(kubeconfig string, c *controller) (run func(context.Context), err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// Its own defaults are made for one pod among many; a test waits for it.
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		provision.NewProvisionController(ctx, client, DriverName, &provisioner{c},
			provision.LeaderElection(false),
			provision.FailedProvisionThreshold(0), provision.FailedDeleteThreshold(0),
			provision.RetryIntervalMax(15*time.Second),
			provision.AddFinalizer(true),
		).Run(ctx)
	}, nil
}

// Provision makes a volume for a claim.
func (p *provisioner) Provision(ctx context.Context, o provision.ProvisionOptions) (*corev1.PersistentVolume, provision.ProvisioningState, error) {
	request := createRequest(o)
	err := p.controller.pool.actOut(ctx, "CreateVolume", request)
	var response *csi.CreateVolumeResponse
	if err == nil {
		response, err = p.controller.CreateVolume(ctx, request)
	}
	if err != nil {
		if status.Code(err) == codes.ResourceExhausted && o.SelectedNodeName != "" {
			// Let the scheduler choose again, as csi-provisioner does.
			return nil, provision.ProvisioningReschedule, err
		}
		return nil, provision.ProvisioningFinished, err
	}
	return persistentVolume(o, request, response.Volume), provision.ProvisioningFinished, nil
}

func createRequest(o provision.ProvisionOptions) *csi.CreateVolumeRequest {
	parameters := maps.Clone(o.StorageClass.Parameters)
	if parameters == nil {
		parameters = map[string]string{}
	}
	fstype := parameters[fsTypeParameter]
	if fstype == "" {
		fstype = defaultFS
	}
	delete(parameters, fsTypeParameter)
	parameters[claimNameParameter], parameters[claimNamespaceParameter] = o.PVC.Name, o.PVC.Namespace
	want := o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	request := &csi.CreateVolumeRequest{
		Name:          o.PVName,
		CapacityRange: &csi.CapacityRange{RequiredBytes: want.Value()},
		Parameters:    parameters,
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fstype}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	}
	if o.SelectedNodeName != "" {
		request.AccessibilityRequirements = &csi.TopologyRequirement{
			Preferred: []*csi.Topology{{Segments: map[string]string{topologyKey: o.SelectedNodeName}}},
		}
	}
	return request
}

func persistentVolume(o provision.ProvisionOptions, request *csi.CreateVolumeRequest, v *csi.Volume) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			MountOptions:                  o.StorageClass.MountOptions,
			VolumeMode:                    o.PVC.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(v.CapacityBytes, resource.BinarySI)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: DriverName, VolumeHandle: v.VolumeId, FSType: request.VolumeCapabilities[0].GetMount().FsType,
			}},
		},
	}
	var terms []corev1.NodeSelectorTerm
	for _, t := range v.AccessibleTopology {
		term := corev1.NodeSelectorTerm{}
		for key, value := range t.Segments {
			term.MatchExpressions = append(term.MatchExpressions,
				corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		}
		terms = append(terms, term)
	}
	if len(terms) > 0 {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return pv
}

// Delete removes a volume whose claim is gone.
func (p *provisioner) Delete(ctx context.Context, pv *corev1.PersistentVolume) error {
	request := &csi.DeleteVolumeRequest{VolumeId: pv.Spec.CSI.VolumeHandle}
	if err := p.controller.pool.actOut(ctx, "DeleteVolume", request); err != nil {
		return err
	}
	_, err := p.controller.DeleteVolume(ctx, request)
	return err
}
