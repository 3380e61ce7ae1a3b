package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
)

// says is a status with conditions: type, status, reason each.
func says(formed bool, conditions ...[3]string) v1alpha1.ValkeyClusterStatus {
	status := v1alpha1.ValkeyClusterStatus{Formed: formed, Storage: &v1alpha1.StorageStatus{}}
	for _, c := range conditions {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: c[0], Status: metav1.ConditionStatus(c[1]), Reason: c[2], Message: "why"})
	}
	return status
}

func TestClusterEvents(t *testing.T) {
	t.Parallel()
	ready, unready := [3]string{"Ready", "True", "Healthy"}, [3]string{"Ready", "False", "PodsNotReady"}
	bound, expanding := [3]string{"StorageReady", "True", "VolumesBound"}, [3]string{"StorageReady", "False", "VolumeExpanding"}
	expanded := [3]string{"StorageReady", "True", "VolumeExpanded"}
	rejected := [3]string{"StorageReady", "False", "StorageClassNotExpandable"}
	began, ended := says(true, expanding), says(true, expanded)
	began.Storage.ExpandingSince = new(metav1.NewTime(noon))
	ended.Storage.ExpandedAt = new(metav1.NewTime(noon.Add(90 * time.Second)))
	for what, row := range map[string]struct {
		prev, next v1alpha1.ValkeyClusterStatus
		want       []string
	}{
		"nothing changed":            {says(true, ready, bound), says(true, ready, bound), nil},
		"the first look":             {v1alpha1.ValkeyClusterStatus{}, says(false, unready, bound), nil},
		"it became ready":            {says(false, unready), says(true, ready), []string{"Normal Healthy why"}},
		"it is no longer ready":      {says(true, ready), says(true, unready), []string{"Warning PodsNotReady why"}},
		"a growth began":             {says(true, bound), says(true, expanding), []string{"Normal VolumeExpanding why"}},
		"a growth ended":             {began, ended, []string{"Normal VolumeExpanded why in 1m30s"}},
		"a growth is blocked":        {says(true, expanding), says(true, rejected), []string{"Warning VolumeExpansionBlocked StorageClassNotExpandable: why"}},
		"a volume cannot be made":    {says(false, [3]string{"StorageReady", "False", "VolumesPending"}), says(false, [3]string{"StorageReady", "False", "QuotaExceeded"}), []string{"Warning QuotaExceeded why"}},
		"a wish to shrink":           {says(true, bound), says(true, [3]string{"StorageReady", "True", "VolumeShrinkRefused"}), []string{"Warning VolumeShrinkRefused why"}},
		"a wish to shrink withdrawn": {says(true, [3]string{"StorageReady", "True", "VolumeShrinkRefused"}), says(true, expanded), nil},
		"a member went":              {says(true), says(true, [3]string{"Degraded", "True", "MemberUnreachable"}), []string{"Warning MemberUnreachable why"}},
		"a member came back":         {says(true, [3]string{"Degraded", "True", "MemberUnreachable"}), says(true, [3]string{"Degraded", "False", "Healthy"}), nil},
		"storage is told once, not as damage too": {
			says(true, expanding), says(true, rejected, [3]string{"Degraded", "True", "StorageClassNotExpandable"}),
			[]string{"Warning VolumeExpansionBlocked StorageClassNotExpandable: why"},
		},
		"an object of the cluster is refused": {says(true, bound), says(true, bound, [3]string{"Degraded", "True", "ObjectRefused"}), []string{"Warning ObjectRefused why"}},
		"a risky spec":                        {says(true), says(true, [3]string{"ConfigurationWarning", "True", "DefaultUserOpen"}), []string{"Warning DefaultUserOpen why"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, event := range ClusterEvents(row.prev, row.next) {
				got = append(got, event.Type+" "+event.Reason+" "+event.Message)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
