package controller_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"valkey.io/valkey-operator/api/v1alpha1"
)

type config = map[string]v1alpha1.ConfigValue

// configured is a settled world with a setting of each kind.
func configured(t *testing.T, shards, replicas int32) *world {
	t.Helper()
	spec := persistent(shards, replicas)
	spec.Config = config{"maxmemory": "1000", "tcp-backlog": "128"}
	return settledWorld(t, spec)
}

func (w *world) configure(settings config) {
	w.t.Helper()
	w.edit(func(spec *v1alpha1.ValkeyClusterSpec) { spec.Config = settings })
}

// everybodyHas expects all servers to have settings, and the ConfigMap one file.
func everybodyHas(t *testing.T, end picture, settings, file string) {
	t.Helper()
	for node, m := range end.Members {
		if m.Settings != settings {
			t.Errorf("node %s has %s, want %s", node, m.Settings, settings)
		}
	}
	if diff := cmp.Diff([]string{file}, end.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestKilledWhileSettingsChange(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		asked         config
		servers, file string
		sameUIDs      bool
	}{
		"that servers take while they run": {
			asked:   config{"maxmemory": "2000", "maxmemory-policy": "allkeys-lru", "tcp-backlog": "128"},
			servers: "maxmemory 2000, maxmemory-policy allkeys-lru, tcp-backlog 128", file: "maxmemory 2000, maxmemory-policy allkeys-lru, tcp-backlog 128",
			sameUIDs: true,
		},
		"that only a start takes": {
			asked:   config{"maxmemory": "1000", "tcp-backlog": "64"},
			servers: "maxmemory 1000, maxmemory-policy noeviction, tcp-backlog 64", file: "maxmemory 1000, tcp-backlog 64",
		},
		"of both kinds": {
			asked:   config{"maxmemory": "2000", "tcp-backlog": "64"},
			servers: "maxmemory 2000, maxmemory-policy noeviction, tcp-backlog 64", file: "maxmemory 2000, tcp-backlog 64",
		},
		"by their removal": {
			asked:   config{"tcp-backlog": "128"},
			servers: "maxmemory 0, maxmemory-policy noeviction, tcp-backlog 128", file: "tcp-backlog 128",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := configured(t, 2, 1)
			before, uids := w.picture(), w.podUIDs()
			w.configure(row.asked)
			surviveKills(t, w, func(t *testing.T, end picture) {
				t.Helper()
				sameMembers(t, before, end)
				everybodyHas(t, end, row.servers, row.file)
			})
			if same := cmp.Equal(uids, w.podUIDs()); same != row.sameUIDs {
				t.Errorf("all pods are the same: %t", same)
			}
		})
	}
}

// Settings and image come together: no server of the former image is given them.
func TestSettingsThatComeWithAnImageGoWithIt(t *testing.T) {
	t.Parallel()
	w := configured(t, 1, 1)
	w.edit(func(spec *v1alpha1.ValkeyClusterSpec) {
		spec.Image, spec.Config = nextImage, config{"maxmemory": "2000", "tcp-backlog": "128"}
	})
	w.tap.watch = func(when, what string) {
		if w.images()[nextImage] == 0 && strings.HasPrefix(what, "CONFIG SET") && strings.Contains(what, "2000") {
			t.Errorf("%s of an image that no pod has yet: %s", when, what)
		}
	}
	w.settle()
	everybodyHas(t, w.picture(), "maxmemory 2000, maxmemory-policy noeviction, tcp-backlog 128", "maxmemory 2000, tcp-backlog 128")
}

// A setting that servers refuse stays out of the file and changes nothing. It is
// told in their words, and mending the spec ends that.
func TestASettingThatServersRefuse(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		bad   config
		words string
	}{
		"since they know none of that name": {bad: config{"maxmemory": "1000", "tcp-backlog": "128", "maxmemry": "1"}, words: "'maxmemry'"},
		"since its value is none":           {bad: config{"maxmemory": "much", "tcp-backlog": "128"}, words: "argument must be a memory value"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := configured(t, 1, 1)
			uids, had := w.podUIDs(), w.picture()
			w.configure(row.bad)
			w.rounds(40)
			w.tellsRefusal(row.words)
			if !meta.IsStatusConditionTrue(w.cluster().Status.Conditions, v1alpha1.ConditionReady) {
				t.Error("it is not Ready")
			}
			if now := w.picture(); !cmp.Equal(now.Files, had.Files) || !cmp.Equal(now.Members, had.Members) {
				t.Errorf("something changed: %v %v", now.Files, now.Members)
			}
			tries := len(slices.DeleteFunc(slices.Clone(w.tap.log), func(write string) bool { return !strings.HasPrefix(write, "CONFIG SET") }))
			if tries < 2 || tries > 8 {
				t.Errorf("it was tried %d times in 40 s", tries)
			}
			w.configure(config{"maxmemory": "2000", "tcp-backlog": "128"})
			w.settle()
			everybodyHas(t, w.picture(), "maxmemory 2000, maxmemory-policy noeviction, tcp-backlog 128", "maxmemory 2000, tcp-backlog 128")
			if !cmp.Equal(uids, w.podUIDs()) {
				t.Error("pods were replaced")
			}
		})
	}
}

// A setting that keeps servers from starting takes one member away and no more.
func TestASettingThatKeepsServersFromStarting(t *testing.T) {
	t.Parallel()
	w := configured(t, 2, 1)
	uids, before := w.podUIDs(), w.picture()
	w.configure(config{"maxmemory": "1000", "tcp-backlog": badBacklog})
	w.rounds(60)
	w.tellsRefusal("'tcp-backlog many' argument couldn't be parsed")
	gone := 0
	for node, uid := range w.podUIDs() {
		if uids[node] != uid {
			gone++
		}
	}
	if gone != 1 {
		t.Errorf("%d pods were replaced", gone)
	}
	w.configure(config{"maxmemory": "1000", "tcp-backlog": "128"})
	w.settle()
	sameMembers(t, before, w.picture())
	everybodyHas(t, w.picture(), "maxmemory 1000, maxmemory-policy noeviction, tcp-backlog 128", "maxmemory 1000, tcp-backlog 128")
}

// An operator that has just started gives all settings once, and a settled
// cluster is sent nothing.
func TestSettingsAreGivenOnce(t *testing.T) {
	t.Parallel()
	w := configured(t, 1, 1)
	w.startOperator()
	w.settle()
	if want := []string{"CONFIG SET maxmemory 1000", "CONFIG SET maxmemory 1000"}; !cmp.Equal(want, w.tap.log) {
		t.Errorf("it wrote %q", w.tap.log)
	}
	w.rounds(5)
	if len(w.tap.log) != 2 {
		t.Errorf("it went on to write %q", w.tap.log)
	}
}

// tellsRefusal expects the status to quote a server that refuses a setting.
func (w *world) tellsRefusal(words string) {
	w.t.Helper()
	degraded := meta.FindStatusCondition(w.cluster().Status.Conditions, v1alpha1.ConditionDegraded)
	if degraded.Reason != v1alpha1.ReasonConfigRefused || !strings.Contains(degraded.Message, words) || !strings.Contains(degraded.Message, "node prod-") {
		w.t.Errorf("it says %s: %s", degraded.Reason, degraded.Message)
	}
}
