package state_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/internal/state"
)

func TestProblemOfAContainerThatWaits(t *testing.T) {
	t.Parallel()
	waits := func(reason, message, lastWords string) *corev1.Pod {
		status := corev1.ContainerStatus{Name: "server", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}
		if lastWords != "" {
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Message: lastWords}
		}
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a container that is being made has no problem": {
			waits("ContainerCreating", "", ""), "",
		},
		"an image that cannot be pulled is the kubelet's to tell": {
			waits("ErrImagePull", "not found", ""), "container server: ErrImagePull: not found",
		},
		"a crash loop quotes the server's last words on one line": {
			waits("CrashLoopBackOff", "back-off 20s", "exited with code 1:\n>>> 'maxmemroy 512mb'\n"),
			"container server: CrashLoopBackOff: exited with code 1: >>> 'maxmemroy 512mb'",
		},
		"a crash loop without last words quotes the kubelet": {
			waits("CrashLoopBackOff", "back-off 20s", ""), "container server: CrashLoopBackOff: back-off 20s",
		},
		"last words of another reason are old": {
			waits("ImagePullBackOff", "not found", "exited with code 1"), "container server: ImagePullBackOff: not found",
		},
		"long last words are cut between characters": {
			waits("CrashLoopBackOff", "", strings.Repeat("é", 300)),
			"container server: CrashLoopBackOff: " + strings.Repeat("é", 200) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := state.PodOf(test.pod).Problem; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCrashLooping(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason   string
		restarts int32
		want     bool
	}{
		"it ended once":               {"CrashLoopBackOff", 1, false},
		"it ended over and over":      {"CrashLoopBackOff", 4, true},
		"its image cannot be pulled":  {"ImagePullBackOff", 4, false},
		"it runs, after all its ends": {"", 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := corev1.ContainerStatus{RestartCount: test.restarts}
			if test.reason != "" {
				status.State.Waiting = &corev1.ContainerStateWaiting{Reason: test.reason}
			}
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}
			if got := state.PodOf(pod).CrashLooping; got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
