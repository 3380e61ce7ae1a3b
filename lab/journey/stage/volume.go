package stage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// TurnKnobs replaces the limits and faults of the lab's volumes, as
// `lab pool set` does; after the journey the defaults are back. It needs the lab.
func (s *Stage) TurnKnobs(settings string) {
	s.Cleanup(func(ctx context.Context) error {
		_, err := s.lab(ctx, "pool", "set", "{}")
		return err
	})
	s.Say("turning the knobs of the volumes: %s", settings)
	s.LabCommand("pool", "set", settings)
}

// Claim is a member's claim. Its NAMESPACE/NAME is what a knob's match finds.
func (c *Cluster) Claim(member string) corev1.PersistentVolumeClaim {
	for _, claim := range c.Claims() {
		if memberOf(claim.Labels) == member {
			return claim
		}
	}
	c.Fail("member %s has no claim", member)
	return corev1.PersistentVolumeClaim{}
}

// fillFile takes the room in a volume. A hidden file at the root of a volume
// is nobody's data.
const fillFile = ".journey-fill"

// fillScript fills the file system of a directory to a percentage. What is
// free cannot always be taken in one piece, so it halves down to a block.
const fillScript = `set -e
cd %q
wanted() { df -kP . | awk '{ n = $4 - $2 * (100 - %d) / 100 } END { print int(n) }'; }
step=$(wanted)
while [ "$step" -ge 4 ]; do
  end=$(stat -c %%s %[3]s 2>/dev/null || echo 0)
  if fallocate -o "$end" -l $((step * 1024)) %[3]s 2>/dev/null; then step=$(wanted); else step=$((step / 2)); fi
done`

// FillVolume fills a pod's data volume to a percentage, for real: at 100 every
// write fails with ENOSPC. File systems give back some MiB that they had
// reserved, and servers free what they overwrite: to keep a volume full, fill
// it again. On the lab it needs no container that runs.
func (s *Stage) FillVolume(pod string, percent int) {
	s.inVolume(pod, func(dir string) string { return fmt.Sprintf(fillScript, dir, percent, fillFile) })
}

// FreeVolume gives back the room that FillVolume took.
func (s *Stage) FreeVolume(pod string) {
	s.inVolume(pod, func(dir string) string { return fmt.Sprintf("rm -f %q/%s", dir, fillFile) })
}

// inVolume runs a script on a pod's data volume: on its worker where that can
// be reached, else in the server's container.
func (s *Stage) inVolume(pod string, script func(dir string) string) {
	if s.Lab == "" {
		s.Kubectl("exec", pod, "-c", contract.ServerContainer, "--", "sh", "-c", script(contract.DataPath))
		return
	}
	p := s.pod(pod)
	s.Worker(p.Spec.NodeName, "sh", "-c", script(s.volumePath(p)))
}
