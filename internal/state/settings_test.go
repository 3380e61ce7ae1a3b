package state_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/internal/state"
)

func TestTheFileThatAPodsServerIsStartedOn(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		container string
		command   []string
		want      string
	}{
		"its command names it":         {"server", []string{"/agent", "run", "--config", "/etc/valkey/config/valkey-0123.conf", "--shard", "0"}, "valkey-0123.conf"},
		"its command names none":       {"server", []string{"/agent", "run"}, ""},
		"its command ends too early":   {"server", []string{"/agent", "run", "--config"}, ""},
		"another container's does not": {"sidecar", []string{"proxy", "--config", "/etc/proxy.conf"}, ""},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: row.container, Command: row.command}}}}
		if got := state.PodOf(pod).ConfigFile; got != row.want {
			t.Errorf("%s: %q, want %q", what, got, row.want)
		}
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	ended := func(text string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{Message: text}
	}
	for what, row := range map[string]struct {
		status corev1.ContainerStatus
		want   string
	}{
		"it never ended":              {corev1.ContainerStatus{Name: "server"}, ""},
		"it ended and runs again":     {corev1.ContainerStatus{Name: "server", LastTerminationState: corev1.ContainerState{Terminated: ended("one\ntwo")}}, "one two"},
		"it has just ended once more": {corev1.ContainerStatus{Name: "server", State: corev1.ContainerState{Terminated: ended("new")}, LastTerminationState: corev1.ContainerState{Terminated: ended("old")}}, "new"},
		"another container ended":     {corev1.ContainerStatus{Name: "proxy", State: corev1.ContainerState{Terminated: ended("new")}}, ""},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{row.status}}}
		if got := state.PodOf(pod).LastWords; got != row.want {
			t.Errorf("%s: %q, want %q", what, got, row.want)
		}
	}
}
