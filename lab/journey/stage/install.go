package stage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where config/default puts the operator, and the image that it names.
const (
	OperatorNamespace = "valkey-operator-system"
	OperatorName      = "valkey-operator"
	placeholder       = "valkey.io/valkey-operator:dev"
)

// InstallOperator applies config/default as a user would, with the image set,
// and waits until the manager is available.
func (w *World) InstallOperator(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	rendered, err := w.kubectlIn(ctx, "", "", "kustomize", filepath.Join(w.Source, "config/default"))
	if err != nil {
		return fmt.Errorf("rendering config/default: %w", err)
	}
	if !strings.Contains(rendered.Out, placeholder) {
		return errors.New("config/default does not name " + placeholder + ", which the image is put in place of")
	}
	manifest := strings.ReplaceAll(rendered.Out, placeholder, image)
	if _, err := w.kubectlIn(ctx, "", manifest, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("applying config/default: %w", err)
	}
	_, err = w.kubectlIn(ctx, OperatorNamespace, "", "rollout", "status", "deployment/"+OperatorName, "--timeout=110s")
	if err != nil {
		logs, _ := w.kubectlIn(context.WithoutCancel(ctx), OperatorNamespace, "", "logs", "deployment/"+OperatorName, "--tail=20")
		return fmt.Errorf("the operator did not become available: %w\n%s", err, logs.Out)
	}
	return nil
}

// OperatorPods are the manager's pods that are not on their way out.
func (w *World) OperatorPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := w.Typed.CoreV1().Pods(OperatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + OperatorName})
	if err != nil {
		return nil, err
	}
	var running []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			running = append(running, p)
		}
	}
	return running, nil
}

// ScaleOperator sets the number of managers and waits until it is so.
func (s *Stage) ScaleOperator(ctx context.Context, replicas int) error {
	n := fmt.Sprint(replicas)
	if _, err := s.kubectlIn(ctx, OperatorNamespace, "", "scale", "deployment/"+OperatorName, "--replicas="+n); err != nil {
		return err
	}
	if replicas == 0 {
		_, err := s.kubectlIn(ctx, OperatorNamespace, "", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name="+OperatorName, "--timeout=60s")
		return err
	}
	_, err := s.kubectlIn(ctx, OperatorNamespace, "", "rollout", "status", "deployment/"+OperatorName, "--timeout=60s")
	return err
}

// KillAtRandom kills the operator a few times, each after a random while.
func (s *Stage) KillAtRandom(random *rand.Rand, times int) {
	for range times {
		// A random moment is the point here: there is nothing to wait for.
		moment := time.Duration(random.Int64N(int64(3 * time.Second)))
		select {
		case <-s.ctx.Done():
			s.Fail("the time of the journey is over")
		case <-time.After(moment):
		}
		s.Say("killing the operator after %s", seconds(moment))
		s.KillOperator()
	}
}

// KillOperator deletes the manager's pod without letting it finish.
func (s *Stage) KillOperator() {
	pods, err := s.OperatorPods(s.ctx)
	s.NoError(err, "listing the operator's pods")
	now := int64(0)
	for _, p := range pods {
		err := s.Typed.CoreV1().Pods(OperatorNamespace).Delete(s.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		s.NoError(err, "killing the operator")
	}
}
