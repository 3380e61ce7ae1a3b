package stage

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// drainWithin is how long a worker may take to be empty: its pods go one after
// the other, each once the one before it is back elsewhere.
const drainWithin = 4 * time.Minute

// Drain cordons a worker and evicts its pods, the operator's included but not the
// journeys' own, as an administrator does, and ends the journey unless that comes to an end. The
// worker stays cordoned until Uncordon, or the journey's end.
func (s *Stage) Drain(worker string) {
	s.Cordon(worker)
	s.Say("draining worker %s", worker)
	begin := time.Now()
	s.Kubectl("drain", worker, "--ignore-daemonsets", "--delete-emptydir-data",
		"--pod-selector=!"+mark, fmt.Sprintf("--timeout=%.0fs", drainWithin.Seconds()))
	s.Say("worker %s is empty after %s", worker, seconds(time.Since(begin)))
}

// Cordon lets a worker have no new pods until Uncordon, or the journey's end.
func (s *Stage) Cordon(worker string) {
	s.Cleanup(func(ctx context.Context) error {
		_, err := s.kubectlIn(ctx, "", "", "uncordon", worker)
		return err
	})
	s.Kubectl("cordon", worker)
}

// Uncordon lets a worker have pods again.
func (s *Stage) Uncordon(worker string) { s.Kubectl("uncordon", worker) }

// Workers are the workers that have a pod of the cluster.
func (c *Cluster) Workers() []string {
	var workers []string
	seen := map[string]bool{"": true}
	for _, p := range c.Pods() {
		if !seen[p.Spec.NodeName] {
			workers = append(workers, p.Spec.NodeName)
		}
		seen[p.Spec.NodeName] = true
	}
	return workers
}

// AllWorkers are the names of all workers, sorted.
func (s *Stage) AllWorkers() []string {
	list, err := s.Typed.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	s.NoError(err, "listing workers")
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	sort.Strings(names)
	return names
}

// outOfService is the taint by which an administrator says that a lost worker
// does not run anything any more: its pods are forgotten, its volumes let go.
const outOfService = "node.kubernetes.io/out-of-service"

// DeclareLost says that a worker without power runs nothing; after the journey
// that is taken back.
func (s *Stage) DeclareLost(worker string) {
	s.Cleanup(func(ctx context.Context) error {
		_, err := s.kubectlIn(ctx, "", "", "taint", "node", worker, outOfService+"-")
		if err != nil && strings.Contains(err.Error(), "not found") {
			return nil // DeclareFound was there before
		}
		return err
	})
	s.Kubectl("taint", "node", worker, outOfService+"=lost:NoExecute", "--overwrite")
}

// DeclareFound takes DeclareLost back.
func (s *Stage) DeclareFound(worker string) { s.Kubectl("taint", "node", worker, outOfService+"-") }

// AvoidWorker keeps the journey's own pods off a worker from now on, so that
// what happens to it does not happen to them. No writer may run yet.
func (s *Stage) AvoidWorker(worker string) {
	s.avoid = worker
	s.Kubectl("delete", "pods", "-l", mark+"=tool", "--field-selector=spec.nodeName="+worker, "--grace-period=1", "--timeout=60s")
}

// affinityAway keeps a pod off a worker; off none where it is empty.
func affinityAway(worker string) string {
	if worker == "" {
		return "{}"
	}
	return fmt.Sprintf("{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "+
		"[{key: kubernetes.io/hostname, operator: NotIn, values: [%s]}]}]}}}", worker)
}

// Setting is the value of a pod's server for a setting; empty where it knows none.
func (c *Cluster) Setting(pod, setting string) string {
	// It answers the name and the value, a line each.
	out := c.Kubectl("exec", pod, "-c", contract.ServerContainer, "--", "valkey-cli", "config", "get", setting)
	return lastLine(out)
}
