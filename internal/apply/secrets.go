package apply

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
)

// createPasswords creates the Secret with a random password (26 characters,
// at least 128 bits) for each user. A Secret that is there is left alone.
func (a Applier) createPasswords(ctx context.Context, act plan.CreatePasswords) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: act.Name, Labels: act.Labels,
			OwnerReferences: []metav1.OwnerReference{act.Owner},
		},
		StringData: map[string]string{},
	}
	for _, user := range act.Users {
		secret.StringData[user] = rand.Text()
	}
	err := a.Client.Create(ctx, secret, client.FieldOwner(name.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return refused(err)
}

// recordIdentity writes the cluster's identity into its status, unless the
// object changed since it was observed.
func (a Applier) recordIdentity(ctx context.Context, act plan.RecordIdentity) error {
	cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: act.Cluster}}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":{"clusterID":%q}}`, act.Version, act.ClusterID)
	return a.Client.Status().Patch(ctx, cluster, client.RawPatch(mergePatch, patch), client.FieldOwner(name.FieldManager))
}
