package stage

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// pod reads a pod of the journey.
func (s *Stage) pod(name string) *corev1.Pod {
	p, err := s.Typed.CoreV1().Pods(s.Namespace).Get(s.ctx, name, metav1.GetOptions{})
	s.NoError(err, "reading pod "+name)
	return p
}

// EmptyAndKill deletes a server's data, keeping its node table, and kills the
// server so that it is back at once: a member that owns slots and has no keys.
// One command does both on the worker, so that no election comes between. It
// needs the lab.
func (s *Stage) EmptyAndKill(pod string) {
	s.DamageAndKill(pod, `for f in *; do case $f in nodes.conf) ;; *) rm -rf "$f";; esac; done`)
}

// DamageAndKill runs a script in a pod's data volume and kills the server at
// once, so that it neither mends what was done nor stops in order. It needs the lab.
func (s *Stage) DamageAndKill(pod, script string) {
	p := s.pod(pod)
	s.Worker(p.Spec.NodeName, "sh", "-c", fmt.Sprintf("set -e\ncd %q\n%s\n%s", s.volumePath(p), script, killScript(p)))
}

// Files are the names of all files in a pod's data volume, below its root. It
// needs the lab.
func (s *Stage) Files(pod string) []string {
	p := s.pod(pod)
	return strings.Fields(s.Worker(p.Spec.NodeName, "find", s.volumePath(p), "-type", "f", "-printf", "%P\n"))
}

// KillServer kills a server's process, as the kernel does when memory runs
// out; the agent above it is left alone. It needs the lab.
func (s *Stage) KillServer(pod string) {
	p := s.pod(pod)
	s.Worker(p.Spec.NodeName, "sh", "-c", killScript(p))
}

// killScript finds the server among the container's processes by its name.
func killScript(p *corev1.Pod) string {
	id := ""
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == contract.ServerContainer {
			id = strings.TrimPrefix(c.ContainerID, "containerd://")
		}
	}
	return fmt.Sprintf(`killed=no
for pid in $(ctr -n k8s.io tasks ps %s | awk 'NR>1{print $1}'); do
  if [ "$(cat /proc/$pid/comm)" = valkey-server ]; then kill -9 $pid; killed=yes; fi
done
[ $killed = yes ] || { echo "no valkey-server in container %s" >&2; exit 1; }`, id, id)
}

// volumePath is where a worker has the pod's data volume mounted.
func (s *Stage) volumePath(p *corev1.Pod) string {
	base := "/var/lib/kubelet/pods/" + string(p.UID) + "/volumes/"
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claim, err := s.Typed.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.ctx, v.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
			s.NoError(err, "reading a claim")
			return base + "kubernetes.io~csi/" + claim.Spec.VolumeName + "/mount"
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir != nil && v.Name == "data" {
			return base + "kubernetes.io~empty-dir/" + v.Name
		}
	}
	s.Fail("pod %s has no volume for its data", p.Name)
	return ""
}

// AwaitRole waits until a member's server says that it has this role.
func (c *Cluster) AwaitRole(member, role string, within time.Duration) {
	c.Await(fmt.Sprintf("member %s to be a %s", member, role), within, func() (bool, string) {
		m := c.Snapshot()[member]
		return m.Server.Error == "" && m.Server.Role == role, fmt.Sprintf("role %q, %d keys, %s", m.Server.Role, m.Server.Keys, m.Server.Error)
	})
}
