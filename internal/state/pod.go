package state

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/internal/name"
)

// Pod is a member's pod as far as decisions need it.
type Pod struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	IP          string            `json:"ip,omitempty"`
	Worker      string            `json:"worker,omitempty"`
	Phase       corev1.PodPhase   `json:"phase,omitempty"`
	Ready       bool              `json:"ready,omitempty"`
	Terminating bool              `json:"terminating,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Revision of the template that the pod was made from; empty on one that an
	// operator made which did not write it down.
	Revision string `json:"revision,omitempty"`
	// ConfigFile is the file of settings that its server is started on.
	ConfigFile string `json:"configFile,omitempty"`
	// Nudge is the value of the annotation that makes the kubelet look.
	Nudge string `json:"nudge,omitempty"`
	// Problem is why the pod does not run: an unschedulable pod's or a waiting
	// container's own words.
	Problem  string `json:"problem,omitempty"`
	Restarts int32  `json:"restarts,omitempty"`
	// LastWords are what the server's container left when it ended last.
	LastWords string `json:"lastWords,omitempty"`
	// CrashLooping says that its worker has ended a container over and over and
	// does not run it now.
	CrashLooping bool      `json:"crashLooping,omitempty"`
	CreatedAt    time.Time `json:"createdAt"`
}

// fewRestarts is how many restarts of a container are no crash loop yet: what
// makes a server end once or twice may pass, and its data comes back with it.
const fewRestarts = 3

// Finished says whether none of the pod's containers will run again.
func (p Pod) Finished() bool {
	return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
}

// PodOf is the pod in an object of the API.
func PodOf(pod *corev1.Pod) Pod {
	out := Pod{
		Name: pod.Name, UID: string(pod.UID), IP: pod.Status.PodIP, Worker: pod.Spec.NodeName,
		Phase: pod.Status.Phase, Terminating: pod.DeletionTimestamp != nil, Labels: pod.Labels,
		Revision: pod.Annotations[name.AnnotationTemplateRevision],
		Nudge:    pod.Annotations[name.AnnotationResizeNudge], Problem: problemOf(pod),
		CreatedAt: pod.CreationTimestamp.Time, ConfigFile: configFileOf(pod),
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			out.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		out.Restarts += status.RestartCount
		if status.Name == name.ContainerServer {
			out.LastWords = lastWordsOf(status)
		}
		waiting := status.State.Waiting
		out.CrashLooping = out.CrashLooping || waiting != nil && waiting.Reason == "CrashLoopBackOff" && status.RestartCount > fewRestarts
	}
	return out
}

func problemOf(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, status := range statuses {
		waiting := status.State.Waiting
		if waiting == nil || waiting.Reason == "PodInitializing" || waiting.Reason == "ContainerCreating" {
			continue
		}
		return "container " + status.Name + ": " + waiting.Reason + ": " + causeOf(status)
	}
	return ""
}

// longestCause bounds what is quoted of a container's last words, in bytes.
const longestCause = 400

// causeOf says why a container waits. One that ends over and over has left the
// cause as its last words; the kubelet's own message tells only of its patience,
// and changes with it.
func causeOf(status corev1.ContainerStatus) string {
	last := status.LastTerminationState.Terminated
	if status.State.Waiting.Reason != "CrashLoopBackOff" || last == nil || last.Message == "" {
		return status.State.Waiting.Message
	}
	return shortened(last.Message)
}

// lastWordsOf is what a container left when it ended last.
func lastWordsOf(status corev1.ContainerStatus) string {
	for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if ended != nil {
			return shortened(ended.Message)
		}
	}
	return ""
}

// shortened is a text on one line, and not too long to be quoted.
func shortened(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	if len(words) > longestCause {
		words = strings.ToValidUTF8(words[:longestCause], "") + "…"
	}
	return words
}
