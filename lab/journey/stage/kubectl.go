package stage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Output is what a command wrote.
type Output struct{ Out, Err string }

// Kubectl runs kubectl in the journey's namespace and returns what it printed.
func (s *Stage) Kubectl(args ...string) string {
	out, err := s.TryKubectl(args...)
	s.NoError(err, "kubectl "+strings.Join(args, " "))
	return out.Out
}

// TryKubectl is Kubectl where a refusal is part of the story. The error holds
// what kubectl wrote on stderr.
func (s *Stage) TryKubectl(args ...string) (Output, error) {
	return s.kubectlIn(s.ctx, s.Namespace, "", args...)
}

// Apply applies a manifest in the journey's namespace.
func (s *Stage) Apply(manifest string) { s.NoError(s.TryApply(manifest), "kubectl apply") }

// TryApply is Apply where a refusal is part of the story.
func (s *Stage) TryApply(manifest string) error {
	_, err := s.kubectlIn(s.ctx, s.Namespace, manifest, "apply", "-f", "-")
	return err
}

// ValkeyImage is the image of the world's servers: the one that was named, or
// the operator's default, for which the API server is asked.
func (s *Stage) ValkeyImage() string {
	if s.Images.Valkey != "" {
		return s.Images.Valkey
	}
	manifest := s.Manifest(Spec{Name: "default-image", Shards: 1})
	out, err := s.kubectlIn(s.ctx, s.Namespace, manifest, "create", "--dry-run=server", "-o", "jsonpath={.spec.image}", "-f", "-")
	s.NoError(err, "asking for the default image")
	return out.Out
}

// kubectlIn runs kubectl; an empty namespace gives none.
func (w *World) kubectlIn(ctx context.Context, namespace, input string, args ...string) (Output, error) {
	if namespace != "" {
		args = append([]string{"--namespace", namespace}, args...)
	}
	c := exec.CommandContext(ctx, w.kubectl, append([]string{"--kubeconfig", w.kubeconfig}, args...)...) //nolint:gosec // the stories write the arguments
	return run(c, input)
}

func run(c *exec.Cmd, input string) (Output, error) {
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &stdout, &stderr
	err := c.Run()
	o := Output{Out: stdout.String(), Err: stderr.String()}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(o.Err))
	}
	return o, err
}

// Shell runs a line of bash in which kubectl is a user's whose context has the
// journey's namespace, for commands that are promised word for word. $DIR is a
// directory for the journey's files.
func (s *Stage) Shell(line string) string {
	if s.scratch == "" {
		s.prepareShell()
	}
	c := exec.CommandContext(s.ctx, "bash", "-c", "set -eo pipefail\n"+line) //nolint:gosec // the stories write the line
	c.Env = append(c.Environ(), "DIR="+s.scratch, "PATH="+s.scratch+":"+os.Getenv("PATH"), "KUBECONFIG="+s.kubeconfig)
	out, err := run(c, "")
	s.NoError(err, line)
	return out.Out
}

// prepareShell makes a directory with a kubectl that has the namespace.
func (s *Stage) prepareShell() {
	dir, err := os.MkdirTemp("", s.Namespace+"-")
	s.NoError(err, "making a directory")
	s.Cleanup(func(context.Context) error { return os.RemoveAll(dir) })
	script := fmt.Sprintf("#!/bin/bash\nexec %q --namespace %q \"$@\"\n", s.kubectl, s.Namespace)
	s.NoError(os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700), "writing a kubectl") //nolint:gosec // it must be executable
	s.scratch = dir
}

// Worker runs a command in a worker. Only the lab can.
func (s *Stage) Worker(worker string, command ...string) string {
	out, err := s.lab(s.ctx, append([]string{"exec", worker, "--"}, command...)...)
	s.NoError(err, "on "+worker+": "+strings.Join(command, " "))
	return out
}

// LabCommand runs the lab's program, for example node-kill.
func (s *Stage) LabCommand(args ...string) {
	_, err := s.lab(s.ctx, args...)
	s.NoError(err, "lab "+strings.Join(args, " "))
}

func (w *World) lab(ctx context.Context, args ...string) (string, error) {
	out, err := run(exec.CommandContext(ctx, w.Lab, args...), "") //nolint:gosec // the stories write the arguments
	return out.Out, err
}
