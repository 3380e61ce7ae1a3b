package valkeytest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"valkey.io/valkey-operator/internal/valkey"
)

func TestACloneGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	c := Formed(Options{Seed: 1}, 3, 1)
	write(t, c, 50)
	c.Step()
	views := func(c *Cluster) []valkey.View {
		var views []valkey.View
		for _, n := range c.Nodes() {
			views = append(views, n.View())
		}
		return views
	}
	before := views(c)
	clone := c.Clone()
	if diff := cmp.Diff(before, views(clone)); diff != "" {
		t.Fatalf("the clone differs (-original +clone):\n%s", diff)
	}
	clone.Nodes()[0].Kill()
	clone.Settle()
	if diff := cmp.Diff(before, views(c)); diff != "" {
		t.Errorf("what happened to the clone shows at the original:\n%s", diff)
	}
	if lost := clone.Lost(); len(lost) != 0 {
		t.Errorf("the clone lost %v", lost)
	}
	if role := clone.Nodes()[1].View().Info.Role; role != valkey.RolePrimary {
		t.Errorf("nobody was elected in the clone: %s", role)
	}
}
