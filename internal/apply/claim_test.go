package apply

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
)

var sameQuantity = cmp.Comparer(func(a, b resource.Quantity) bool { return a.Equal(b) })

// stored puts a claim and a pod into a fake API server, and returns hands to
// work on them with and the claim as the server has it.
func stored(t *testing.T) (Applier, *corev1.PersistentVolumeClaim) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", UID: "claim-uid", Labels: map[string]string{"mine": "1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other-uid"}},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pv-1",
			Resources:  corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod", UID: "pod-uid"}}
	hands := Applier{Client: fake.NewClientBuilder().WithObjects(claim, pod).Build(), Namespace: "shop"}
	return hands, read(t, hands)
}

func read(t *testing.T, hands Applier) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := hands.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data"}, claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

func TestExpandClaimChangesTheRequestAlone(t *testing.T) {
	t.Parallel()
	hands, before := stored(t)
	act := plan.ExpandClaim{Claim: "data", Version: before.ResourceVersion, To: resource.MustParse("2Gi")}
	if err := hands.do(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	want := before.DeepCopy()
	want.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	got := read(t, hands)
	got.ResourceVersion = want.ResourceVersion
	got.ManagedFields = want.ManagedFields
	if diff := cmp.Diff(want, got, sameQuantity); diff != "" {
		t.Errorf("the claim differs (-want +got):\n%s", diff)
	}
}

func TestOwnClaimLeavesOtherOwners(t *testing.T) {
	t.Parallel()
	hands, claim := stored(t)
	owner := plan.Owner{Name: "prod", UID: "cluster-uid"}
	for _, row := range []struct {
		owned bool
		want  []string
	}{{true, []string{"cluster-uid", "other-uid"}}, {false, []string{"other-uid"}}} {
		act := plan.OwnClaim{Claim: "data", Version: claim.ResourceVersion, Owner: owner, Owned: row.owned}
		if err := hands.do(t.Context(), act); err != nil {
			t.Fatal(err)
		}
		claim = read(t, hands)
		var uids []string
		for _, reference := range claim.OwnerReferences {
			uids = append(uids, string(reference.UID))
		}
		slices.Sort(uids)
		if diff := cmp.Diff(row.want, uids); diff != "" {
			t.Errorf("owned %t: owners differ (-want +got):\n%s", row.owned, diff)
		}
	}
}

func TestMarkClaimAddsMarks(t *testing.T) {
	t.Parallel()
	hands, claim := stored(t)
	act := plan.MarkClaim{
		Claim: "data", Version: claim.ResourceVersion,
		Labels: map[string]string{"more": "2"}, Annotations: map[string]string{"note": "3"},
	}
	if err := hands.do(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	got := read(t, hands)
	if diff := cmp.Diff(map[string]string{"mine": "1", "more": "2"}, got.Labels); diff != "" {
		t.Errorf("labels differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "3"}, got.Annotations); diff != "" {
		t.Errorf("annotations differ (-want +got):\n%s", diff)
	}
}

func TestCreateClaimLeavesOneThatIsThere(t *testing.T) {
	t.Parallel()
	hands, before := stored(t)
	act := plan.CreateClaim{Claim: corev1ac.PersistentVolumeClaim("data", "shop").WithLabels(map[string]string{"mine": "no"})}
	if err := hands.do(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, read(t, hands), sameQuantity); diff != "" {
		t.Errorf("the claim was touched (-before +after):\n%s", diff)
	}
}

func TestCreateClaimMakesOne(t *testing.T) {
	t.Parallel()
	hands := Applier{Client: fake.NewClientBuilder().Build(), Namespace: "shop"}
	act := plan.CreateClaim{Claim: corev1ac.PersistentVolumeClaim("data", "shop").
		WithLabels(map[string]string{"mine": "1"}).
		WithSpec(corev1ac.PersistentVolumeClaimSpec().WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")})))}
	if err := hands.do(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	got := read(t, hands)
	if size := got.Spec.Resources.Requests.Storage(); got.Labels["mine"] != "1" || size.String() != "1Gi" {
		t.Errorf("made a claim of %s with labels %v", size, got.Labels)
	}
}

// A plan that rests on an older world does nothing, and says so.
func TestStalePlansFailHarmlessly(t *testing.T) {
	t.Parallel()
	hands, before := stored(t)
	for what, act := range map[string]plan.Action{
		"the claim changed since":  plan.ExpandClaim{Claim: "data", Version: "1", To: resource.MustParse("2Gi")},
		"the claim is gone":        plan.ExpandClaim{Claim: "gone", Version: "1", To: resource.MustParse("2Gi")},
		"marks of a changed claim": plan.MarkClaim{Claim: "data", Version: "1", Labels: map[string]string{"a": "b"}},
		"owner of a changed claim": plan.OwnClaim{Claim: "data", Version: "1", Owned: true, Owner: plan.Owner{Name: "prod", UID: "u"}},
		"the orphan is gone":       plan.Adopt{Kind: "Secret", Name: "gone", UID: "u"},
		"the pod is gone":          plan.MarkPod{Pod: "gone", UID: "u", Labels: map[string]string{"a": "b"}},
	} {
		if err := hands.do(t.Context(), act); !errors.Is(err, ErrStale) {
			t.Errorf("%s: error is %v, want one that says that the plan is stale", what, err)
		}
	}
	if diff := cmp.Diff(before, read(t, hands), sameQuantity); diff != "" {
		t.Errorf("the claim was touched (-before +after):\n%s", diff)
	}
}

// A patch that names another UID than the object's is answered by a real
// server with the complaint that a UID cannot be changed.
func TestStale(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "pod", field.ErrorList{field.Invalid(path, "x", "field is immutable")})
	}
	for what, row := range map[string]struct {
		err  error
		want bool
	}{
		"changed":     {apierrors.NewConflict(pods, "pod", errors.New("changed")), true},
		"gone":        {apierrors.NewNotFound(pods, "pod"), true},
		"made anew":   {invalid(field.NewPath("metadata", "uid")), true},
		"not allowed": {invalid(field.NewPath("spec", "nodeName")), false},
		"forbidden":   {apierrors.NewForbidden(pods, "pod", errors.New("no")), false},
		"no error":    {nil, false},
	} {
		if got := stale(row.err); got != row.want {
			t.Errorf("%s: stale is %t, want %t", what, got, row.want)
		}
	}
}

func TestMarkPodMarksTheOneThatWasSeen(t *testing.T) {
	t.Parallel()
	hands, _ := stored(t)
	act := plan.MarkPod{Pod: "pod", UID: "pod-uid", Labels: map[string]string{"role": "primary"}, Annotations: map[string]string{"nudge": "1"}}
	if err := hands.do(t.Context(), act); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := hands.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "pod"}, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Labels["role"] != "primary" || pod.Annotations["nudge"] != "1" {
		t.Errorf("labels are %v, annotations %v", pod.Labels, pod.Annotations)
	}
}

// patchedBy is a client whose patches somebody sees first, and may refuse.
func patchedBy(hands Applier, sees func(client.Object, client.PatchOptions) error) client.Client {
	under, _ := reflect.TypeAssert[client.WithWatch](reflect.ValueOf(hands.Client))
	return interceptor.NewClient(under, interceptor.Funcs{
		Patch: func(ctx context.Context, under client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			asked := client.PatchOptions{}
			asked.ApplyOptions(options)
			if err := sees(object, asked); err != nil {
				return err
			}
			return under.Patch(ctx, object, patch, options...)
		},
	})
}

// A trial gets the API server's own answer and leaves the claim as it is.
func TestTryExpandClaim(t *testing.T) {
	t.Parallel()
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for what, row := range map[string]struct {
		answer error
		want   string // the reason of a refusal; empty for none
		fault  bool
	}{
		"it would be done":   {},
		"a quota refuses it": {answer: apierrors.NewForbidden(claims, "data", errors.New("exceeded quota: small")), want: v1alpha1.ReasonQuotaExceeded},
		"the operator lacks the right to, which is named": {
			answer: apierrors.NewForbidden(claims, "data", errors.New(`User "x" cannot patch resource "persistentvolumeclaims"`)), want: v1alpha1.ReasonExpansionRefused,
		},
		"a quota that is not counted yet is no answer": {
			answer: apierrors.NewForbidden(claims, "data", errors.New("status unknown for quota: small")), fault: true,
		},
		"somebody forbids it in words that nobody knows": {
			answer: apierrors.NewForbidden(claims, "data", errors.New("not on a Friday")), want: v1alpha1.ReasonExpansionRefused,
		},
		"a webhook does not answer": {
			answer: apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example": connection refused`)), want: v1alpha1.ReasonExpansionRefused,
		},
		"the API server has a fault of its own": {answer: apierrors.NewInternalError(errors.New("etcd has no leader")), fault: true},
		"a webhook cannot be asked by way of trial: the claim itself will tell": {
			answer: apierrors.NewBadRequest(`admission webhook "policy.example" does not support dry run`),
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			hands, before := stored(t)
			tried := false
			hands.Client = patchedBy(hands, func(_ client.Object, asked client.PatchOptions) error {
				tried = slices.Equal(asked.DryRun, []string{metav1.DryRunAll})
				return row.answer
			})
			err := hands.do(t.Context(), plan.TryExpandClaim{Claim: "data", Version: before.ResourceVersion, To: resource.MustParse("2Gi")})
			refusal, refused := errors.AsType[*plan.Refusal](err)
			if !tried || refused != (row.want != "") || refused && refusal.Reason != row.want || !refused && (err != nil) != row.fault {
				t.Errorf("tried %t, error %v", tried, err)
			}
			if diff := cmp.Diff(before, read(t, hands), sameQuantity); diff != "" {
				t.Errorf("the claim was touched (-before +after):\n%s", diff)
			}
		})
	}
}

// Nothing of a step is done unless all its trials succeed.
func TestTrialsComeFirst(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		second string // the second claim that is tried
		done   int
	}{"all succeed": {"data", 1}, "one does not": {"gone", 0}} {
		hands, claim := stored(t)
		hands.Client = patchedBy(hands, func(object client.Object, _ client.PatchOptions) error {
			if object.GetName() == "gone" {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, "gone")
			}
			return nil
		})
		size := resource.MustParse("2Gi")
		made := plan.Plan{{Track: "t", Rule: "r", Verdict: plan.Verdict{
			Trials:  []plan.Action{plan.TryExpandClaim{Claim: "data", Version: claim.ResourceVersion, To: size}, plan.TryExpandClaim{Claim: row.second, Version: claim.ResourceVersion, To: size}},
			Actions: []plan.Action{plan.MarkClaim{Claim: "data", Version: claim.ResourceVersion, Labels: map[string]string{"done": "1"}}},
		}}}
		result, acted := hands.Run(t.Context(), made).Of("r")
		if !acted || result.Done != row.done || (result.Err == nil) != (row.done == 1) {
			t.Errorf("%s: the outcome is %+v", what, result)
		}
		if _, marked := read(t, hands).Labels["done"]; marked != (row.done == 1) {
			t.Errorf("%s: done is %t", what, marked)
		}
	}
}
