package state

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/internal/name"
)

// Claim is a PersistentVolumeClaim as far as decisions need it.
type Claim struct {
	Name    string `json:"name"`
	UID     string `json:"uid"`
	Version string `json:"version"` // resource version

	Labels map[string]string `json:"labels,omitempty"`
	// Cluster, ClusterID, NodeID and Shape are what the claim says it belongs to.
	Cluster   string `json:"cluster,omitempty"`
	ClusterID string `json:"clusterID,omitempty"`
	NodeID    string `json:"nodeID,omitempty"`
	Shape     string `json:"shape,omitempty"`
	// OwnerUIDs are the UIDs of the ValkeyClusters that the claim goes with.
	OwnerUIDs []string `json:"ownerUIDs,omitempty"`

	Phase       corev1.PersistentVolumeClaimPhase `json:"phase,omitempty"`
	Terminating bool                              `json:"terminating,omitempty"`
	ClassName   string                            `json:"className,omitempty"`
	VolumeName  string                            `json:"volumeName,omitempty"`

	// Requested is spec.resources.requests.storage, Capacity and Allocated
	// are status.capacity and status.allocatedResources of storage. Zero
	// means absent.
	Requested resource.Quantity `json:"requested"`
	Capacity  resource.Quantity `json:"capacity"`
	Allocated resource.Quantity `json:"allocated"`
	// ResizeStatus is status.allocatedResourceStatuses of storage, in the
	// server's own words; empty when idle or on servers that do not have it.
	ResizeStatus string           `json:"resizeStatus,omitempty"`
	Conditions   []ClaimCondition `json:"conditions,omitempty"`
	CreatedAt    time.Time        `json:"createdAt"`
}

// ClaimCondition is one condition of a claim. Types that are not known are
// kept: they mean nothing to us, and are no error.
type ClaimCondition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Message string                 `json:"message,omitempty"`
	Since   time.Time              `json:"since"`
}

// ClaimEvent is an event of a claim that was told one or more times.
type ClaimEvent struct {
	Message string    `json:"message"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Is says whether a condition is there with status True, and returns it.
func (c Claim) Is(conditionType corev1.PersistentVolumeClaimConditionType) (ClaimCondition, bool) {
	for _, condition := range c.Conditions {
		if condition.Type == string(conditionType) && condition.Status == corev1.ConditionTrue {
			return condition, true
		}
	}
	return ClaimCondition{}, false
}

// OwnedBy says whether an object with this UID is among the claim's owners.
func (c Claim) OwnedBy(uid string) bool {
	return slices.Contains(c.OwnerUIDs, uid)
}

// ClaimOf is the claim in an object of the API.
func ClaimOf(pvc *corev1.PersistentVolumeClaim) Claim {
	claim := Claim{
		Name:         pvc.Name,
		UID:          string(pvc.UID),
		Version:      pvc.ResourceVersion,
		Labels:       pvc.Labels,
		Cluster:      pvc.Labels[name.LabelCluster],
		ClusterID:    pvc.Annotations[name.AnnotationClusterID],
		NodeID:       pvc.Annotations[name.AnnotationNodeID],
		Shape:        pvc.Annotations[name.AnnotationShape],
		OwnerUIDs:    ownerUIDs(pvc.OwnerReferences),
		Phase:        pvc.Status.Phase,
		Terminating:  pvc.DeletionTimestamp != nil,
		VolumeName:   pvc.Spec.VolumeName,
		Requested:    pvc.Spec.Resources.Requests[corev1.ResourceStorage],
		Capacity:     pvc.Status.Capacity[corev1.ResourceStorage],
		Allocated:    pvc.Status.AllocatedResources[corev1.ResourceStorage],
		ResizeStatus: string(pvc.Status.AllocatedResourceStatuses[corev1.ResourceStorage]),
		CreatedAt:    pvc.CreationTimestamp.Time,
	}
	if pvc.Spec.StorageClassName != nil {
		claim.ClassName = *pvc.Spec.StorageClassName
	}
	for _, condition := range pvc.Status.Conditions {
		claim.Conditions = append(claim.Conditions, ClaimCondition{
			Type: string(condition.Type), Status: condition.Status,
			Message: condition.Message, Since: condition.LastTransitionTime.Time,
		})
	}
	return claim
}

func ownerUIDs(references []metav1.OwnerReference) []string {
	var uids []string
	for _, reference := range references {
		if reference.Kind == "ValkeyCluster" {
			uids = append(uids, string(reference.UID))
		}
	}
	return uids
}
