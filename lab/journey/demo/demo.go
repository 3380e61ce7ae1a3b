// Package demo shows the product's main job in a few minutes: a persistent
// cluster comes up, loses every pod and keeps its data, and its volumes grow
// under load.
//
// It promises that every number in its summary was measured in that run, and
// that it fails if a promise did not hold.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/ledger"
)

// Namespace of the demo's cluster, which stays.
const Namespace = "valkey-demo"

const (
	keys   = 100_000
	before = "64Mi"
	after  = "256Mi"
)

// within bounds each wait of the demo; it is no promise of speed.
const within = 3 * time.Minute

// limit ends a demo that is stuck.
const limit = 12 * time.Minute

// play is one run of the demo.
type play struct {
	*stage.Stage
	cluster *stage.Cluster
	numbers numbers
}

// numbers are measured during the run.
type numbers struct {
	ready, back, grown, read time.Duration
	loaded                   ledger.Loaded
	found                    int
	writer                   ledger.Report
	replaced, restarts       int
	sameIDs, roleChanges     int
	dfBefore, dfAfter        []string
	readyVersions            int
}

// Run plays the demo. The operator is installed by install, before the clock
// of the first cluster starts.
func Run(ctx context.Context, w *stage.World, install func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	//nolint:contextcheck // a stage has its context with it
	failure := w.Play(ctx, stage.Scene{Name: "demo", Namespace: Namespace, Keep: true}, func(s *stage.Stage) {
		p := &play{Stage: s}
		p.operator(install)
		p.create()
		p.load()
		p.loseEveryPod()
		p.grow()
		p.summary(time.Since(start))
	})
	if failure != "" {
		return errors.New(failure)
	}
	return nil
}

func (p *play) chapter(n int, title string) { p.Print("\n%d. %s\n", n, title) }

func (p *play) operator(install func(context.Context) error) {
	p.chapter(1, "A Kubernetes cluster, and the operator from config/default")
	version, err := p.Typed.Discovery().ServerVersion()
	p.NoError(err, "asking the cluster for its version")
	workers, err := p.Typed.CoreV1().Nodes().List(p.Context(), metav1.ListOptions{})
	p.NoError(err, "listing workers")
	p.Say("Kubernetes %s with %d workers", version.GitVersion, len(workers.Items))
	p.NoError(install(p.Context()), "installing the operator")
	p.Say("the operator is available: %s", p.Images.Operator)
}

func (p *play) create() {
	p.chapter(2, "kubectl apply -f config/samples/persistent.yaml")
	manifest, err := os.ReadFile(filepath.Join(p.Source, "config", "samples", "persistent.yaml"))
	p.NoError(err, "reading the sample")
	begin := time.Now()
	p.Apply(string(manifest))
	p.cluster = p.Cluster(stage.Spec{Name: "persistent", Shards: 3, Replicas: 1, Size: before})
	p.awaitReady()
	p.numbers.ready = time.Since(begin)
	p.Say("three shards with a replica each are Ready after %.1f s", p.numbers.ready.Seconds())
	p.Print("%s\n", indent(p.Kubectl("get", "valkeyclusters,valkeynodes")))
}

// awaitReady shows pods and state until the cluster is Ready and its servers agree.
func (p *play) awaitReady() {
	live := stage.NewLive(p.Out)
	p.Await("the cluster to be Ready", within, func() (bool, string) {
		got, ready := p.cluster.Get(), 0
		for _, pod := range p.cluster.Pods() {
			if stage.PodReady(&pod) {
				ready++
			}
		}
		line := fmt.Sprintf("pods %d/%d  shards %d/3  %s", ready, p.cluster.Members(), got.Status.ReadyShards, got.Status.Reason)
		live.Show([]string{stage.Bar(float64(ready)/float64(p.cluster.Members())) + "  " + line}, line)
		return got.Ready() && ready == p.cluster.Members(), got.Brief()
	})
	p.cluster.AwaitServing()
}

func (p *play) load() {
	p.chapter(3, "100,000 keys")
	p.numbers.loaded = p.cluster.Load(keys, p.progress("written"))
}

func (p *play) progress(what string) func(percent int) {
	live, line := stage.NewLive(p.Out), ""
	return func(percent int) {
		now := fmt.Sprintf("%s %3d %%", what, percent)
		if percent%50 == 0 {
			line = now // ten lines would be noise in a log
		}
		live.Show([]string{stage.Bar(float64(percent)/100) + "  " + now}, line)
	}
}

func (p *play) loseEveryPod() {
	p.chapter(4, "kubectl delete pod -l app.kubernetes.io/instance=persistent: every pod at once")
	old := p.cluster.Snapshot()
	begin := time.Now()
	p.cluster.DeletePods()
	live := stage.NewLive(p.Out)
	p.Await("new pods in place of all", within, func() (bool, string) {
		replaced := 0
		for name, uid := range p.uids() {
			if uid != old[name].UID {
				replaced++
			}
		}
		line := fmt.Sprintf("new pods %d/%d", replaced, len(old))
		live.Show([]string{line}, line)
		return replaced == len(old), line
	})
	p.awaitReady()
	p.numbers.back = time.Since(begin)
	p.Say("Ready again after %.1f s", p.numbers.back.Seconds())
	now := p.cluster.Snapshot()
	for name, m := range old {
		p.Expect(now[name].UID != m.UID, "pod %s was not replaced", m.Pod)
		p.Expect(now[name].Server.ID == m.Server.ID, "member %s was node %s and is %s", name, m.Server.ID, now[name].Server.ID)
		p.numbers.replaced++
		p.numbers.sameIDs++
	}
	p.Say("all %d node ids are unchanged", len(now))
	begin = time.Now()
	p.numbers.found = p.cluster.Verify(keys, p.progress("read back")).Found
	p.numbers.read = time.Since(begin)
}

// uids of the pods that stay, by member.
func (p *play) uids() map[string]string {
	uids := map[string]string{}
	for _, pod := range p.cluster.Pods() {
		if pod.DeletionTimestamp == nil {
			uids[stage.MemberOf(&pod)] = string(pod.UID)
		}
	}
	return uids
}

func (p *play) grow() {
	p.chapter(5, "From "+before+" to "+after+" while a writer runs")
	untouched := p.cluster.Snapshot()
	pod := untouched[untouched.Primary(0)].Pod
	p.numbers.dfBefore = p.df(pod)
	writer, follower := p.cluster.StartWriter(), p.cluster.Follow()
	begin := time.Now()
	p.cluster.Resize(after)
	p.awaitGrown()
	p.numbers.grown = time.Since(begin)
	p.Say("VolumeExpanded after %.1f s", p.numbers.grown.Seconds())
	p.numbers.dfAfter = p.df(pod)
	p.awaitReady()
	versions := follower.Stop()
	follower.AlwaysReady(versions)
	p.numbers.readyVersions = len(versions)
	p.numbers.writer = writer.Stop()
	writer.NothingNoticed(p.numbers.writer)
	p.expectUntouched(untouched)
	p.numbers.found = p.cluster.Verify(keys, nil).Found
	p.Print("%s\n", indent(p.Shell(`kubectl get events --sort-by='.lastTimestamp' | grep VolumeExpan | cut -c1-150`)))
}

// awaitGrown shows a bar for each volume until the cluster says VolumeExpanded.
func (p *play) awaitGrown() {
	live := stage.NewLive(p.Out)
	p.Await("all volumes to have grown", within, func() (bool, string) {
		got := p.cluster.Get()
		var block, line []string
		for _, v := range got.Status.Storage.Volumes {
			share := float64(v.Capacity.Value()) / float64(got.Status.Storage.RequestedSize.Value())
			block = append(block, fmt.Sprintf("%-18s %s %6s  %s", v.Node, stage.Bar(share), v.Capacity.String(), v.Phase))
			line = append(line, v.Capacity.String())
		}
		live.Show(block, "volumes "+strings.Join(line, " "))
		done := contract.Is(got.Status.Conditions, "StorageReady", metav1.ConditionTrue, "VolumeExpanded") &&
			got.Status.ObservedGeneration == got.Metadata.Generation
		return done, got.Brief()
	})
}

// df is what the file system in a pod says of itself: size, used, available.
func (p *play) df(pod string) []string {
	out := p.Kubectl("exec", pod, "-c", contract.ServerContainer, "--", "df", "-h", contract.DataPath)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	p.Print("%s\n", indent("$ kubectl exec "+pod+" -- df -h /data\n"+out))
	fields := strings.Fields(lines[len(lines)-1])
	p.Expect(len(fields) >= 4, "df says %q", out)
	return fields
}

func (p *play) expectUntouched(old stage.Members) {
	now := p.cluster.Snapshot()
	for name, m := range old {
		p.Expect(now[name].UID == m.UID, "member %s runs in another pod", name)
		if now[name].Server.Role != m.Server.Role {
			p.numbers.roleChanges++
		}
	}
	p.Expect(p.numbers.roleChanges == 0, "%d members changed their role", p.numbers.roleChanges)
	p.numbers.restarts = now.Restarts() - old.Restarts()
	p.Expect(p.numbers.restarts == 0, "%d containers were restarted", p.numbers.restarts)
}

func indent(text string) string {
	return "           " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n           ")
}

const farewell = `
The cluster is still there. Try:
  %[1]skubectl -n %[2]s get vkc,vkn,pvc
  kubectl -n %[2]s patch valkeycluster persistent --type=merge -p '{"spec":{"storage":{"size":"512Mi"}}}' && kubectl -n %[2]s get vkn -w
  kubectl -n %[2]s delete pod -l app.kubernetes.io/instance=persistent && kubectl -n %[2]s get vkc -w
`

func (p *play) summary(total time.Duration) {
	n := p.numbers
	p.Print("\nSummary\n")
	for _, row := range [][2]string{
		{"cluster of 6 Ready", fmt.Sprintf("%.1f s", n.ready.Seconds())},
		{"keys written, acknowledged, read back", fmt.Sprintf("%d, %d, %d", n.loaded.Keys, n.loaded.Acked, n.found)},
		{"pods lost at once, node ids kept", fmt.Sprintf("%d, %d", n.replaced, n.sameIDs)},
		{"Ready again after losing every pod", fmt.Sprintf("%.1f s", n.back.Seconds())},
		{"volumes grown " + before + " to " + after, fmt.Sprintf("%.1f s", n.grown.Seconds())},
		{"file system in a pod", n.dfBefore[1] + " before, " + n.dfAfter[1] + " after"},
		{"writes acknowledged meanwhile", fmt.Sprintf("%d, %d client errors, %d lost", n.writer.Acked, n.writer.Errors, n.writer.Lost+n.writer.Stale)},
		{"longest stall of a shard", fmt.Sprintf("%.0f ms", stage.LongestStall(n.writer)*1000)},
		{"container restarts, role changes", fmt.Sprintf("%d, %d", n.restarts, n.roleChanges)},
		{"Ready while growing", fmt.Sprintf("True in all %d versions of the status", n.readyVersions)},
		{"in all", fmt.Sprintf("%.0f s", total.Seconds())},
	} {
		p.Print("  %-40s %s\n", row[0], row[1])
	}
	shell := ""
	if p.Lab != "" {
		shell = "eval \"$(make -s lab-env)\"; "
	}
	p.Print(farewell, shell, Namespace)
}
