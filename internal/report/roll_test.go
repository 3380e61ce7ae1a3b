package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/api/v1alpha1"
)

func TestRollEvents(t *testing.T) {
	t.Parallel()
	at := func(updated int32, stoppedBy string) v1alpha1.ValkeyClusterStatus {
		return v1alpha1.ValkeyClusterStatus{Rollout: &v1alpha1.RolloutStatus{Updated: updated, Members: 6, StoppedBy: stoppedBy}}
	}
	none := v1alpha1.ValkeyClusterStatus{}
	for what, row := range map[string]struct {
		prev, next v1alpha1.ValkeyClusterStatus
		want       []string
	}{
		"none is under way":         {none, none, nil},
		"it begins":                 {none, at(0, ""), []string{"Normal RollingOut the new template is rolled out to 6 members"}},
		"it goes on":                {at(0, ""), at(1, ""), nil},
		"it stops":                  {at(0, ""), at(0, "pod a is broken"), []string{"Warning RolloutStopped nobody else is replaced: pod a is broken"}},
		"it stays stopped":          {at(0, "pod a is broken"), at(0, "pod a is still broken"), nil},
		"it goes on after that":     {at(0, "pod a is broken"), at(0, ""), nil},
		"it ends":                   {at(5, ""), none, []string{"Normal RolledOut no member is behind the newest template any more"}},
		"a stopped one is set back": {at(0, "pod a is broken"), none, []string{"Normal RolledOut no member is behind the newest template any more"}},
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
