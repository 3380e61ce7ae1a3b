package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
)

// configFilesOf are the files of settings in a ConfigMap.
func configFilesOf(config *corev1ac.ConfigMapApplyConfiguration) map[string]string {
	files := maps.Clone(config.Data)
	delete(files, name.KeyMembers)
	return files
}

// configured is a spec with settings, one of them for the start alone.
func configured(shards, replicas int32) v1alpha1.ValkeyClusterSpec {
	spec := persistent(shards, replicas)
	spec.Config = map[string]v1alpha1.ConfigValue{"maxmemory": "1gb", "tcp-backlog": "128"}
	return spec
}

// reconfigure edits spec.config; an empty value removes a setting.
func reconfigure(changes map[string]v1alpha1.ConfigValue) func(*Input) {
	return func(in *Input) {
		config := maps.Clone(in.Spec.Config)
		for setting, value := range changes {
			config[setting] = value
			if value == "" {
				delete(config, setting)
			}
		}
		in.Spec.Config = config
	}
}

// accepting has a member remember that its server was given the spec's settings.
func accepting(places ...int) func(*Input) {
	return func(in *Input) {
		for _, place := range places {
			member := in.State.Members[place]
			if in.State.Given == nil {
				in.State.Given = map[string]state.GivenSettings{}
			}
			in.State.Given[member.Name] = state.GivenSettings{RunID: member.Server.Value.Info.RunID, Settings: in.live()}
		}
	}
}

// refusing has a server's refusal of the spec's settings be remembered.
func refusing(place int, ago time.Duration) func(*Input) {
	return func(in *Input) {
		if in.State.SettingRefusals == nil {
			in.State.SettingRefusals = map[string]state.SettingRefusal{}
		}
		node := in.State.Members[place].Name
		in.State.SettingRefusals[node] = state.SettingRefusal{
			Node: node, Settings: in.live(), Message: "CONFIG SET failed: no", At: in.State.Now.Add(-ago),
		}
	}
}

// blank makes it a cluster that has not formed, and has no key.
func blank(in *Input) {
	in.State.Status.Formed = false
	for i := range in.State.Members {
		in.State.Members[i].Server.Value.Info.Keys = 0
	}
}

// inTurn makes several edits.
func inTurn(edits ...func(*Input)) func(*bench) {
	return func(b *bench) { b.edits = append(b.edits, edits...) }
}

var bigger = reconfigure(map[string]v1alpha1.ConfigValue{"maxmemory": "2gb"})

func TestSettingsAccepted(t *testing.T) {
	t.Parallel()
	first := []string{"settled ConfigApplying", "give node prod-0-1 the settings maxmemory"}
	refused := []string{"blocked ConfigRefused"}
	play(t, settingsAccepted, map[string]scene{
		"nothing changed": {spec: configured(1, 1), want: []string{"settled"}},
		"a setting changed: a replica is the first":     {spec: configured(1, 1), happens: inTurn(bigger), want: first},
		"without replicas a primary is":                 {spec: configured(1, 0), happens: inTurn(bigger), want: []string{"settled ConfigApplying", "give node prod-0-0 the settings maxmemory"}},
		"the first has accepted":                        {spec: configured(1, 1), happens: inTurn(bigger, accepting(1)), want: []string{"settled"}},
		"what an earlier process accepted is forgotten": {spec: configured(1, 1), happens: inTurn(bigger, accepting(1), ranBefore(1)), want: first},
		"the first has accepted something else":         {spec: configured(1, 1), happens: inTurn(accepting(1), bigger), want: first},
		"a new setting": {spec: configured(1, 1), happens: inTurn(reconfigure(map[string]v1alpha1.ConfigValue{"hz": "20"})), want: []string{
			"settled ConfigApplying", "give node prod-0-1 the settings hz, maxmemory",
		}},
		"it was refused":                           {spec: configured(1, 1), happens: inTurn(bigger, refusing(1, time.Second)), want: refused},
		"it was refused a while ago":               {spec: configured(1, 1), happens: inTurn(bigger, refusing(1, time.Minute)), want: append(refused, first[1])},
		"something else was refused":               {spec: configured(1, 1), happens: inTurn(refusing(1, time.Second), bigger), want: first},
		"the cluster has not formed":               {spec: configured(1, 1), fresh: true, happens: inTurn(bigger), want: []string{"settled"}},
		"a setting for the start alone has a file": {spec: configured(1, 1), happens: inTurn(reconfigure(map[string]v1alpha1.ConfigValue{"tcp-backlog": "64"})), want: []string{"settled"}},
		"a removed setting has a file":             {spec: configured(1, 1), happens: inTurn(reconfigure(map[string]v1alpha1.ConfigValue{"maxmemory": ""})), want: []string{"settled"}},
		"nobody answers": {spec: configured(1, 1), happens: func(b *bench) {
			b.kill(0, 0, "")
			b.kill(0, 1, "")
			inTurn(bigger)(b)
		}, want: []string{"wait ConfigApplying"}},
		"a replica that is away is not waited for": {spec: configured(1, 1), happens: func(b *bench) {
			b.kill(0, 1, "")
			inTurn(bigger)(b)
		}, want: []string{"settled ConfigApplying", "give node prod-0-0 the settings maxmemory"}},
		"whoever was started on another file is passed over": {spec: configured(1, 1), happens: inTurn(bigger, startedOnFile(1, "valkey.conf")), want: []string{
			"settled ConfigApplying", "give node prod-0-0 the settings maxmemory",
		}},
	})
}

func ranBefore(place int) func(*Input) {
	return func(in *Input) {
		given := in.State.Given[in.State.Members[place].Name]
		given.RunID = "an earlier one"
		in.State.Given[in.State.Members[place].Name] = given
	}
}

func startedOnFile(place int, file string) func(*Input) {
	return func(in *Input) { in.State.Members[place].Pods[0].ConfigFile = file }
}

func TestSettingsGiven(t *testing.T) {
	t.Parallel()
	everybody := []string{"settled", "give node prod-0-1 the settings maxmemory", "give node prod-0-0 the settings maxmemory"}
	play(t, settingsGiven, map[string]scene{
		"an operator that has just started gives all once": {spec: configured(1, 1), want: everybody},
		"everybody has them":                 {spec: configured(1, 1), happens: inTurn(accepting(0, 1)), want: []string{"settled"}},
		"there are none":                     {spec: persistent(1, 1), want: []string{"settled"}},
		"there are none that are taken live": {spec: configured(1, 1), happens: inTurn(onlyForTheStart), want: []string{"settled"}},
		"the first has accepted": {spec: configured(1, 1), happens: inTurn(bigger, accepting(1)), want: []string{
			"settled ConfigApplying", "give node prod-0-0 the settings maxmemory",
		}},
		"a server that was restarted gets them again": {spec: configured(1, 1), happens: inTurn(accepting(0, 1), ranBefore(0)), want: []string{
			"settled", "give node prod-0-0 the settings maxmemory",
		}},
		"another one refuses them":             {spec: configured(1, 1), happens: inTurn(bigger, accepting(1), refusing(0, time.Second)), want: []string{"blocked ConfigRefused"}},
		"so do two, who are not asked in turn": {spec: configured(1, 2), happens: inTurn(bigger, accepting(1), refusing(0, time.Second), refusing(2, time.Second)), want: []string{"blocked ConfigRefused"}},
		"and is asked again later": {spec: configured(1, 1), happens: inTurn(bigger, accepting(1), refusing(0, time.Minute)), want: []string{
			"blocked ConfigRefused", "give node prod-0-0 the settings maxmemory",
		}},
		"who refused them has them by now": {spec: configured(1, 1), happens: inTurn(bigger, accepting(0, 1), refusing(0, time.Second)), want: []string{"settled"}},
		"the cluster has not formed":       {spec: configured(1, 1), fresh: true, want: []string{"settled"}},
		"a member of another file waits for its start": {spec: configured(1, 1), happens: inTurn(startedOnFile(0, "valkey-old.conf")), want: []string{
			"settled", "give node prod-0-1 the settings maxmemory",
		}},
	})
}

func onlyForTheStart(in *Input) {
	reconfigure(map[string]v1alpha1.ConfigValue{"maxmemory": ""})(in)
	*in = observed(*in)
	for i := range in.State.Members {
		in.State.Members[i].Record.Spec = build.NodeSpec(in.build(), in.State.Members[i].Shard, in.State.Members[i].Node)
		in.State.Members[i].Pods[0].ConfigFile = name.ConfigFile(in.configRevision())
	}
}

// observed is an input in which the ConfigMap is as wanted.
func observed(in Input) Input {
	in.State.ConfigFiles = in.configFiles()
	return in
}

// TestFilesOfSettings shows which file members shall be started on after an edit,
// and what the ConfigMap has then.
func TestFilesOfSettings(t *testing.T) {
	t.Parallel()
	resources := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}}
	for what, row := range map[string]struct {
		edits []func(*Input)
		// moves says whether members are to be started on another file; files are the
		// settings in each file, the wanted one first.
		moves bool
		files []string
	}{
		"nothing changed": {files: []string{"maxmemory 1gb, tcp-backlog 128"}},
		"a live setting waits until a server accepts it": {edits: []func(*Input){bigger}, files: []string{"maxmemory 1gb, tcp-backlog 128"}},
		"an accepted one is in the file":                 {edits: []func(*Input){bigger, accepting(1)}, files: []string{"maxmemory 2gb, tcp-backlog 128"}},
		"a refused one is not":                           {edits: []func(*Input){bigger, refusing(1, 0)}, files: []string{"maxmemory 1gb, tcp-backlog 128"}},
		"before the cluster has formed all are": {
			edits: []func(*Input){blank, bigger}, files: []string{"maxmemory 2gb, tcp-backlog 128"},
		},
		"but not when merely its status is lost": {
			edits: []func(*Input){func(in *Input) { in.State.Status.Formed = false }, bigger}, files: []string{"maxmemory 1gb, tcp-backlog 128"},
		},
		"one for the start has a file of its own": {
			edits: []func(*Input){reconfigure(map[string]v1alpha1.ConfigValue{"tcp-backlog": "64"})}, moves: true,
			files: []string{"maxmemory 1gb, tcp-backlog 64", "maxmemory 1gb, tcp-backlog 128"},
		},
		"a live one beside it goes there": {
			edits: []func(*Input){reconfigure(map[string]v1alpha1.ConfigValue{"tcp-backlog": "64", "maxmemory": "2gb"})}, moves: true,
			files: []string{"maxmemory 2gb, tcp-backlog 64", "maxmemory 1gb, tcp-backlog 128"},
		},
		"a removed one": {
			edits: []func(*Input){reconfigure(map[string]v1alpha1.ConfigValue{"maxmemory": ""})}, moves: true,
			files: []string{"tcp-backlog 128", "maxmemory 1gb, tcp-backlog 128"},
		},
		"all removed": {
			edits: []func(*Input){func(in *Input) { in.Spec.Config = nil }}, moves: true,
			files: []string{"", "maxmemory 1gb, tcp-backlog 128"},
		},
		"a new one that was never accepted is removed again": {
			edits: []func(*Input){reconfigure(map[string]v1alpha1.ConfigValue{"hz": "20"}), reconfigure(map[string]v1alpha1.ConfigValue{"hz": ""})},
			files: []string{"maxmemory 1gb, tcp-backlog 128"},
		},
		"a new one that the first accepted is removed again": {
			edits: []func(*Input){reconfigure(map[string]v1alpha1.ConfigValue{"hz": "20"}), accepting(1), reconfigure(map[string]v1alpha1.ConfigValue{"hz": ""})}, moves: true,
			files: []string{"maxmemory 1gb, tcp-backlog 128", "maxmemory 1gb, tcp-backlog 128"},
		},
		"another image alone": {
			edits: []func(*Input){func(in *Input) { in.Spec.Image = "valkey/valkey:9.2.0" }}, files: []string{"maxmemory 1gb, tcp-backlog 128"},
		},
		"another image and a live setting": {
			edits: []func(*Input){func(in *Input) { in.Spec.Image = "valkey/valkey:9.2.0" }, bigger}, moves: true,
			files: []string{"maxmemory 2gb, tcp-backlog 128", "maxmemory 1gb, tcp-backlog 128"},
		},
		"other resources and a live setting": {
			edits: []func(*Input){func(in *Input) { in.Spec.Resources = resources }, bigger}, moves: true,
			files: []string{"maxmemory 2gb, tcp-backlog 128", "maxmemory 1gb, tcp-backlog 128"},
		},
		"both undone": {
			edits: []func(*Input){
				func(in *Input) { in.Spec.Image = "valkey/valkey:9.2.0" }, bigger, see, func(in *Input) { in.Spec.Image = "valkey/valkey:9.1.2" },
				reconfigure(map[string]v1alpha1.ConfigValue{"maxmemory": "1gb"}),
			}, files: []string{"maxmemory 1gb, tcp-backlog 128"},
		},
		"a file that nobody is started on any more is dropped": {
			edits: []func(*Input){reconfigure(map[string]v1alpha1.ConfigValue{"tcp-backlog": "64"}), see, rollAll}, files: []string{"maxmemory 1gb, tcp-backlog 64"},
		},
		"one that a pod still has stays": {
			edits: []func(*Input){reconfigure(map[string]v1alpha1.ConfigValue{"tcp-backlog": "64"}), see, rollAll, startedOnFile(0, name.ConfigFile(build.ConfigRevision(map[string]string{"tcp-backlog": "128"}, 0)))},
			files: []string{"maxmemory 1gb, tcp-backlog 64", "maxmemory 1gb, tcp-backlog 128"},
		},
		"a lost ConfigMap comes back": {
			edits: []func(*Input){func(in *Input) { in.State.ConfigFiles = nil }}, files: []string{"maxmemory 1gb, tcp-backlog 128"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			in := formedBench(configured(1, 1), 1).input()
			for _, edit := range row.edits {
				edit(&in)
			}
			files, wanted := in.configFiles(), name.ConfigFile(in.configRevision())
			if moved := in.moves(); moved != row.moves {
				t.Errorf("members are to be started on another file: %t, now %s", moved, wanted)
			}
			if diff := cmp.Diff(row.files, contents(files, wanted)); diff != "" {
				t.Errorf("files, the wanted one first (-want +got):\n%s", diff)
			}
			if again := observed(in); again.configRevision() != in.configRevision() || !cmp.Equal(again.configFiles(), files) {
				t.Errorf("once they are there, others are wanted: %q, then %q", in.configRevision(), again.configRevision())
			}
		})
	}
}

// moves says whether members are to be started on another file.
func (in Input) moves() bool {
	return slices.ContainsFunc(in.State.Members, func(member state.Member) bool {
		return member.Record.Spec.Template.ConfigRevision != in.configRevision()
	})
}

// see has the operator have written what it wants of the ConfigMap.
func see(in *Input) { *in = observed(*in) }

// rollAll has all members be started on the wanted file.
func rollAll(in *Input) {
	for i := range in.State.Members {
		member := &in.State.Members[i]
		member.Record.Spec = build.NodeSpec(in.build(), member.Shard, member.Node)
		member.Pods[0].ConfigFile = name.ConfigFile(in.configRevision())
	}
}

// contents are the user's settings in files, those of one file first.
func contents(files map[string]string, first string) []string {
	var rest []string
	for file, content := range files {
		if file != first {
			rest = append(rest, inWords(build.SettingsIn(content)))
		}
	}
	return append([]string{inWords(build.SettingsIn(files[first]))}, rest...)
}

func inWords(settings map[string]string) string {
	var words []string
	for _, setting := range []string{"hz", "maxmemory", "tcp-backlog"} {
		if argument, has := settings[setting]; has {
			words = append(words, setting+" "+argument)
		}
	}
	return strings.Join(words, ", ")
}

func TestSettingRefusalIn(t *testing.T) {
	t.Parallel()
	gave := plan.SetConfig{To: plan.Server{Node: "prod-0-1"}, Settings: map[string]string{"hz": "0"}}
	refusal := &plan.Refusal{Reason: v1alpha1.ReasonConfigRefused, Message: "CONFIG SET failed"}
	for what, row := range map[string]struct {
		outcome plan.Outcome
		want    bool
	}{
		"nothing was done":      {},
		"it was accepted":       {outcome: plan.Outcome{{Rule: RuleSettingsAccepted, Done: 1}}},
		"it was refused":        {outcome: plan.Outcome{{Rule: RuleSettingsAccepted, Err: refusal, At: gave}}, want: true},
		"another one refused":   {outcome: plan.Outcome{{Rule: RuleSettingsGiven, Err: refusal, At: gave}}, want: true},
		"the server was silent": {outcome: plan.Outcome{{Rule: RuleSettingsGiven, Err: t.Context().Err(), At: gave}}},
		"something else was":    {outcome: plan.Outcome{{Rule: RuleSizesCurrent, Err: refusal, At: plan.TryExpandClaim{}}}},
	} {
		got, is := SettingRefusalIn(row.outcome)
		if is != row.want || is && (got.Node != "prod-0-1" || got.Message != "CONFIG SET failed" || !cmp.Equal(got.Settings, gave.Settings)) {
			t.Errorf("%s: %+v, %t", what, got, is)
		}
	}
}

func TestImageReadsData(t *testing.T) {
	t.Parallel()
	image := func(image string) func(*Input) { return func(in *Input) { in.Spec.Image = image } }
	refused := []string{"blocked DowngradeRefused"}
	fine := []string{"settled"}
	play(t, imageReadsData, map[string]scene{
		"the same image":                      {spec: persistent(1, 1), want: fine},
		"a newer one":                         {spec: persistent(1, 1), happens: inTurn(image("valkey/valkey:9.2.0")), want: fine},
		"an older one of the same format":     {spec: persistent(1, 1), happens: inTurn(image("valkey/valkey:9.0.1")), want: fine},
		"one of an older format":              {spec: persistent(1, 1), happens: inTurn(image("valkey/valkey:8.1.1")), want: refused},
		"with more in its tag":                {spec: persistent(1, 1), happens: inTurn(image("mirror.example:5000/valkey/valkey:8.1.1-alpine@sha256:00")), want: refused},
		"and without volumes":                 {spec: ephemeral(1, 1), happens: inTurn(image("valkey/valkey:8")), want: refused},
		"a tag that says nothing":             {spec: persistent(1, 1), happens: inTurn(image("valkey/valkey:stable")), want: fine},
		"a digest":                            {spec: persistent(1, 1), happens: inTurn(image("valkey/valkey@sha256:00")), want: fine},
		"no tag":                              {spec: persistent(1, 1), happens: inTurn(image("mirror.example:5000/valkey")), want: fine},
		"the cluster has no data yet":         {spec: persistent(1, 1), fresh: true, happens: inTurn(image("valkey/valkey:8.1.1")), want: fine},
		"the members have that image already": {spec: persistent(1, 1), happens: inTurn(image("valkey/valkey:8.1.1"), rollAll), want: fine},
		"what the servers are is not known":   {spec: persistent(1, 0), happens: func(b *bench) { b.kill(0, 0, ""); inTurn(image("valkey/valkey:8.1.1"))(b) }, want: fine},
	})
}
