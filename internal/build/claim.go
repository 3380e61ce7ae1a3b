package build

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// Member is what the objects of one member are built from.
type Member struct {
	Namespace string
	// Name and UID are the ValkeyNode's, which owns the workload.
	Name, UID string
	// ClusterUID is the ValkeyCluster's, which owns the claim if it shall go
	// with the cluster.
	ClusterUID string
	// Shape of the cluster, for example 3x1.
	Shape string
	Spec  v1alpha1.ValkeyNodeSpec
	// GraceSeconds is how long the pod has to end before it is killed, unless the
	// user says; 0: LeastGrace.
	GraceSeconds int64
}

// Labels stand on each object of the member.
func (m Member) Labels() map[string]string {
	return name.NodeLabels(m.Spec.ClusterName, int(m.Spec.Shard), int(m.Spec.Node))
}

// ClaimAnnotations stand on the member's claim from its birth.
func (m Member) ClaimAnnotations() map[string]string {
	return map[string]string{
		name.AnnotationClusterID: m.Spec.ClusterID,
		name.AnnotationShape:     m.Shape,
	}
}

// Claim is the member's claim at its birth. Its size is changed by a planned
// action only, never by building it again.
func Claim(member Member) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	storage := member.Spec.Storage
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(accessModes(storage.AccessModes)...).
		WithVolumeMode(corev1.PersistentVolumeFilesystem)
	if storage.Size != nil {
		spec.WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: *storage.Size}))
	}
	if storage.StorageClassName != nil {
		spec.WithStorageClassName(*storage.StorageClassName)
	}
	claim := corev1ac.PersistentVolumeClaim(storage.ClaimName, member.Namespace).
		WithLabels(member.Labels()).
		WithAnnotations(member.ClaimAnnotations()).
		WithSpec(spec)
	if storage.Retention.WhenDeleted == v1alpha1.RetentionDelete {
		claim.WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(v1alpha1.GroupVersion.String()).
			WithKind("ValkeyCluster").
			WithName(member.Spec.ClusterName).
			WithUID(types.UID(member.ClusterUID)).
			WithController(false).
			WithBlockOwnerDeletion(false))
	}
	return claim
}

func accessModes(wanted []v1alpha1.VolumeAccessMode) []corev1.PersistentVolumeAccessMode {
	if len(wanted) == 0 {
		return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	modes := make([]corev1.PersistentVolumeAccessMode, 0, len(wanted))
	for _, mode := range wanted {
		modes = append(modes, corev1.PersistentVolumeAccessMode(mode))
	}
	return modes
}

// NodeReference makes an object the ValkeyNode's own.
func NodeReference(member Member) metav1.OwnerReference {
	return controllerReference("ValkeyNode", member.Name, member.UID)
}

func ownedByNode(member Member) *metav1ac.OwnerReferenceApplyConfiguration {
	return configurationOf[metav1ac.OwnerReferenceApplyConfiguration](NodeReference(member))
}

// workloadSelector selects the member's pod.
func workloadSelector(member Member) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(
		name.NodeSelector(member.Spec.ClusterName, int(member.Spec.Shard), int(member.Spec.Node)))
}
