package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// asked is what a user asked of a member's pod. A field that is added later
// must be omitted while it has its zero value, or every pod would be replaced
// by the upgrade that adds it.
type asked struct {
	WorkloadType      v1alpha1.WorkloadType         `json:"workloadType"`
	Image             string                        `json:"image"`
	ImagePullPolicy   corev1.PullPolicy             `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets  []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	VolumePermissions bool                          `json:"volumePermissions,omitempty"`
	Resources         *corev1.ResourceRequirements  `json:"resources,omitempty"`
	Scheduling        *v1alpha1.Scheduling          `json:"scheduling,omitempty"`
	Storage           bool                          `json:"storage,omitempty"`
	ClaimName         string                        `json:"claimName,omitempty"`
	ConfigRevision    string                        `json:"configRevision,omitempty"`
	GracePeriod       *int64                        `json:"terminationGracePeriodSeconds,omitempty"`
}

// revisionLength in characters: 48 bits, to tell a handful of templates apart.
const revisionLength = 12

// TemplateRevision identifies what the user asked of a member's pod: equal
// wishes give equal revisions for all time. The agent's image, and everything
// that the operator adds by itself, is no part of it, so that an upgrade of the
// operator replaces no pod.
func TemplateRevision(spec v1alpha1.ValkeyNodeSpec) string {
	template := spec.Template
	wishes := asked{
		WorkloadType:      template.WorkloadType,
		Image:             template.Image,
		ImagePullPolicy:   template.ImagePullPolicy,
		ImagePullSecrets:  template.ImagePullSecrets,
		VolumePermissions: template.VolumePermissions,
		Storage:           spec.Storage.Enabled,
		ConfigRevision:    template.ConfigRevision,
		GracePeriod:       template.TerminationGracePeriodSeconds,
		Scheduling:        schedulingAsked(template.Scheduling),
	}
	if spec.Storage.Enabled {
		wishes.ClaimName = spec.Storage.ClaimName
	}
	// An empty block asks for the same as none.
	if !equality.Semantic.DeepEqual(template.Resources, corev1.ResourceRequirements{}) {
		wishes.Resources = &template.Resources
	}
	text, err := json.Marshal(wishes)
	if err != nil {
		panic("a template that an API server accepted has no JSON form: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:revisionLength]
}

// schedulingAsked are the wishes without those that ask for what is done anyway;
// nil when none is left.
func schedulingAsked(wishes *v1alpha1.Scheduling) *v1alpha1.Scheduling {
	if wishes == nil {
		return nil
	}
	asked := *wishes
	for _, place := range []*v1alpha1.Placement{&asked.Node, &asked.Zone} {
		if place.Spread.Shard == v1alpha1.SpreadPreferred {
			place.Spread.Shard = ""
		}
	}
	if equality.Semantic.DeepEqual(asked, v1alpha1.Scheduling{}) {
		return nil
	}
	return &asked
}
