package build

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// Cluster is what builders need to know of a ValkeyCluster.
type Cluster struct {
	Namespace string
	Name      string
	UID       string
	// ID is the identity of the data.
	ID   string
	Spec v1alpha1.ValkeyClusterSpec
	// AgentImage is the image that new members copy their agent from.
	AgentImage string
	// ConfigRevision names the file of settings that members are started on.
	ConfigRevision string
}

func (c Cluster) owner() *metav1ac.OwnerReferenceApplyConfiguration {
	return configurationOf[metav1ac.OwnerReferenceApplyConfiguration](OwnerReference(c))
}

// OwnerReference makes an object the cluster's own.
func OwnerReference(c Cluster) metav1.OwnerReference {
	return controllerReference("ValkeyCluster", c.Name, c.UID)
}

func controllerReference(kind, owner, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: owner, UID: types.UID(uid),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// Service leads clients to the members that are ready.
func Service(c Cluster) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name.Service(c.Name), c.Namespace).
		WithLabels(name.ClusterLabels(c.Name)).
		WithOwnerReferences(c.owner()).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(name.Selector(c.Name)).
			WithPorts(servicePort(name.PortNameClient, name.PortClient)))
}

// HeadlessService publishes the addresses of all members, ready or not: they
// must find each other before they can be ready.
func HeadlessService(c Cluster) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name.HeadlessService(c.Name), c.Namespace).
		WithLabels(name.ClusterLabels(c.Name)).
		WithOwnerReferences(c.owner()).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP("None").
			WithPublishNotReadyAddresses(true).
			WithSelector(name.Selector(c.Name)).
			WithPorts(
				servicePort(name.PortNameClient, name.PortClient),
				servicePort(name.PortNameClusterBus, name.PortClusterBus),
				servicePort(name.PortNameAgent, name.PortAgent),
			))
}

func servicePort(portName string, port int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(portName).WithPort(port).WithTargetPort(intstr.FromString(portName))
}

// PodDisruptionBudget lets drains take one member at a time. It counts the
// members that the spec asks for, not the pods that there are: one that is stopped
// by the operator has none, and is down all the same.
func PodDisruptionBudget(c Cluster) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	members := c.Spec.Shards * (c.Spec.Replicas + 1)
	return policyv1ac.PodDisruptionBudget(name.Service(c.Name), c.Namespace).
		WithLabels(name.ClusterLabels(c.Name)).
		WithOwnerReferences(c.owner()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt32(members - 1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(name.Selector(c.Name))))
}

// DisruptionBudgeted says whether a spec asks for a PodDisruptionBudget.
func DisruptionBudgeted(spec v1alpha1.ValkeyClusterSpec) bool {
	return spec.PodDisruptionBudget.Mode != v1alpha1.DisruptionDisabled
}
