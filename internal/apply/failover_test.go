package apply

import (
	"testing"
	"time"

	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

// A replica is asked to take over while it is linked to its primary, whatever was
// seen when that was decided.
func TestFailOver(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		happens func(servers *valkeytest.Cluster, primary *valkeytest.Node)
		asked   bool
	}{
		"it is linked":              {func(*valkeytest.Cluster, *valkeytest.Node) {}, true},
		"its primary ended by then": {func(s *valkeytest.Cluster, primary *valkeytest.Node) { primary.Kill(); s.Advance(2 * time.Second) }, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := valkeytest.Formed(valkeytest.Options{}, 3, 1)
			primary, replica := firstPair(t, servers)
			row.happens(servers, primary)
			hands := Applier{Dial: servers.Dial}
			err := hands.do(t.Context(), plan.FailOver{Replica: plan.Server{Node: "prod-0-1", Address: replica.Address()}})
			if (err == nil) != row.asked {
				t.Errorf("it gives %v", err)
			}
		})
	}
}

// firstPair is a replica and the primary that it follows.
func firstPair(t *testing.T, servers *valkeytest.Cluster) (primary, replica *valkeytest.Node) {
	t.Helper()
	for _, replica := range servers.Nodes() {
		myself, _ := replica.View().Myself()
		for _, primary := range servers.Nodes() {
			if myself.PrimaryID == primary.ID() {
				return primary, replica
			}
		}
	}
	t.Fatal("there is no replica")
	return nil, nil
}
