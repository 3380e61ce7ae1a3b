// Package bench measures the operator beside what Kubernetes and the storage
// take with no operator at all, in one run on one machine, so that the ratios
// mean something where the seconds do not.
//
// It is a report and not a test: it says how the figures stand to their
// targets and fails only where something cannot be measured.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/ledger"
)

// Bench is what to measure.
type Bench struct {
	// Runs of what takes time; the median counts.
	Runs int
	// Clusters that the manager looks after in the second measurement of its cost.
	Clusters int
	// Window is how long requests and CPU are counted.
	Window time.Duration
	// Large adds the growth of sixty volumes, which takes some minutes.
	Large bool
}

const (
	from    = "64Mi"
	to      = "256Mi"
	members = 6
	within  = 4 * time.Minute
	limit   = time.Hour
	// cpu and memory are what a server asks of its worker, as in any cluster whose
	// times matter: one that asks for nothing comes after all that do, on two cores
	// after the operator, and its times are those of the machine.
	cpu, memory = "100m", "32Mi"
	requests    = "  resources: {requests: {cpu: " + cpu + ", memory: " + memory + "}}\n"
)

// play is one run of the bench.
type play struct {
	*stage.Stage
	Bench
	times times
	costs []cost
	agent float64
	large large
}

// times are one number for each run, in seconds.
type times struct {
	bareCreate, bareLost, bareGrow []float64
	create, lost, lostReady, grow  []float64
	lostReports, fullReports       []ledger.Report
	writes                         latencies
	fullRestarts                   int
	roll                           []float64
	rollReports, drainReports      []ledger.Report
}

// Run measures and prints the table.
func (b Bench) Run(ctx context.Context, w *stage.World) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	//nolint:contextcheck // a stage has its context with it
	failure := w.Play(ctx, stage.Scene{Name: "bench"}, func(s *stage.Stage) {
		p := &play{Stage: s, Bench: b}
		for i := range b.Runs {
			s.Say("run %d of %d: bare StatefulSets", i+1, b.Runs)
			p.bare()
			s.Say("run %d of %d: the operator", i+1, b.Runs)
			p.ours(i == b.Runs-1)
			s.Say("run %d of %d: a full disk", i+1, b.Runs)
			p.fullDisk()
			s.Say("run %d of %d: a roll and drains", i+1, b.Runs)
			p.rollAndDrain()
		}
		p.report()
		if b.Large {
			p.measureLarge()
			p.table(p.large.rows())
		}
	})
	if failure != "" {
		return errors.New(failure)
	}
	return nil
}

// ours measures a cluster of the operator; the last one is kept for the costs.
func (p *play) ours(last bool) {
	c := p.Cluster(stage.Spec{Name: "measured", Shards: 3, Replicas: 1, Size: from, More: requests, MoreStorage: "    retention: {whenDeleted: Delete}\n"})
	begin := time.Now()
	p.Apply(p.Manifest(c.Spec))
	p.times.create = append(p.times.create, p.until(begin, "the cluster to be Ready", func() bool { return c.Get().Ready() }))
	c.AwaitServing()
	c.Load(50_000, nil)
	p.lose(c)
	p.grow(c)
	if last {
		p.measureCosts(c)
	}
	c.Delete("foreground")
	p.until(time.Now(), "its claims to be gone", func() bool { return len(c.Claims()) == 0 })
}

func (p *play) lose(c *stage.Cluster) {
	w := c.StartWriter()
	old := uids(c)
	begin := time.Now()
	c.DeletePods()
	took := p.until(begin, "Ready after losing every pod", func() bool {
		now, ready := uids(c), c.Get().Ready()
		for uid := range now {
			if old[uid] {
				return false
			}
		}
		return ready && len(now) == members
	})
	c.AwaitServing()
	r := w.Stop()
	p.times.lostReady = append(p.times.lostReady, took)
	p.times.lost = append(p.times.lost, stage.LongestStall(r))
	p.times.lostReports = append(p.times.lostReports, r)
}

// uids of the cluster's pods that are ready.
func uids(c *stage.Cluster) map[string]bool {
	all := map[string]bool{}
	for _, pod := range c.Pods() {
		if stage.PodReady(&pod) {
			all[string(pod.UID)] = true
		}
	}
	return all
}

// expanded says whether the volumes have the size that the spec asks for now.
func expanded(c *stage.Cluster) bool {
	got := c.Get()
	return got.Status.ObservedGeneration == got.Metadata.Generation &&
		contract.Is(got.Status.Conditions, "StorageReady", metav1.ConditionTrue, "VolumeExpanded")
}

// until waits as Await does, asks more often, and returns the seconds since begin.
func (p *play) until(begin time.Time, what string, reached func() bool) float64 {
	ctx, cancel := context.WithTimeout(p.Context(), within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-ctx.Done():
			p.Fail("waited %s for %s", within, what)
		case <-tick.C:
		}
	}
	took := time.Since(begin).Seconds()
	p.Say("%s after %.1f s", what, took)
	return took
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// figure is one row of the table.
type figure struct {
	name, ours, floor, ratio, target, peer string
}

// header is the first row of a table.
var header = figure{"", "operator", "bare", "ratio", "target", "peer"}

func (p *play) report() {
	t := p.times
	create, bare := median(t.create), median(t.bareCreate)
	rows := []figure{
		header,
		ratio("3x1 with volumes, created to Ready", create, bare, "1.3", "3.2"),
		ratio("every pod lost, all slots take writes", median(t.lost), bare, "1.5", "2.4"),
		ratio("every pod lost, Ready (bare: pods ready)", median(t.lostReady), median(t.bareLost), "", "3.1"),
		ratio("six volumes grown to VolumeExpanded", median(t.grow), median(t.bareGrow), "0.3", "1.0"),
		writes("  acknowledged writes undone by the loss", undone(t.lostReports), "0 to 206"),
		writes("  client errors while growing", clientErrors(t.writes.operator), "0"),
		writes("  acknowledged writes lost while growing", undone(t.writes.operator), "0"),
	}
	rows = append(rows, p.latency()...)
	rows = append(rows, p.fullRows()...)
	rows = append(rows, p.rollRows()...)
	for _, c := range p.costs {
		rows = append(rows, c.rows()...)
	}
	rows = append(rows, figure{"agent, resident memory", fmt.Sprintf("%.1f MiB", p.agent), "", "", "20 MiB", ""})
	p.table(rows)
	p.Print("\nSeconds are medians of %d run(s) on this machine; targets and the peer's figures are ratios to bare where there is one.\n", p.Runs)
}

func (p *play) table(rows []figure) {
	p.Print("\n")
	for _, r := range rows {
		p.Print("%-44s %12s %10s %7s %8s %10s\n", r.name, r.ours, r.floor, r.ratio, r.target, r.peer)
	}
}

func ratio(name string, ours, floor float64, target, peer string) figure {
	return figure{name, fmt.Sprintf("%.1f s", ours), fmt.Sprintf("%.1f s", floor), fmt.Sprintf("%.2f", ours/floor), target, peer}
}

// writes is a number that shall be 0.
func writes(name string, n int64, peer string) figure {
	return figure{name, fmt.Sprint(n), "", "", "0", peer}
}

func undone(all []ledger.Report) int64 {
	n := int64(0)
	for _, r := range all {
		n += r.Undone + int64(r.Lost)
	}
	return n
}

func clientErrors(all []ledger.Report) int64 {
	n := int64(0)
	for _, r := range all {
		n += r.Errors
	}
	return n
}
