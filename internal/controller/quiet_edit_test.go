package controller_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/valkey"
)

// An edit that cannot be carried out is told, and looked at again and again: nothing
// is written but what there is to say, and no server is asked over and over.
func TestAnEditThatIsRefusedIsQuiet(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		edit   func(w *world)
		reason string
		asked  int // how often servers may be asked in 50 passes
	}{
		"an older image": {
			edit: func(w *world) { w.setImage("valkey/valkey:8.1.1") }, reason: v1alpha1.ReasonDowngradeRefused,
		},
		"an image that is not there": {
			edit: func(w *world) { w.setImage(brokenImage) }, reason: v1alpha1.ReasonMemberUnreachable,
		},
		"an image, while a server is silent": {
			edit: func(w *world) { w.silence(2, 1); w.setImage(nextImage) }, reason: v1alpha1.ReasonMemberUnreachable,
		},
		"an image, and no pod of it is made": {
			edit: func(w *world) { w.barren = true; w.setImage(nextImage) }, reason: v1alpha1.ReasonMemberUnreachable,
		},
		"a setting that no server knows": {
			edit: func(w *world) { w.configure(config{"maxmemry": "1"}) }, reason: v1alpha1.ReasonConfigRefused, asked: 5,
		},
		"a setting that only some servers take": {
			edit: func(w *world) {
				w.refuse("CONFIG SET maxmemory", w.addressOf(1, 0), w.addressOf(1, 1), w.addressOf(2, 0))
				w.configure(config{"maxmemory": "2000"})
			}, reason: v1alpha1.ReasonConfigRefused, asked: 15,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := formed(t, true)
			w.settle()
			row.edit(w)
			w.rounds(240)
			if told := meta.FindStatusCondition(w.cluster().Status.Conditions, v1alpha1.ConditionDegraded); told.Reason != row.reason {
				t.Errorf("it says %s: %s", told.Reason, told.Message)
			}
			w.tap.log = nil
			w.rounds(50)
			setting := func(what string) bool { return strings.HasPrefix(what, "CONFIG SET") }
			wrote := slices.DeleteFunc(slices.Clone(w.tap.log), setting)
			asked := len(w.tap.log) - len(wrote)
			if len(wrote) > 0 || asked > row.asked {
				t.Errorf("in 50 passes it wrote %q, and asked servers %d times", wrote, asked)
			}
		})
	}
}

// refuse has servers say no to a command for what it is.
func (w *world) refuse(command string, addresses ...string) {
	before := w.servers.Before
	w.servers.Before = func(address, said string) error {
		if err := before(address, said); err != nil {
			return err
		}
		if strings.HasPrefix(said, command) && slices.Contains(addresses, address) {
			return valkey.NewReplyError("ERR CONFIG SET failed (possibly related to argument 'maxmemory') - too much for this worker")
		}
		return nil
	}
}

// silence has a server answer nobody.
func (w *world) silence(shard, node int) {
	for _, at := range w.live {
		if at.shard == shard && at.node == node {
			w.servers.Nodes()[at.server].Silence(true)
		}
	}
}

// addressOf is where a member's server is.
func (w *world) addressOf(shard, node int) string {
	w.t.Helper()
	for _, at := range w.live {
		if at.shard == shard && at.node == node {
			return w.servers.Nodes()[at.server].Address()
		}
	}
	w.t.Fatalf("node %d-%d has no server", shard, node)
	return ""
}
