package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"valkey.io/valkey-operator/lab/journey/stage"
	"valkey.io/valkey-operator/lab/ledger"
)

const (
	// calmFor is how long writes are timed in a cluster to which nothing happens,
	// to compare with those while it grows.
	calmFor = 15 * time.Second
	// nudgeEvery is how often the pods of volumes that grow by hand are touched.
	// A growth that takes the kubelet's whole minute is no measure of one that does
	// not: nearly all writes of that minute are those of a calm cluster.
	nudgeEvery = 500 * time.Millisecond
)

// The sizes to which a cluster grows, three times by the operator and three by hand.
var (
	grownByOperator = []string{to, "320Mi", "384Mi"}
	grownByHand     = []string{"448Mi", "512Mi", "576Mi"}
)

// latencies are what the writers saw, a report for each growth.
type latencies struct{ before, operator, hand []ledger.Report }

// grow times a growth by the operator, and what writes notice of it, of two more,
// and of three by hand while there is no operator.
func (p *play) grow(c *stage.Cluster) {
	for i, size := range grownByOperator {
		p.times.writes.before = append(p.times.writes.before, p.calm(c))
		w := c.StartWriter()
		begin := time.Now()
		c.Resize(size)
		took := p.until(begin, "VolumeExpanded", func() bool { return expanded(c) })
		p.times.writes.operator = append(p.times.writes.operator, w.Stop())
		if i == 0 {
			p.times.grow = append(p.times.grow, took)
		}
	}
	p.NoError(p.ScaleOperator(p.Context(), 0), "scaling the operator to 0")
	p.Cleanup(func(ctx context.Context) error { return p.ScaleOperator(ctx, 1) })
	for _, size := range grownByHand {
		w := c.StartWriter()
		p.growByHand(c, size)
		p.times.writes.hand = append(p.times.writes.hand, w.Stop())
	}
	p.NoError(p.ScaleOperator(p.Context(), 1), "scaling the operator to 1")
}

// growByHand patches the claims of a cluster, and touches its pods until every
// claim has grown.
func (p *play) growByHand(c *stage.Cluster, size string) {
	want := resource.MustParse(size)
	patch := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, size)
	begin, nudged := time.Now(), time.Time{}
	for _, claim := range c.Claims() {
		_, err := p.Typed.CoreV1().PersistentVolumeClaims(p.Namespace).Patch(p.Context(), claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		p.NoError(err, "patching a claim")
	}
	p.until(begin, "claims grown by hand", func() bool {
		if time.Since(nudged) >= nudgeEvery {
			nudged = time.Now()
			p.nudge(c.Pods())
		}
		return allHave(c.Claims(), want)
	})
}

// nudge changes an annotation of pods, upon which their kubelets look at them.
func (p *play) nudge(pods []corev1.Pod) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, bareLabel, time.Now().UnixNano())
	for _, pod := range pods {
		_, err := p.Typed.CoreV1().Pods(p.Namespace).Patch(p.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		p.NoError(err, "touching a pod")
	}
}

func allHave(claims []corev1.PersistentVolumeClaim, want resource.Quantity) bool {
	for _, claim := range claims {
		if claim.Status.Capacity.Storage().Cmp(want) < 0 {
			return false
		}
	}
	return true
}

// calm is what a writer sees of a cluster to which nothing happens.
func (p *play) calm(c *stage.Cluster) ledger.Report {
	w := c.StartWriter()
	select {
	case <-p.Context().Done():
		p.Fail("the time of the bench is over")
	case <-time.After(calmFor):
	}
	return w.Stop()
}

// latency compares the time that 99 of 100 writes take at most while volumes
// grow, by the operator and by hand, with that of before.
func (p *play) latency() []figure {
	before := median(slowest(p.times.writes.before))
	row := func(name string, grown []ledger.Report, target string) figure {
		during := median(slowest(grown))
		return figure{
			name, fmt.Sprintf("%.2f ms", during), fmt.Sprintf("%.2f ms", before),
			fmt.Sprintf("%.2f", during/before), target, "",
		}
	}
	return []figure{
		row("  99th percentile of a write (bare: before)", p.times.writes.operator, "1.2"),
		row("  the same, volumes grown by hand", p.times.writes.hand, ""),
	}
}

// slowest are the 99th percentiles of reports, in milliseconds.
func slowest(reports []ledger.Report) []float64 {
	var all []float64
	for _, r := range reports {
		all = append(all, r.P99)
	}
	return all
}
