//go:build apiserver

package apitest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// A quota has room for some of the volumes. None of them is touched, what is missing
// is told, and the growth goes on by itself once there is room for all.
func TestAGrowthThatDoesNotFitTouchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	cluster := w.settledCluster(persistent())
	w.quota("5Gi", storage("requests.storage", "3Gi"))
	before := w.claimVersions()
	w.growTo2Gi(cluster)
	await(t, "the refusal is told", func() error {
		told := meta.FindStatusCondition(get(w, "prod", cluster).Status.Conditions, v1alpha1.ConditionStorageReady)
		if told == nil || told.Reason != v1alpha1.ReasonQuotaExceeded || !strings.Contains(told.Message, "by 1Gi") {
			return fmt.Errorf("it says %+v", told)
		}
		return nil
	})
	await(t, "there is one event", func() error { return w.oneEvent("prod", v1alpha1.EventVolumeExpansionBlocked) })
	if now := w.claimVersions(); now != before {
		t.Errorf("claims were %s, and are %s", before, now)
	}
	quota := get(w, "small", &corev1.ResourceQuota{})
	w.patch(quota.DeepCopy(), `{"spec":{"hard":{"requests.storage":"6Gi"}}}`)
	w.countQuota("6Gi")
	w.awaitSettled(cluster)
	if sizes := w.capacities(); sizes != "2Gi of 2Gi, 2Gi of 2Gi, 2Gi of 2Gi" {
		t.Errorf("the volumes have %s", sizes)
	}
	for _, reason := range []string{v1alpha1.ReasonVolumeExpanding, v1alpha1.ReasonVolumeExpanded} {
		await(t, "there is one event "+reason, func() error { return w.oneEvent("prod", reason) })
	}
}

// The first volume is with its driver, which says that it can never give the size: the
// others are not asked, and a smaller size is had by all.
func TestAnInfeasibleGrowthIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operate(server)
	cluster := w.settledCluster(persistent())
	w.holdGrowth(true)
	w.growTo2Gi(cluster)
	var asked *corev1.PersistentVolumeClaim
	await(t, "one volume is asked to grow", func() error {
		for _, claim := range w.claims() {
			if claim.Spec.Resources.Requests.Storage().String() == "2Gi" {
				asked = claim.DeepCopy()
				return nil
			}
		}
		return fmt.Errorf("none is")
	})
	asked.Status.AllocatedResources = storage(corev1.ResourceStorage, "2Gi")
	asked.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible,
	}
	if err := admin.Status().Update(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	await(t, "it is told", func() error {
		return conditionIs(get(w, "prod", cluster).Status.Conditions, v1alpha1.ConditionStorageReady, metav1.ConditionFalse, v1alpha1.ReasonExpansionInfeasible)
	})
	if sizes := w.capacities(); strings.Count(sizes, "1Gi of 1Gi") != 2 {
		t.Errorf("the volumes have %s", sizes)
	}
	w.patch(get(w, "prod", cluster), `{"spec":{"storage":{"size":"1536Mi"}}}`)
	w.holdGrowth(false)
	w.awaitSettled(cluster)
	if sizes := w.capacities(); sizes != "1536Mi of 1536Mi, 1536Mi of 1536Mi, 1536Mi of 1536Mi" {
		t.Errorf("the volumes have %s", sizes)
	}
	await(t, "the recovery is told", func() error { return w.oneEvent("prod", v1alpha1.EventVolumeExpansionRecovered) })
	if ceiling := get(w, "prod", cluster).Status.Storage.Ceiling; ceiling == nil || ceiling.Size.String() != "2Gi" {
		t.Errorf("the ceiling is %+v", ceiling)
	}
}

func (w *world) claims() []corev1.PersistentVolumeClaim {
	w.t.Helper()
	var claims corev1.PersistentVolumeClaimList
	if err := admin.List(w.t.Context(), &claims, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return claims.Items
}

func (w *world) claimVersions() string {
	var versions []string
	for _, claim := range w.claims() {
		versions = append(versions, claim.Name+" "+claim.ResourceVersion)
	}
	return strings.Join(versions, ", ")
}

// countQuota does what counts quotas: here nobody else does.
func (w *world) countQuota(hard string) {
	w.t.Helper()
	quota := get(w, "small", &corev1.ResourceQuota{})
	quota.Status.Hard = storage("requests.storage", hard)
	if err := admin.Status().Update(w.t.Context(), quota); err != nil {
		w.t.Fatal(err)
	}
}
