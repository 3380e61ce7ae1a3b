package stage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// enter makes the namespace. One that an interrupted run left behind is
// deleted first, if it is marked as a journey's.
func (s *Stage) enter() {
	namespaces := s.Typed.CoreV1().Namespaces()
	left, err := namespaces.Get(s.ctx, s.Namespace, metav1.GetOptions{})
	if err == nil {
		s.Expect(left.Labels[mark] != "", "namespace %s exists and is not a journey's; delete it yourself", s.Namespace)
		s.Say("deleting namespace %s, left by an earlier run", s.Namespace)
		s.NoError(s.deleteNamespace(s.ctx), "deleting an old namespace")
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace, Labels: map[string]string{mark: s.Name}}}
	_, err = namespaces.Create(s.ctx, made, metav1.CreateOptions{})
	s.NoError(err, "making the namespace")
	s.Cleanup(s.leaveNamespace)
}

// leaveNamespace deletes the namespace unless it shall be kept.
func (s *Stage) leaveNamespace(ctx context.Context) error {
	if s.scene.Keep || s.scene.KeepFailed && s.failure != "" {
		return nil
	}
	return s.deleteNamespace(ctx)
}

// mark is a label on the namespaces that journeys make, and on the pods of their own tools.
const mark = "valkey.io/journey"

// namespaceGoneWithin is how long deleting a namespace with a cluster may take.
const namespaceGoneWithin = 2 * time.Minute

func (s *Stage) deleteNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, namespaceGoneWithin)
	defer cancel()
	namespaces := s.Typed.CoreV1().Namespaces()
	err := namespaces.Delete(ctx, s.Namespace, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		n, err := namespaces.Get(ctx, s.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("namespace %s is not gone after %s: %s", s.Namespace, namespaceGoneWithin, remains(n))
		case <-tick.C:
		}
	}
}

// remains says what keeps a namespace from going.
func remains(n *corev1.Namespace) string {
	text := "no reason given"
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			text = c.Message
		}
	}
	return text
}

// LabelNamespace puts a label on the journey's namespace.
func (s *Stage) LabelNamespace(key, value string) {
	s.Kubectl("label", "namespace", s.Namespace, key+"="+value, "--overwrite")
}

// DeleteNamespace deletes the journey's namespace now and waits until it is gone.
func (s *Stage) DeleteNamespace() { s.NoError(s.deleteNamespace(s.ctx), "deleting the namespace") }
