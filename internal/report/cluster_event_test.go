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
	infeasible := [3]string{"StorageReady", "False", "ExpansionInfeasible"}
	began, ended := says(true, expanding), says(true, expanded)
	began.Storage.ExpandingSince = new(metav1.NewTime(noon))
	ended.Storage.ExpandedAt = new(metav1.NewTime(noon.Add(90 * time.Second)))
	larger, full, auto := *began.DeepCopy(), *began.DeepCopy(), *began.DeepCopy()
	larger.Storage.ExpandingSince = new(metav1.NewTime(noon.Add(time.Minute)))
	full.Conditions[0].Reason, full.Storage.RequestedSize = v1alpha1.ReasonDiskFull, new(size("2Gi"))
	auto.Storage.Shards = []v1alpha1.ShardStorageStatus{{GrownAt: new(metav1.NewTime(noon.Add(-5 * time.Second)))}}
	gone := says(true, infeasible)
	gone.Storage.Ceiling, gone.Storage.RequestedSize = &v1alpha1.StorageCeiling{Size: size("10Ti")}, new(size("10Ti"))
	back, raised := says(true, bound), says(true, bound)
	back.Storage.Ceiling, back.Storage.RequestedSize = gone.Storage.Ceiling, new(size("1Gi"))
	raised.Storage.Ceiling, raised.Storage.RequestedSize = gone.Storage.Ceiling, new(size("10Ti"))
	for what, row := range map[string]struct {
		prev, next v1alpha1.ValkeyClusterStatus
		want       []string
	}{
		"nothing changed":       {says(true, ready, bound), says(true, ready, bound), nil},
		"the first look":        {v1alpha1.ValkeyClusterStatus{}, says(false, unready, bound), nil},
		"it became ready":       {says(false, unready), says(true, ready), []string{"Normal Healthy why"}},
		"it is no longer ready": {says(true, ready), says(true, unready), []string{"Warning PodsNotReady why"}},
		"a growth began":        {says(true, bound), began, []string{"Normal VolumeExpanding why"}},
		"a growth is repeated":  {says(true, [3]string{"StorageReady", "False", "ExpansionRetrying"}), says(true, expanding), nil},
		"a growth to another size began while one ran": {
			began, larger, []string{"Normal VolumeExpanding why"},
		},
		"a growth began of volumes that are full": {
			says(true, bound), full, []string{"Normal VolumeExpanding volumes grow to 2Gi", "Warning DiskFull why"},
		},
		"a growth began that was decided and told a moment ago": {
			says(true, bound), auto, nil,
		},
		"a growth failed": {began, gone, []string{"Warning VolumeExpansionFailed ExpansionInfeasible: why"}},
		"it stays failed": {gone, gone, nil},
		"it was taken back": {
			gone, back, []string{"Normal VolumeExpansionRecovered the growth to 10Ti, which could not be had, was taken back; volumes keep what they have, and 1Gi is asked for"},
		},
		"the size can be had after all": {gone, raised, nil},
		"a growth ended":                {began, ended, []string{"Normal VolumeExpanded why; the growth took 1m30s"}},
		"a growth is blocked":           {says(true, expanding), says(true, rejected), []string{"Warning VolumeExpansionBlocked StorageClassNotExpandable: why"}},
		"a volume cannot be made":       {says(false, [3]string{"StorageReady", "False", "VolumesPending"}), says(false, [3]string{"StorageReady", "False", "QuotaExceeded"}), []string{"Warning QuotaExceeded why"}},
		"a wish to shrink":              {says(true, bound), says(true, [3]string{"StorageReady", "True", "VolumeShrinkRefused"}), []string{"Warning VolumeShrinkRefused why"}},
		"a wish to shrink withdrawn":    {says(true, [3]string{"StorageReady", "True", "VolumeShrinkRefused"}), says(true, expanded), nil},
		"a member went":                 {says(true), says(true, [3]string{"Degraded", "True", "MemberUnreachable"}), []string{"Warning MemberUnreachable why"}},
		"a member came back":            {says(true, [3]string{"Degraded", "True", "MemberUnreachable"}), says(true, [3]string{"Degraded", "False", "Healthy"}), nil},
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
