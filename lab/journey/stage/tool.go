package stage

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/ledger"
)

// toolPod is a pod of the ledger's image to run commands in.
const toolPod = "tool"

// toolManifest satisfies the Pod Security level "restricted". It asks for a share
// of the CPU: a client that waits for one would time itself.
const toolManifest = `
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {valkey.io/journey: tool}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: %d
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  affinity: %s
  containers:
  - name: ledger
    image: %s
    args: [%s]
    env: [%s]
    resources: {requests: {cpu: 100m, memory: 32Mi}}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`

// startTool starts a pod of the ledger's image and waits until it runs.
func (s *Stage) startTool(name string, grace int, env map[string]string, args ...string) {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	pairs := make([]string, 0, len(env))
	for k, v := range env {
		pairs = append(pairs, fmt.Sprintf("{name: %s, value: %q}", k, v))
	}
	sort.Strings(pairs)
	s.Apply(fmt.Sprintf(toolManifest, name, grace, affinityAway(s.avoid), s.Images.Ledger, strings.Join(quoted, ", "), strings.Join(pairs, ", ")))
	s.Await("pod "+name+" to run", time.Minute, func() (bool, string) {
		p, err := s.Typed.CoreV1().Pods(s.Namespace).Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return p.Status.Phase == "Running", string(p.Status.Phase)
	})
}

// toolName is a pod for each way to log in: the environment of a pod is fixed.
func (c *Cluster) toolName() string {
	if len(c.Environment) == 0 {
		return toolPod
	}
	return toolPod + "-" + c.Spec.Name + "-" + strings.ToLower(c.Environment["VALKEY_USERNAME"])
}

// ensureTool starts the tool pod where there is none. One that cannot end
// because its worker is gone is forgotten.
func (c *Cluster) ensureTool() string {
	name := c.toolName()
	pod, err := c.Typed.CoreV1().Pods(c.Namespace).Get(c.ctx, name, metav1.GetOptions{})
	if err == nil && pod.DeletionTimestamp == nil {
		return name
	}
	if err == nil {
		c.Kubectl("delete", "pod", name, "--force", "--grace-period=0", "--ignore-not-found")
	} else if !apierrors.IsNotFound(err) {
		c.NoError(err, "looking for the tool pod")
	}
	c.startTool(name, 1, c.Environment, "sleep")
	return name
}

// tool runs the ledger in the cluster and returns its stdout.
func (c *Cluster) tool(args ...string) string {
	return c.Kubectl(append([]string{"exec", c.ensureTool(), "--", "/ledger"}, args...)...)
}

// seeds leads the ledger to the cluster: the Service's name first, which still
// leads somewhere when every pod has a new address.
func (c *Cluster) seeds() string {
	addresses := []string{contract.Service(c.Spec.Name) + ":6379"}
	for _, p := range c.Pods() {
		if p.Status.PodIP != "" {
			addresses = append(addresses, p.Status.PodIP+":6379")
		}
	}
	return strings.Join(addresses, ",")
}

// Load writes n keys and ends the journey unless all are acknowledged.
func (c *Cluster) Load(n int, progress func(percent int)) ledger.Loaded {
	var loaded ledger.Loaded
	c.stream(&loaded, progress, "load", "--keys", fmt.Sprint(n), "--addr", c.seeds())
	c.Say("%d of %d keys acknowledged in %.1f s, %d of them at a second try", loaded.Acked, n, loaded.Seconds, loaded.Retried)
	c.Expect(loaded.Acked == n, "%d of %d writes were refused", loaded.Failed, n)
	return loaded
}

// Fill writes so many MiB of values that do not compress. How many of them are
// acknowledged is not its matter.
func (c *Cluster) Fill(mib int) {
	c.tool("fill", "--mib", fmt.Sprint(mib), "--addr", c.seeds())
	c.Say("%d MiB of values were written", mib)
}

// Verify reads n loaded keys back and ends the journey unless all are there.
func (c *Cluster) Verify(n int, progress func(percent int)) ledger.Verified {
	v := c.Read(n, progress)
	c.Say("%d of %d keys read back in %.1f s", v.Found, n, v.Seconds)
	c.Expect(v.Found == n, "%d keys are missing, %d have another value, %d could not be read", v.Missing, v.Wrong, v.Unread)
	return v
}

// Read is Verify where missing keys are part of the story.
func (c *Cluster) Read(n int, progress func(percent int)) ledger.Verified {
	var v ledger.Verified
	c.stream(&v, progress, "verify", "--keys", fmt.Sprint(n), "--addr", c.seeds())
	return v
}

// TryRead is Read where not even an answer is certain. It asks from the tool
// pod or, when that was lost with its worker, from a new one.
func (c *Cluster) TryRead(n int) (ledger.Verified, error) {
	var v ledger.Verified
	out, err := c.TryKubectl("exec", c.ensureTool(), "--", "/ledger", "verify", "--keys", fmt.Sprint(n), "--addr", c.seeds())
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(out.Out), &v)
}

// BriefRead is what was read in one line.
func BriefRead(v ledger.Verified) string {
	return fmt.Sprintf("%d of %d keys found, %d missing, %d wrong, %d unread", v.Found, v.Keys, v.Missing, v.Wrong, v.Unread)
}

// stream runs the ledger and passes on its lines of progress; progress may be nil.
func (c *Cluster) stream(result any, progress func(percent int), args ...string) {
	name := c.ensureTool()
	whole := append([]string{"--kubeconfig", c.kubeconfig, "--namespace", c.Namespace, "exec", name, "--", "/ledger"}, args...)
	command := exec.CommandContext(c.ctx, c.kubectl, whole...) //nolint:gosec // the stories write the arguments
	stdout := &strings.Builder{}
	command.Stdout = stdout
	stderr, err := command.StderrPipe()
	c.NoError(err, "running the ledger")
	c.NoError(command.Start(), "running the ledger")
	said := passOn(stderr, progress)
	if err := command.Wait(); err != nil {
		c.Fail("ledger %s: %v: %s", args[0], err, said)
	}
	c.NoError(json.Unmarshal([]byte(stdout.String()), result), "reading the ledger's answer")
}

// passOn reads lines to the end, reports those of progress and returns the others.
func passOn(from io.Reader, progress func(percent int)) string {
	var others []string
	for lines := bufio.NewScanner(from); lines.Scan(); {
		percent := 0
		if _, err := fmt.Sscanf(lines.Text(), "progress %d", &percent); err != nil {
			others = append(others, lines.Text())
		} else if progress != nil {
			progress(percent)
		}
	}
	return strings.Join(others, "; ")
}
