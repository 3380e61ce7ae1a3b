package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// diagnose writes all that helps to see why a journey failed. It never fails.
func (s *Stage) diagnose(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.Say("what there is to see:")
	for _, look := range [][]string{
		{"get", "valkeyclusters", "-o", "yaml", "--show-managed-fields=false"},
		{"get", "valkeynodes", "-o", "wide"},
		{"get", "pods,statefulsets,deployments", "-o", "wide"},
		{"get", "pvc", "-o", "wide"},
		{"get", "valkeynodes", "-o", "jsonpath={range .items[*]}{.metadata.name}{\"  \"}{.status.agent}{\"  \"}{.status.conditions}{\"\\n\"}{end}"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		s.show(ctx, s.Namespace, look...)
	}
	s.show(ctx, OperatorNamespace, "logs", "deployment/"+OperatorName, "--tail=40")
	s.showServers(ctx)
}

func (s *Stage) show(ctx context.Context, namespace string, args ...string) {
	out, err := s.kubectlIn(ctx, namespace, "", args...)
	text := out.Out
	if err != nil {
		text += err.Error()
	}
	s.Print("    $ kubectl %s\n", strings.Join(args, " "))
	for line := range strings.Lines(strings.TrimSpace(text)) {
		s.Print("    | %s\n", strings.TrimRight(line, "\n"))
	}
}

// showServers prints each agent's facts and the end of each server's log.
func (s *Stage) showServers(ctx context.Context) {
	pods, err := s.Typed.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=valkey"})
	if err != nil {
		s.Print("    listing pods: %v\n", err)
		return
	}
	for _, p := range pods.Items {
		s.show(ctx, "", "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy%s", s.Namespace, p.Name, contract.AgentPort, contract.FactsPath))
		s.show(ctx, s.Namespace, "logs", p.Name, "-c", contract.ServerContainer, "--tail=12")
	}
}
