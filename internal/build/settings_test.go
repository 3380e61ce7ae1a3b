package build_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	spec := v1alpha1.ValkeyClusterSpec{Config: map[string]v1alpha1.ConfigValue{
		"client-output-buffer-limit": "replica 256mb  64mb 60", "notify-keyspace-events": `""`, "maxmemory": "1gb",
	}}
	want := map[string]string{"client-output-buffer-limit": "replica 256mb 64mb 60", "notify-keyspace-events": "", "maxmemory": "1gb"}
	if diff := cmp.Diff(want, build.Settings(spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnyUsersSettingsAreFoundInTheirFile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cluster := richCluster()
		settings := rapid.MapOf(rapid.StringMatching(`[a-z][a-z0-9-]{0,12}`), rapid.String()).Draw(t, "settings")
		if diff := cmp.Diff(settings, build.SettingsIn(build.ConfigFile(cluster.Spec, settings))); diff != "" {
			t.Fatalf("(-put +found):\n%s", diff)
		}
	})
}

func TestNoSettingsAreFoundInWhatIsNoFileOfOurs(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "maxmemory 1gb\n", "# From spec.config"} {
		if got := build.SettingsIn(file); len(got) != 0 {
			t.Errorf("%q: %v", file, got)
		}
	}
}

func TestConfigRevision(t *testing.T) {
	t.Parallel()
	live := map[string]string{"maxmemory": "1gb"}
	fixed := map[string]string{"io-threads": "4", "maxmemory": "1gb"}
	if got := build.ConfigRevision(live, 0) + build.ConfigRevision(nil, 0); got != "" {
		t.Errorf("without settings for the start alone it is %q", got)
	}
	if a, b := build.ConfigRevision(fixed, 0), build.ConfigRevision(map[string]string{"io-threads": "4"}, 0); a != b || a == "" {
		t.Errorf("settings that are taken live change it: %q, %q", a, b)
	}
	seen := map[string]bool{}
	for _, settings := range []map[string]string{live, fixed, {"io-threads": "3"}, {"io-threads": "4", "databases": "4"}} {
		for number := range 4 {
			seen[build.ConfigRevision(settings, number)] = true
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d revisions are told apart, of 16", len(seen))
	}
}

func TestASettingForTheStartAloneChangesTheTemplate(t *testing.T) {
	t.Parallel()
	cluster := plainCluster()
	before := build.NodeSpec(cluster, 0, 0)
	cluster.Spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": "1gb"}
	if same := build.NodeSpec(cluster, 0, 0); same.Template.Revision != before.Template.Revision {
		t.Error("a setting that is taken live changes the template")
	}
	cluster.ConfigRevision = "0123"
	after := build.NodeSpec(cluster, 0, 0)
	if after.Template.Revision == before.Template.Revision || after.Template.ConfigRevision != "0123" {
		t.Errorf("the template %+v is the same for another file of settings", after.Template)
	}
	workload := build.Workload(build.Member{Name: "prod-0-0", Spec: after})
	text, err := json.Marshal(workload)
	if err != nil || !strings.Contains(string(text), `"/etc/valkey/config/valkey-0123.conf"`) {
		t.Errorf("the pod does not name the file: %v", err)
	}
}
