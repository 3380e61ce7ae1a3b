package apply

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/plan"
)

// refused turns an error that is the API server's considered no into a
// plan.Refusal; any other error is returned as it is.
func refused(err error) error {
	reason, message, is := Refusal(err)
	if !is {
		return err
	}
	return &plan.Refusal{Reason: reason, Message: message, Err: err}
}

// Refusal tells whether an error is the API server's considered no to what was
// asked (403 of admission, 422 of validation), with a reason of api/v1alpha1
// and the server's own words. The code decides first and the text last: a 403
// that names a quota, a limit or a class is told apart by words that
// Kubernetes has had since these checks exist; one without them is a missing
// permission, which is no refusal but a fault of the installation.
func Refusal(err error) (reason, message string, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", "", false
	}
	// Further lines are a comparison of Go values, which helps nobody.
	text, _, _ := strings.Cut(status.Status().Message, "\n")
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden:
		if reason = forbidden(text); reason == "" {
			return "", "", false
		}
		return reason, text, true
	case metav1.StatusReasonInvalid:
		return invalid(text), text, true
	default:
		return "", "", false
	}
}

// forbiddenTexts are what admission says, most telling first.
var forbiddenTexts = []struct{ text, reason string }{
	{"exceeded quota", v1alpha1.ReasonQuotaExceeded},
	{"failed quota", v1alpha1.ReasonQuotaExceeded},
	{"insufficient quota", v1alpha1.ReasonQuotaExceeded},
	{"maximum storage usage per PersistentVolumeClaim", v1alpha1.ReasonLimitRangeExceeded},
	{"minimum storage usage per PersistentVolumeClaim", v1alpha1.ReasonLimitRangeExceeded},
	{"only dynamically provisioned pvc can be resized", v1alpha1.ReasonStorageClassNotExpandable},
	{"volume plugin does not support resize", v1alpha1.ReasonStorageClassNotExpandable},
	{"only bound persistent volume claims can be expanded", v1alpha1.ReasonVolumesPending},
	{"being terminated", v1alpha1.ReasonObjectRefused},
	{"denied the request", v1alpha1.ReasonObjectRefused},
	{"denied request", v1alpha1.ReasonObjectRefused},
	{"violates PodSecurity", v1alpha1.ReasonObjectRefused},
}

func forbidden(text string) string {
	lower := strings.ToLower(text)
	for _, known := range forbiddenTexts {
		if strings.Contains(lower, strings.ToLower(known.text)) {
			return known.reason
		}
	}
	return ""
}

// invalid tells validations apart. An expansion changes nothing but the
// request, so that a spec which is immutable but for it is an unbound claim's:
// newer servers say so before admission can say that only bound ones grow.
func invalid(text string) string {
	switch {
	case strings.Contains(text, "field can not be less than"):
		return v1alpha1.ReasonExpansionRefused
	case strings.Contains(text, "spec is immutable after creation except resources.requests"):
		return v1alpha1.ReasonVolumesPending
	default:
		return v1alpha1.ReasonObjectRefused
	}
}
