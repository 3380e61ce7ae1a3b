package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"pgregory.net/rapid"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// office is a formed cluster of 1x2 whose settings are edited while members crash,
// are rolled, and the operator forgets. Servers take any setting but those with a
// bad value: these they refuse while they run, and end for at a start.
type office struct {
	*rapid.T

	bench    *bench
	now      time.Time
	files    map[string]string
	members  []*desk
	given    map[string]state.GivenSettings
	refusals map[string]state.SettingRefusal
}

// desk is a member: what its node and pod were made from, and what its server has.
type desk struct {
	spec v1alpha1.ValkeyNodeSpec
	file string
	run  int
	has  map[string]string
	down bool
}

const badValue = "bad"

func newOffice(t *rapid.T) *office {
	spec := persistent(1, 2)
	spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": "1", "tcp-backlog": "1"}
	o := &office{T: t, bench: formedBench(spec, 1), now: noon, given: map[string]state.GivenSettings{}, refusals: map[string]state.SettingRefusal{}}
	in := o.bench.input()
	o.files = in.configFiles()
	for _, member := range in.State.Members {
		at := &desk{spec: member.Record.Spec}
		o.members = append(o.members, at)
		o.start(at)
	}
	return o
}

// start runs a member's server on the file that its template names.
func (o *office) start(at *desk) {
	at.file = name.ConfigFile(at.spec.Template.ConfigRevision)
	content, exists := o.files[at.file]
	if !exists {
		o.Fatalf("a member is started on file %s, which is not there", at.file)
	}
	at.run++
	at.has = build.SettingsIn(content)
	at.down = bad(at.has)
}

func bad(settings map[string]string) bool {
	return slices.Contains(slices.Collect(maps.Values(settings)), badValue)
}

func (o *office) input() Input {
	in := o.bench.input()
	in.Spec = o.bench.spec
	in.State.Now, in.State.ConfigFiles = o.now, o.files
	in.State.Given, in.State.SettingRefusals = maps.Clone(o.given), maps.Clone(o.refusals)
	in.State.Objects["ConfigMap/"+name.Service("prod")] = state.Object{Digest: state.Digest(build.ConfigMap(in.build(), o.files))}
	for i, at := range o.members {
		member := &in.State.Members[i]
		member.Record.Spec, member.Pods[0].ConfigFile = at.spec, at.file
		member.Server.Value.Info.RunID = fmt.Sprint("run ", at.run)
		if at.down {
			member.Server = state.Unknown[valkey.View]("it has ended")
			member.Record.Status.PodUID = member.Pods[0].UID
			member.Record.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionWorkloadReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonConfigRefused,
			}}
		}
	}
	return in
}

// pass has the operator do what it wants about settings, and says whether it did anything.
func (o *office) pass() bool {
	in := o.input()
	made := plan.Make([]plan.Track[Input]{
		{Name: "objects", Rules: []plan.Rule[Input]{{Name: "objectsCurrent", Judge: objectsCurrent}}},
		{Name: "settings", Rules: []plan.Rule[Input]{{Judge: settingsAccepted}, {Judge: settingsGiven}}},
	}, in)
	did := false
	for _, action := range made.Actions() {
		switch act := action.(type) {
		case plan.Ensure:
			if config, is := act.Config.(*corev1ac.ConfigMapApplyConfiguration); is {
				next := configFilesOf(config)
				did = did || !maps.Equal(next, o.files)
				o.write(next)
			}
		case plan.SetConfig:
			did = true
			o.set(act)
		}
	}
	return did
}

// write replaces the files. No member that runs may be started on what would end it.
func (o *office) write(files map[string]string) {
	for i, at := range o.members {
		content, exists := files[at.file]
		if !exists {
			o.Fatalf("file %s of member %d is gone", at.file, i)
		}
		if !at.down && bad(build.SettingsIn(content)) {
			o.Fatalf("file %s of member %d, which runs, got a bad setting:\n%s", at.file, i, content)
		}
	}
	o.files = files
}

func (o *office) set(act plan.SetConfig) {
	for i, at := range o.members {
		if o.bench.input().State.Members[i].Name != act.To.Node {
			continue
		}
		if at.down || act.Run != fmt.Sprint("run ", at.run) {
			o.Fatalf("%s, which is another process", act)
		}
		if bad(act.Settings) {
			o.refusals[act.To.Node] = state.SettingRefusal{Node: act.To.Node, Settings: act.Settings, Message: "no", At: o.now}
			return
		}
		maps.Copy(at.has, act.Settings)
		o.given[act.To.Node] = state.GivenSettings{RunID: act.Run, Settings: act.Settings}
	}
}

// roll replaces the next member that is behind, those that are down first, and
// nobody while one is down with the newest template.
func (o *office) roll() bool {
	in := o.input()
	if objects := in.configFiles(); !maps.Equal(objects, o.files) {
		return false // nodes come after the files
	}
	slow := -1
	for i, at := range o.members {
		switch want := build.NodeSpec(in.build(), 0, i); {
		case at.spec.Template.Revision == want.Template.Revision && at.down:
			return false
		case at.spec.Template.Revision != want.Template.Revision && (slow < 0 || at.down):
			slow = i
		}
	}
	if slow < 0 {
		return false
	}
	o.members[slow].spec = build.NodeSpec(in.build(), 0, slow)
	o.start(o.members[slow])
	return true
}

// edit is one of a user's: of a setting, of the image, or of both.
func (o *office) edit() {
	if rapid.IntRange(0, 4).Draw(o.T, "image") == 0 {
		o.bench.spec.Image = rapid.SampledFrom([]string{"valkey/valkey:9.1.2", "valkey/valkey:9.1.3"}).Draw(o.T, "tag")
	}
	config := maps.Clone(o.bench.spec.Config)
	setting := rapid.SampledFrom([]string{"hz", "maxmemory", "maxmemory", "tcp-backlog"}).Draw(o.T, "setting")
	config[setting] = rapid.SampledFrom([]v1alpha1.ConfigValue{"", "1", "2", badValue}).Draw(o.T, "value")
	if config[setting] == "" {
		delete(config, setting)
	}
	o.bench.spec.Config = config
}

// mend replaces the bad values.
func (o *office) mend() {
	config := maps.Clone(o.bench.spec.Config)
	for setting, value := range config {
		if value == badValue {
			config[setting] = "3"
		}
	}
	o.bench.spec.Config = config
}

func TestAnyEditsOfSettings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOffice(t)
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			o.now = o.now.Add(10 * time.Second)
			switch rapid.IntRange(0, 7).Draw(t, "turn") {
			case 0, 7:
				o.edit()
			case 1:
				o.start(o.members[rapid.IntRange(0, 2).Draw(t, "crash")])
			case 2:
				o.given, o.refusals = map[string]state.GivenSettings{}, map[string]state.SettingRefusal{}
			case 3:
				o.roll()
			default:
				o.pass()
			}
		}
		o.mend()
		o.mustEnd()
	})
}

// mustEnd expects that everybody gets the settings that the user has settled on, and
// that one file is left.
func (o *office) mustEnd() {
	for range 40 {
		o.now = o.now.Add(10 * time.Second)
		if moved := o.pass(); !o.roll() && !moved {
			break
		}
	}
	want := build.Settings(o.bench.spec)
	for i, at := range o.members {
		if at.down || !maps.Equal(at.has, want) || at.spec.Template.Image != o.bench.spec.Image {
			o.Errorf("member %d has %v, down %t, on %s; wanted %v", i, at.has, at.down, at.file, want)
		}
	}
	if len(o.files) != 1 || o.pass() || o.roll() {
		o.Errorf("it has not ended: %d files", len(o.files))
	}
}
