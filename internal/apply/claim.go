package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

// doClaim performs the actions on claims.
func (a Applier) doClaim(ctx context.Context, action plan.Action) error {
	switch act := action.(type) {
	case plan.CreateClaim:
		return a.createClaim(ctx, act)
	case plan.ExpandClaim:
		return a.expandClaim(ctx, act)
	case plan.TryExpandClaim:
		return a.tryExpandClaim(ctx, act)
	case plan.OwnClaim:
		return a.ownClaim(ctx, act)
	case plan.MarkClaim:
		return a.markClaim(ctx, act)
	default:
		return a.doServer(ctx, action)
	}
}

// createClaim creates a claim. One of that name that is there already is left
// alone, whosever it is: the next pass sees it and decides.
func (a Applier) createClaim(ctx context.Context, act plan.CreateClaim) error {
	claim := &corev1.PersistentVolumeClaim{}
	body, err := json.Marshal(act.Claim)
	if err == nil {
		err = json.Unmarshal(body, claim)
	}
	if err != nil {
		return fmt.Errorf("writing a claim: %w", err)
	}
	err = a.Client.Create(ctx, claim, client.FieldOwner(name.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return refused(err)
}

// expandClaim changes the size that a claim asks for, and nothing else.
func (a Applier) expandClaim(ctx context.Context, act plan.ExpandClaim) error {
	return a.patch(ctx, claimNamed(act.Claim), mergePatch,
		metadata{ResourceVersion: act.Version},
		corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: act.To},
		}})
}

// tryExpandClaim asks for the same as expandClaim without having it done. The
// answer is the API server's own, but for quotas, which it reckons for this one
// claim alone. Where a webhook stands in the way of trying, nothing is known, and
// the claim is asked in earnest.
func (a Applier) tryExpandClaim(ctx context.Context, act plan.TryExpandClaim) error {
	a.Client = client.NewDryRunClient(a.Client)
	err := a.expandClaim(ctx, plan.ExpandClaim(act))
	var known *plan.Refusal
	switch {
	case apierrors.IsBadRequest(err):
		return nil
	case apierrors.IsForbidden(err) && !errors.As(err, &known) && strings.Contains(err.Error(), "cannot patch resource"):
		return &plan.Refusal{
			Reason: v1alpha1.ReasonExpansionRefused, Err: err,
			Message: fmt.Sprintf("the operator may not expand claim %s; grant it the verb patch on persistentvolumeclaims (the API server said: %s)", act.Claim, err.Error()),
		}
	case !errors.As(err, &known) && standsInTheWay(err):
		return &plan.Refusal{
			Reason: v1alpha1.ReasonExpansionRefused, Err: err,
			Message: fmt.Sprintf("the API server would not expand claim %s, and is asked again by itself (it said: %s)", act.Claim, err.Error()),
		}
	default:
		return err
	}
}

// standsInTheWay says whether an error is one that would keep every growth from
// beginning for as long as nobody is told: an admission whose words we do not know, or
// a webhook that does not answer. A quota that is not counted yet passes by itself.
func standsInTheWay(err error) bool {
	unknown := apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "status unknown for quota")
	return unknown || apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// ownClaim adds an owner, or removes it, beside whatever other owners there
// are: in a strategic merge patch owners are told apart by their UID.
func (a Applier) ownClaim(ctx context.Context, act plan.OwnClaim) error {
	var owner any = map[string]any{"$patch": "delete", "uid": act.Owner.UID}
	if act.Owned {
		owner = map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ValkeyCluster",
			"name": act.Owner.Name, "uid": act.Owner.UID,
			"controller": false, "blockOwnerDeletion": false,
		}
	}
	return a.patch(ctx, claimNamed(act.Claim), strategicPatch,
		metadata{ResourceVersion: act.Version, OwnerReferences: []any{owner}}, nil)
}

// markClaim sets labels and annotations of a claim.
func (a Applier) markClaim(ctx context.Context, act plan.MarkClaim) error {
	return a.patch(ctx, claimNamed(act.Claim), mergePatch,
		metadata{ResourceVersion: act.Version, Labels: act.Labels, Annotations: values(act.Annotations)}, nil)
}

func claimNamed(claim string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}}
}
