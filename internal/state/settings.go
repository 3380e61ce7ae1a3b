package state

import (
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/internal/name"
)

// GivenSettings are the settings that a server's process was given while it ran.
type GivenSettings struct {
	RunID    string            `json:"runID"`
	Settings map[string]string `json:"settings,omitempty"`
}

// SettingRefusal is a server's no to settings.
type SettingRefusal struct {
	Node     string            `json:"node"`
	Settings map[string]string `json:"settings,omitempty"`
	Message  string            `json:"message"` // the server's own words
	At       time.Time         `json:"at"`
}

// configFlag is where a pod's command names the file that its server is started on.
const configFlag = "--config"

// configFileOf is the name of that file; empty when the pod names none.
func configFileOf(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if container.Name != name.ContainerServer {
			continue
		}
		for i, word := range container.Command {
			if word == configFlag && i+1 < len(container.Command) {
				return path.Base(container.Command[i+1])
			}
		}
	}
	return ""
}
