//go:build apiserver

package apitest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/apply"
	"valkey.io/valkey-operator/internal/plan"
)

// claimEdit is an edit of a bound claim of 2Gi in its class.
type claimEdit struct {
	class   string
	to      string
	prepare func(*world) // what stands in the way
	reason  string       // empty: it is accepted
}

var claimEdits = map[string]claimEdit{
	"more than a quota allows": {
		class: classGrowing, to: "3Gi", reason: v1alpha1.ReasonQuotaExceeded,
		prepare: func(w *world) { w.quota("2Gi", storage("requests.storage", "2Gi")) },
	},
	"more than a limit range allows": {
		class: classGrowing, to: "3Gi", reason: v1alpha1.ReasonLimitRangeExceeded,
		prepare: func(w *world) { w.limitRange("2Gi") },
	},
	"growth in a class that forbids it":  {class: classFixed, to: "3Gi", reason: v1alpha1.ReasonStorageClassNotExpandable},
	"growth in a class that is gone":     {class: "gone", to: "3Gi", reason: v1alpha1.ReasonStorageClassNotExpandable},
	"growth without a class":             {class: "", to: "3Gi", reason: v1alpha1.ReasonStorageClassNotExpandable},
	"growth of a claim without a volume": {class: classGrowing, to: "3Gi", reason: v1alpha1.ReasonVolumesPending, prepare: (*world).unbind},
	"less than the volume has":           {class: classGrowing, to: "1Gi", reason: v1alpha1.ReasonExpansionRefused},
	"growth":                             {class: classGrowing, to: "3Gi"},
}

// The API server's words are classified as they really are, and the page that
// lists them says what was seen.
func TestRefusedClaimEditsAreClassified(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "decisions", "0005-refusals-seen.md"))
	if err != nil {
		t.Fatal(err)
	}
	for what, row := range claimEdits {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newNamespace(t)
			w.boundClaim(row.class)
			if row.prepare != nil {
				row.prepare(w)
			}
			if row.reason == "" {
				wantRefusal(t, w.try(row.to), "")
				wantRefusal(t, w.expand(row.to), "")
				return
			}
			w.awaitObstacle(row.to)
			_ = wantReason(t, w.try(row.to), row.reason)
			refusal := wantReason(t, w.expand(row.to), row.reason)
			if !strings.Contains(string(page), refusal.Message) || !strings.Contains(string(page), what) {
				t.Errorf("the page of refusals lacks the row\n| %s | `%s` | `%s` |", what, refusal.Reason, refusal.Message)
			}
		})
	}
}

// wantReason asserts that an error is a refusal for a reason, and returns it.
func wantReason(t *testing.T, err error, reason string) *plan.Refusal {
	t.Helper()
	var refusal *plan.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != reason {
		t.Fatalf("got %v, want a refusal because of %s", err, reason)
	}
	return refusal
}

// A quota that nobody has counted yet refuses everything for a moment: that is
// no answer to the size, and is asked again.
func TestAnUncountedQuotaIsNoRefusal(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	w.boundClaim(classGrowing)
	w.quota("9Gi", nil)
	w.awaitObstacle("3Gi")
	err := w.expand("3Gi")
	var refusal *plan.Refusal
	if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "status unknown for quota") {
		t.Errorf("got %v, want an error of the machinery that says that the quota's status is unknown", err)
	}
}

// A request that was raised and never fulfilled may be taken back to anything
// above what the volume has.
func TestALargerRequestIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	w.boundClaim(classGrowing)
	for _, size := range []string{"9Gi", "3Gi"} {
		if err := w.expand(size); err != nil {
			t.Fatalf("asking for %s: %v", size, err)
		}
	}
}

// A stale plan does nothing.
func TestAStaleExpansionIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	w := newNamespace(t)
	w.boundClaim(classGrowing)
	claim := get(w, "data", &corev1.PersistentVolumeClaim{})
	w.patch(claim.DeepCopy(), `{"metadata":{"annotations":{"somebody":"else"}}}`)
	err := w.act(plan.ExpandClaim{Claim: "data", Version: claim.ResourceVersion, To: resource.MustParse("3Gi")})
	if !errors.Is(err, apply.ErrStale) {
		t.Errorf("got %v, want %v", err, apply.ErrStale)
	}
	if got := w.capacities(); got != "2Gi of 2Gi" {
		t.Errorf("the claim has %s", got)
	}
}

// boundClaim makes a claim called data with a volume of 2Gi.
func (w *world) boundClaim(class string) {
	w.t.Helper()
	if class == "gone" {
		gone := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "gone-"}, Provisioner: "test.valkey.io/none", AllowVolumeExpansion: new(true)}
		if err := admin.Create(w.t.Context(), gone); err != nil {
			w.t.Fatal(err)
		}
		class = gone.Name
		defer func() {
			if err := admin.Delete(w.t.Context(), gone); err != nil {
				w.t.Fatal(err)
			}
		}()
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: storage(corev1.ResourceStorage, "2Gi")},
		},
	}
	if err := admin.Create(w.t.Context(), claim); err != nil {
		w.t.Fatal(err)
	}
	if err := bind(w.t.Context(), claim); err != nil {
		w.t.Fatal(err)
	}
}

// unbind makes the claim be one that waits for its volume.
func (w *world) unbind() {
	claim := get(w, "data", &corev1.PersistentVolumeClaim{})
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	if err := admin.Status().Update(w.t.Context(), claim); err != nil {
		w.t.Fatal(err)
	}
}

// quota limits what all claims together may ask for; used is what they have
// been counted to ask for.
func (w *world) quota(size string, used corev1.ResourceList) {
	hard := storage("requests.storage", size)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}
	if err := admin.Create(w.t.Context(), quota); err != nil {
		w.t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	if err := admin.Status().Update(w.t.Context(), quota); err != nil {
		w.t.Fatal(err)
	}
}

// limitRange limits what one claim may ask for.
func (w *world) limitRange(size string) {
	limits := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePersistentVolumeClaim, Max: storage(corev1.ResourceStorage, size),
		}}},
	}
	if err := admin.Create(w.t.Context(), limits); err != nil {
		w.t.Fatal(err)
	}
}

func storage(name corev1.ResourceName, size string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(size)}
}

// expand asks for a size of the claim as it is now.
func (w *world) expand(size string) error {
	claim := get(w, "data", &corev1.PersistentVolumeClaim{})
	return w.act(plan.ExpandClaim{Claim: "data", Version: claim.ResourceVersion, To: resource.MustParse(size)})
}

// try asks for a size of the claim by way of trial, which changes nothing.
func (w *world) try(size string) error {
	w.t.Helper()
	claim := get(w, "data", &corev1.PersistentVolumeClaim{})
	err := w.act(plan.TryExpandClaim{Claim: "data", Version: claim.ResourceVersion, To: resource.MustParse(size)})
	if now := get(w, "data", &corev1.PersistentVolumeClaim{}); now.ResourceVersion != claim.ResourceVersion {
		w.t.Errorf("a trial of %s changed the claim", size)
	}
	return err
}

// awaitObstacle waits until the server's own caches know what stands in the way
// of a size.
func (w *world) awaitObstacle(size string) {
	w.t.Helper()
	await(w.t, "the API server sees the obstacle", func() error {
		claim := get(w, "data", &corev1.PersistentVolumeClaim{})
		claim.Spec.Resources.Requests = storage(corev1.ResourceStorage, size)
		if err := admin.Update(w.t.Context(), claim, client.DryRunAll); err != nil {
			return nil //nolint:nilerr // the error is what is waited for
		}
		return errors.New("it would accept the size")
	})
}

// act performs one action with the operator's own hands.
func (w *world) act(action plan.Action) error {
	hands := apply.Applier{Client: admin, Namespace: w.namespace}
	outcome := hands.Run(w.t.Context(), plan.Plan{{Track: "test", Rule: "test", Verdict: plan.Verdict{Actions: []plan.Action{action}}}})
	result, _ := outcome.Of("test")
	return result.Err
}
