package bench

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"valkey.io/valkey-operator/lab/journey/contract"
	"valkey.io/valkey-operator/lab/journey/stage"
)

// operatorAccount is whose requests are counted.
const operatorAccount = "system:serviceaccount:" + stage.OperatorNamespace + ":" + stage.OperatorName

// cost is what the manager takes with a number of settled clusters.
type cost struct {
	clusters           int
	millicores, rssMiB float64
	requests           stage.Requests
	window             time.Duration
}

func (c cost) rows() []figure {
	name := func(what string) string { return fmt.Sprintf("manager with %d cluster(s), %s", c.clusters, what) }
	perMinute := func(n int) string { return fmt.Sprintf("%.1f", float64(n)/c.window.Minutes()) }
	peer := map[bool][4]string{true: {"24.5 MiB", "2.5", "13.3", "4"}}[c.clusters == 1]
	return []figure{
		{name("resident memory"), fmt.Sprintf("%.1f MiB", c.rssMiB), "", "", "", peer[0]},
		{name("millicores"), fmt.Sprintf("%.1f", c.millicores), "", "", "", peer[1]},
		{name("requests a minute"), perMinute(c.requests.Total()), "", "", "", peer[2]},
		{name("of them writes"), perMinute(c.requests.Writes()), "", "", "0", peer[3]},
	}
}

// measureCosts measures the agent, then the manager with one settled cluster
// and with many small ones.
func (p *play) measureCosts(c *stage.Cluster) {
	p.agent = p.residentAgent(c)
	p.costs = append(p.costs, p.costOf(1))
	p.Say("making %d more clusters of one member", p.Clusters-1)
	var more []*stage.Cluster
	for i := 1; i < p.Clusters; i++ {
		one := p.Cluster(stage.Spec{Name: fmt.Sprintf("small-%d", i), Shards: 1})
		p.Apply(p.Manifest(one.Spec))
		more = append(more, one)
	}
	for _, one := range more {
		p.until(time.Now(), one.Spec.Name+" Ready", func() bool { return one.Get().Ready() })
	}
	p.costs = append(p.costs, p.costOf(p.Clusters))
}

// quiet is how long a status must stay as it is to count as settled: two of
// the agents' looks at their disks.
const quiet = 25 * time.Second

// awaitQuiet waits until all that has happened has been reported, such as the
// use of the volumes that the writers have changed.
func (p *play) awaitQuiet() {
	const versions = "jsonpath={.items[*].metadata.resourceVersion}"
	seen, since := "", time.Now()
	p.Await("the clusters' status to settle", within, func() (bool, string) {
		if now := p.Kubectl("get", "valkeyclusters,valkeynodes", "-o", versions); now != seen {
			seen, since = now, time.Now()
		}
		return time.Since(since) > quiet, "versions " + seen
	})
}

// summary is the part of a kubelet's statistics that is read.
type summary struct {
	Pods []struct {
		PodRef     struct{ Name, Namespace string }
		Containers []struct {
			Name string
			CPU  struct {
				Time                 time.Time
				UsageCoreNanoSeconds uint64
			}
			Memory struct{ RSSBytes uint64 }
		}
	}
}

func (p *play) costOf(clusters int) cost {
	p.awaitQuiet()
	pods, err := p.OperatorPods(p.Context())
	p.NoError(err, "listing the operator's pods")
	p.Expect(len(pods) == 1, "%d managers run, one can be measured", len(pods))
	worker, pod := pods[0].Spec.NodeName, pods[0].Name
	before := p.statistics(worker)
	requests := p.CountRequests(operatorAccount, p.Window)
	after := p.statistics(worker)
	c := cost{clusters: clusters, requests: requests, window: p.Window}
	var known bool
	c.millicores, c.rssMiB, known = consumption(before, after, pod)
	p.Expect(known, "the kubelet has no statistics of %s at both ends of the window; was it replaced?", pod)
	p.Say("manager with %d clusters: %.1f millicores, %.1f MiB; %s", clusters, c.millicores, c.rssMiB, requests)
	return c
}

func (p *play) statistics(worker string) summary {
	var s summary
	text, err := p.Typed.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", worker, "proxy/stats/summary").DoRaw(p.Context())
	p.NoError(err, "reading the kubelet's statistics")
	p.NoError(json.Unmarshal(text, &s), "reading the kubelet's statistics")
	return s
}

// consumption of a pod's only container between two statistics; unknown where
// it is not in both.
func consumption(before, after summary, pod string) (millicores, rssMiB float64, known bool) {
	for _, a := range after.Pods {
		for _, b := range before.Pods {
			if a.PodRef != b.PodRef || a.PodRef.Name != pod || len(a.Containers) == 0 || len(b.Containers) == 0 {
				continue
			}
			late, early := a.Containers[0], b.Containers[0]
			elapsed := late.CPU.Time.Sub(early.CPU.Time).Seconds()
			if elapsed <= 0 || late.CPU.UsageCoreNanoSeconds < early.CPU.UsageCoreNanoSeconds {
				continue
			}
			used := float64(late.CPU.UsageCoreNanoSeconds - early.CPU.UsageCoreNanoSeconds)
			return used / 1e6 / elapsed, float64(late.Memory.RSSBytes) / (1 << 20), true
		}
	}
	return 0, 0, false
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// residentAgent is the largest resident memory of an agent, in MiB: process 1
// of the server's container.
func (p *play) residentAgent(c *stage.Cluster) float64 {
	largest := 0.0
	for _, pod := range c.Pods() {
		status := p.Kubectl("exec", pod.Name, "-c", contract.ServerContainer, "--", "cat", "/proc/1/status")
		m := residentLine.FindStringSubmatch(status)
		p.Expect(m != nil, "process 1 of %s has no VmRSS", pod.Name)
		kib, err := strconv.ParseFloat(m[1], 64)
		p.NoError(err, "reading VmRSS")
		largest = max(largest, kib/1024)
	}
	return largest
}
