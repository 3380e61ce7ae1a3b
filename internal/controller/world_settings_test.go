package controller_test

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/internal/build"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/valkey"
)

// configFiles are the files in the cluster's ConfigMap.
func (w *world) configFiles() map[string]string {
	w.t.Helper()
	config := &corev1.ConfigMap{}
	w.must(client.IgnoreNotFound(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name.Service(clusterName)}, config)))
	files := maps.Clone(config.Data)
	delete(files, name.KeyMembers)
	return files
}

// settingsInFiles are the user's settings in each file, in order.
func (w *world) settingsInFiles() []string {
	w.t.Helper()
	var contents []string
	for _, content := range w.configFiles() {
		contents = append(contents, settingsInWords(build.SettingsIn(content)))
	}
	slices.Sort(contents)
	return contents
}

// fileOf are the user's settings in the file that a pod's command names. That it is
// there when the pod starts is the operator's to see to.
func (w *world) fileOf(pod *corev1.Pod) map[string]string {
	w.t.Helper()
	words := pod.Spec.Containers[0].Command
	file := path.Base(words[slices.Index(words, "--config")+1])
	content, exists := w.configFiles()[file]
	if !exists {
		w.t.Errorf("pod %s is started on file %s, which is not there", pod.Name, file)
	}
	return build.SettingsIn(content)
}

// badBacklog is a value of tcp-backlog that no server takes.
const badBacklog = "many"

// refuses says whether a server ends because of the settings in its file, of which
// the stories have three bad ones. Its
// worker then tells its last words.
func (w *world) refuses(pod *corev1.Pod, settings map[string]string) bool {
	w.t.Helper()
	_, unknown := settings["maxmemry"]
	if settings["tcp-backlog"] != badBacklog && settings["maxmemory"] != "much" && !unknown {
		return false
	}
	if len(pod.Status.ContainerStatuses) > 0 {
		return true
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: name.ContainerServer, RestartCount: 1,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Message: "exited with code 1: *** FATAL CONFIG FILE ERROR (Version 9.1.2) ***\n>>> 'tcp-backlog many'\nargument couldn't be parsed into an integer",
		}},
	}}
	w.must(w.api.Status().Update(w.t.Context(), pod))
	return true
}

// settingsOf are the settings that a server has, of those that the stories are about.
func (w *world) settingsOf(server int) string {
	w.t.Helper()
	conn, err := w.servers.Connect(w.t.Context(), valkey.Target{Address: w.servers.Nodes()[server].Address()})
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	has := map[string]string{}
	for _, setting := range []string{"maxmemory", "maxmemory-policy", "tcp-backlog"} {
		value, _, err := conn.ConfigGet(w.t.Context(), setting)
		w.must(err)
		has[setting] = value
	}
	return settingsInWords(has)
}

func settingsInWords(settings map[string]string) string {
	var words []string
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		words = append(words, setting+" "+settings[setting])
	}
	return strings.Join(words, ", ")
}
