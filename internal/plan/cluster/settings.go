package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// Names of the rules about settings.
const (
	RuleSettingsAccepted = "settingsAccepted"
	RuleSettingsGiven    = "settingsGiven"
)

// configRevision names the file of settings that members shall be started on. A
// file is kept for as long as what the spec asks for can be reached from it
// without a start: of several, the one that most members were started on. Else
// there is a new one, and every member is to be started on it.
func (in Input) configRevision() string {
	if in.revisions != nil {
		return in.revisions.config
	}
	best, most := "", -1
	started := in.configRevisions()
	for _, revision := range slices.Sorted(maps.Keys(started)) {
		if started[revision] > most && in.reachable(revision, started[revision] > 0) {
			best, most = revision, started[revision]
		}
	}
	if most >= 0 {
		return best
	}
	settings := build.Settings(in.Spec)
	for number := 0; ; number++ {
		fresh := build.ConfigRevision(settings, number)
		if _, taken := started[fresh]; !taken {
			return fresh
		}
	}
}

// configRevisions are those that there is a file of, or should be, and how many
// members' templates name each.
func (in Input) configRevisions() map[string]int {
	started := map[string]int{}
	for file := range in.State.ConfigFiles {
		if revision, is := name.ConfigRevision(file); is {
			started[revision] = 0
		}
	}
	for i := range in.State.Members {
		if member := &in.State.Members[i]; member.Wanted && member.Record != nil {
			started[member.Record.Spec.Template.ConfigRevision]++
		}
	}
	return started
}

// reachable says whether servers that were started on a file can be given the
// spec's settings while they run. They cannot what only a start takes, nor lose a
// setting: its default comes back with a start alone. And settings that come with
// another image or other resources may need these, so that a member gets both at
// once; and a server that does not start with a file can be given nothing. A file that is gone is written anew if some template names it.
func (in Input) reachable(revision string, named bool) bool {
	want := build.Settings(in.Spec)
	file, exists := in.State.ConfigFiles[name.ConfigFile(revision)]
	if !exists {
		return named && namesStart(revision, want)
	}
	have := build.SettingsIn(file)
	if !sameAtStart(have, want) || !covers(want, have) {
		return false
	}
	changed := !maps.Equal(have, want)
	if changed && !named {
		return false // nobody is there to try them, and nobody loses anything
	}
	return !in.anyOn(revision, func(member *state.Member) bool {
		given, _ := in.givenTo(member)
		return !covers(want, given) || changed && (in.alsoTemplate(member) || in.keptFromStarting(member))
	})
}

// anyOn says whether something holds for a member whose template names a revision.
func (in Input) anyOn(revision string, holds func(*state.Member) bool) bool {
	for i := range in.State.Members {
		member := &in.State.Members[i]
		if member.Record != nil && member.Record.Spec.Template.ConfigRevision == revision && holds(member) {
			return true
		}
	}
	return false
}

// keptFromStarting says whether a member's server does not start with the file that
// its template names, as its node says of the very pod that is there. Nobody can
// give it others.
func (in Input) keptFromStarting(member *state.Member) bool {
	pod, one := state.LivePod(member.Pods)
	return one && says(*member, v1alpha1.ReasonConfigRefused) && member.Record.Status.PodUID == pod.UID &&
		pod.ConfigFile == name.ConfigFile(member.Record.Spec.Template.ConfigRevision)
}

// alsoTemplate says whether the spec asks for another image or other resources
// than a member has.
func (in Input) alsoTemplate(member *state.Member) bool {
	template := member.Record.Spec.Template
	return template.Image != in.Spec.Image || !equality.Semantic.DeepEqual(template.Resources, in.Spec.Resources)
}

// mostNumbers bounds how many files with the same settings for the start are
// told apart: each needs a removal that members have not been rolled for yet.
const mostNumbers = 16

// namesStart says whether a revision is of settings that are for the start alone.
func namesStart(revision string, settings map[string]string) bool {
	for number := range mostNumbers {
		if build.ConfigRevision(settings, number) == revision {
			return true
		}
	}
	return false
}

// sameAtStart says whether two sets of settings ask the same of a start.
func sameAtStart(a, b map[string]string) bool {
	return build.ConfigRevision(a, 0) == build.ConfigRevision(b, 0)
}

// covers says whether a set of settings has all that another one has, with
// whatever values.
func covers(all, some map[string]string) bool {
	for setting := range some {
		if _, has := all[setting]; !has {
			return false
		}
	}
	return true
}

// configFiles are the files that the ConfigMap shall have: the one that members
// shall be started on, and, word for word, those that some are still started on.
// What no server has accepted comes into no file that a formed cluster's member
// may be started on at any moment.
func (in Input) configFiles() map[string]string {
	revision := in.configRevision()
	wanted := name.ConfigFile(revision)
	settings := build.Settings(in.Spec)
	if file, exists := in.State.ConfigFiles[wanted]; exists && in.hasServed() && !in.accepted(revision) {
		settings = build.SettingsIn(file)
	}
	files := map[string]string{wanted: build.ConfigFile(in.Spec, settings)}
	for _, file := range in.filesInUse() {
		content, exists := in.State.ConfigFiles[file]
		if exists && file != wanted {
			files[file] = content
		}
	}
	return files
}

// filesInUse are the files that some member's template or pod names.
func (in Input) filesInUse() []string {
	var files []string
	for _, member := range in.State.Members {
		if member.Record != nil {
			files = append(files, name.ConfigFile(member.Record.Spec.Template.ConfigRevision))
		}
		for _, pod := range member.Pods {
			files = append(files, pod.ConfigFile)
		}
	}
	return files
}

// live are the settings of the spec that servers take while they run.
func (in Input) live() map[string]string {
	live := build.Settings(in.Spec)
	maps.DeleteFunc(live, func(setting, _ string) bool { return valkey.RestartOnly(setting) })
	return live
}

// inFile says whether the file of a revision has the spec's settings.
func (in Input) inFile(revision string) bool {
	file, exists := in.State.ConfigFiles[name.ConfigFile(revision)]
	return exists && maps.Equal(build.SettingsIn(file), build.Settings(in.Spec))
}

// accepted says whether a server that was started on a file has accepted the
// spec's settings.
func (in Input) accepted(revision string) bool {
	return slices.ContainsFunc(in.adjustable(revision), in.given)
}

// givenTo are the settings that a member's server was given as it runs now, on
// the file that its template names.
func (in Input) givenTo(member *state.Member) (settings map[string]string, remembered bool) {
	given, remembered := in.State.Given[member.Name]
	pod, _ := state.LivePod(member.Pods)
	if !remembered || given.RunID != member.Server.Value.Info.RunID || pod.ConfigFile != name.ConfigFile(member.Record.Spec.Template.ConfigRevision) {
		return nil, false
	}
	return given.Settings, true
}

// given says whether that is what the spec asks for.
func (in Input) given(member voice) bool {
	given, remembered := in.givenTo(&member.Member)
	return remembered && maps.Equal(given, in.live())
}

// adjustable are the members that can be given settings: replicas first, since
// the first shows whether they are good. One that was started on another file
// gets them with its next start.
func (in Input) adjustable(revision string) []voice {
	var replicas, primaries []voice
	for _, member := range in.voices() {
		pod, _ := state.LivePod(member.Pods)
		record := member.Record
		switch {
		case record == nil || record.Spec.Template.ConfigRevision != revision || pod.ConfigFile != name.ConfigFile(revision):
		case member.Server.Value.Info.Loading != nil:
		case member.myself.Flags.Primary:
			primaries = append(primaries, member)
		default:
			replicas = append(replicas, member)
		}
	}
	return append(replicas, primaries...)
}

func (in Input) setConfig(member voice) plan.Action {
	return plan.SetConfig{To: member.server(), Run: member.Server.Value.Info.RunID, Settings: in.live()}
}

// settingsAccepted: the settings that changed were accepted by a server. One is
// asked before the file has them and before the others: a file that servers do not
// understand would end each of them at its next start.
func settingsAccepted(in Input) plan.Verdict {
	revision := in.configRevision()
	if _, exists := in.State.ConfigFiles[name.ConfigFile(revision)]; !exists || !in.hasServed() || in.inFile(revision) || in.accepted(revision) {
		return settled()
	}
	candidates := in.adjustable(revision)
	if len(candidates) == 0 {
		return plan.Verdict{
			Hold: plan.Wait, Reason: v1alpha1.ReasonConfigApplying, Look: plan.LookServer,
			Note: "changed settings wait until a member answers that can be given them",
		}
	}
	first := candidates[0]
	if refusal, refused := in.lastRefusal(); refused {
		verdict := plan.Verdict{Hold: plan.Blocked, Reason: v1alpha1.ReasonConfigRefused, Look: plan.LookWorld, Note: RefusedSettingsNote(refusal)}
		if in.State.Now.Sub(refusal.At) >= plan.RefusalPatience {
			verdict.Actions = []plan.Action{in.setConfig(first)}
		}
		return verdict
	}
	return plan.Verdict{
		Reason: v1alpha1.ReasonConfigApplying, Look: plan.LookWritten,
		Note:    fmt.Sprintf("changed settings are tried on node %s first", first.Name),
		Actions: []plan.Action{in.setConfig(first)},
	}
}

// refusedBy is a node's refusal of the very settings that the spec asks for.
func (in Input) refusedBy(node string) (state.SettingRefusal, bool) {
	refusal, refused := in.State.SettingRefusals[node]
	return refusal, refused && maps.Equal(refusal.Settings, in.live())
}

// lastRefusal is the latest refusal of these settings, whoever said it.
func (in Input) lastRefusal() (last state.SettingRefusal, found bool) {
	for _, node := range slices.Sorted(maps.Keys(in.State.SettingRefusals)) {
		if refusal, refused := in.refusedBy(node); refused && (!found || refusal.At.After(last.At)) {
			last, found = refusal, true
		}
	}
	return last, found
}

// RefusedSettingsNote tells what a server says, and the remedy.
func RefusedSettingsNote(refusal state.SettingRefusal) string {
	return fmt.Sprintf("node %s refuses the settings of spec.config and keeps those that it has: %s; mend or remove that setting in spec.config", refusal.Node, refusal.Message)
}

// settingsGiven: every running server has the spec's settings: those that were
// accepted, and, since a file may reach a pod later than its start, all once more
// after each start.
func settingsGiven(in Input) plan.Verdict {
	revision := in.configRevision()
	if !in.hasServed() || len(in.live()) == 0 {
		return settled()
	}
	verdict := plan.Verdict{Look: plan.LookWritten}
	if !in.inFile(revision) {
		verdict.Reason, verdict.Note = v1alpha1.ReasonConfigApplying, "running servers are being given changed settings"
	}
	for _, member := range in.adjustable(revision) {
		refusal, refuses := in.refusedBy(member.Name)
		switch {
		case in.given(member):
			continue
		case refuses && verdict.Hold == plan.Settled: // of several, the first is told
			verdict.Hold, verdict.Reason, verdict.Look = plan.Blocked, v1alpha1.ReasonConfigRefused, plan.LookWorld
			verdict.Note = RefusedSettingsNote(refusal)
		}
		if !refuses || in.State.Now.Sub(refusal.At) >= plan.RefusalPatience {
			verdict.Actions = append(verdict.Actions, in.setConfig(member))
		}
	}
	if verdict.Hold == plan.Settled && len(verdict.Actions) == 0 {
		return settled()
	}
	return verdict
}

// SettingRefusalIn is a server's no to settings among an outcome.
func SettingRefusalIn(o plan.Outcome) (state.SettingRefusal, bool) {
	for _, rule := range []string{RuleSettingsAccepted, RuleSettingsGiven} {
		result, acted := o.Of(rule)
		asked, is := result.At.(plan.SetConfig)
		var refusal *plan.Refusal
		if acted && is && errors.As(result.Err, &refusal) {
			return state.SettingRefusal{Node: asked.To.Node, Settings: asked.Settings, Message: refusal.Message}, true
		}
	}
	return state.SettingRefusal{}, false
}
