package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

// ErrStale says that an object changed after it was observed, so that the plan
// no longer fits. Nothing was done; the next pass decides again.
var ErrStale = errors.New("the object has changed since it was observed")

const (
	mergePatch     = types.MergePatchType
	strategicPatch = types.StrategicMergePatchType
)

// ensure makes an object have the fields of a configuration. Other writers keep
// their fields; ours are taken back from whoever changed them. A configuration that
// names a resource version is for an object that has not changed since.
func (a Applier) ensure(ctx context.Context, act plan.Ensure) error {
	err := a.Client.Apply(ctx, act.Config, client.ForceOwnership, client.FieldOwner(act.Manager))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return refused(err)
}

// adopt adds the controller of the one object that was observed. The API server
// accepts no second controller, so that nobody's is replaced.
func (a Applier) adopt(ctx context.Context, act plan.Adopt) error {
	orphans := map[string]client.Object{
		"StatefulSet": &appsv1.StatefulSet{}, "Deployment": &appsv1.Deployment{}, "Secret": &corev1.Secret{},
	}
	orphan, known := orphans[act.Kind]
	if !known {
		return fmt.Errorf("no hand knows how to %s", act)
	}
	orphan.SetName(act.Name)
	return a.patch(ctx, orphan, strategicPatch, metadata{UID: act.UID, OwnerReferences: []any{act.Owner}}, nil)
}

// markPod sets labels and annotations of the one pod that was observed. A pod
// of the same name that took its place is left alone: that is a stale plan.
func (a Applier) markPod(ctx context.Context, act plan.MarkPod) error {
	return a.patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: act.Pod}}, mergePatch, metadata{
		UID: act.UID, Labels: act.Labels, Annotations: values(act.Annotations),
	}, nil)
}

// metadata is the part of an object's metadata that patches of ours hold. A
// UID or resource version in a patch is a precondition; an annotation that is nil
// is removed.
type metadata struct {
	UID             string             `json:"uid,omitempty"`
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Labels          map[string]string  `json:"labels,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
	OwnerReferences []any              `json:"ownerReferences,omitempty"`
}

// values are annotations all of which are set.
func values(annotations map[string]string) map[string]*string {
	out := map[string]*string{}
	for key, value := range annotations {
		out[key] = &value
	}
	return out
}

// patch sends a patch of an object's metadata and, unless it is nil, its spec.
func (a Applier) patch(ctx context.Context, target client.Object, kind types.PatchType, meta metadata, spec any) error {
	body, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
		Spec     any      `json:"spec,omitempty"`
	}{meta, spec})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	target.SetNamespace(a.Namespace)
	err = a.Client.Patch(ctx, target, client.RawPatch(kind, body), client.FieldOwner(name.FieldManager))
	if stale(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return refused(err)
}

// stale says whether an error means that the object is not the one that was
// observed: changed, gone, or (its UID is another one, which a patch cannot
// change) made anew.
func stale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || (apierrors.IsInvalid(err) && aboutUID(err))
}

func aboutUID(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}
