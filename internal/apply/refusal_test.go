package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
)

// The texts are what a server of version 1.37 says, or said before.
func TestRefusal(t *testing.T) {
	t.Parallel()
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	forbidden := func(text string) error { return apierrors.NewForbidden(claims, "data", errors.New(text)) }
	invalid := func(text string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "data",
			field.ErrorList{field.Forbidden(field.NewPath("spec", "resources", "requests", "storage"), text)})
	}
	for what, row := range map[string]struct {
		err    error
		reason string // empty: no refusal
	}{
		"a quota":                      {forbidden("exceeded quota: small, requested: requests.storage=1Gi, used: requests.storage=1Gi, limited: requests.storage=1Gi"), v1alpha1.ReasonQuotaExceeded},
		"a quota, wrapped on the way":  {fmt.Errorf("expand claim: %w", forbidden("exceeded quota: small")), v1alpha1.ReasonQuotaExceeded},
		"a limit":                      {forbidden("maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"), v1alpha1.ReasonLimitRangeExceeded},
		"a lower limit":                {forbidden("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 64Mi"), v1alpha1.ReasonLimitRangeExceeded},
		"a class that forbids growth":  {forbidden("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"), v1alpha1.ReasonStorageClassNotExpandable},
		"an old plugin":                {forbidden("volume plugin does not support resize"), v1alpha1.ReasonStorageClassNotExpandable},
		"a claim without a volume":     {forbidden("Only bound persistent volume claims can be expanded"), v1alpha1.ReasonVolumesPending},
		"a request below the capacity": {invalid("field can not be less than status.capacity"), v1alpha1.ReasonExpansionRefused},
		"a request below the last one": {invalid("field can not be less than previous value"), v1alpha1.ReasonExpansionRefused},
		"a claim without a volume, refused by validation": {invalid("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -6,7 +6,7 @@"), v1alpha1.ReasonVolumesPending},
		"another validation":                              {invalid("spec is immutable after creation"), v1alpha1.ReasonObjectRefused},
		"a webhook":                                       {forbidden(`admission webhook "policy.example" denied the request: no`), v1alpha1.ReasonObjectRefused},
		"a missing permission is none":                    {forbidden(`User "system:serviceaccount:a:b" cannot patch resource "persistentvolumeclaims"`), ""},
		"a conflict is none":                              {apierrors.NewConflict(claims, "data", errors.New("changed")), ""},
		"a server that is busy is none":                   {apierrors.NewTooManyRequests("later", 1), ""},
		"a broken connection is none":                     {errors.New("connection refused"), ""},
		"no error is none":                                {nil, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			reason, message, is := Refusal(row.err)
			if reason != row.reason || is != (row.reason != "") || is != (message != "") || strings.Contains(message, "\n") {
				t.Errorf("got %q, %q, %t", reason, message, is)
			}
			var refusal *plan.Refusal
			if wrapped := refused(row.err); errors.As(wrapped, &refusal) != is || !errors.Is(wrapped, row.err) {
				t.Errorf("refused gives %#v", wrapped)
			}
		})
	}
}
