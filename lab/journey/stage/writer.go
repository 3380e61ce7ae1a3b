package stage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"valkey.io/valkey-operator/lab/ledger"
)

// settleIn is how many seconds of acknowledged writes come before a story
// goes on, so that there is something to lose.
const settleIn = 2 * time.Second

// Writer writes to a cluster all the time and keeps the account.
type Writer struct {
	cluster *Cluster
	pod     string
}

// StartWriter starts a writer at 2,000 writes a second, or as flags say, and
// waits until it has written for a while.
func (c *Cluster) StartWriter(flags ...string) *Writer {
	w := &Writer{cluster: c, pod: "writer-" + c.Spec.Name}
	c.Kubectl("delete", "pod", w.pod, "--ignore-not-found", "--grace-period=1")
	args := append([]string{"run", "--addr", c.seeds(), "--keys", "4096"}, flags...)
	c.startTool(w.pod, 120, c.Environment, args...)
	begun := time.Time{}
	c.Await("the writer to have written for "+seconds(settleIn), time.Minute, func() (bool, string) {
		if begun.IsZero() && strings.Contains(w.logs(), "writing") {
			begun = time.Now()
		}
		return !begun.IsZero() && time.Since(begun) >= settleIn, "the writer's log: " + w.logs()
	})
	c.Say("a writer is writing to all shards")
	return w
}

func (w *Writer) logs() string {
	c := w.cluster
	text, err := c.Typed.CoreV1().Pods(c.Namespace).GetLogs(w.pod, &corev1.PodLogOptions{}).DoRaw(c.ctx)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends the writer, which then reads every acknowledged key back.
func (w *Writer) Stop() ledger.Report {
	c := w.cluster
	// A writer that is quick to end takes the command down with it: whether it was
	// told shows in its pod.
	_, told := c.TryKubectl("exec", w.pod, "--", "/ledger", "stop")
	c.Await("the writer to read everything back", 2*time.Minute, func() (bool, string) {
		p, err := c.Typed.CoreV1().Pods(c.Namespace).Get(c.ctx, w.pod, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		c.Expect(p.Status.Phase != corev1.PodFailed, "the writer failed: %s", w.logs())
		return p.Status.Phase == corev1.PodSucceeded, fmt.Sprintf("pod %s; told to stop: %v", p.Status.Phase, told)
	})
	var r ledger.Report
	c.NoError(json.Unmarshal([]byte(lastLine(w.logs())), &r), "reading the writer's report")
	c.Say("the writer: %s", Brief(r))
	c.Say("longest stall of each shard: %s", stalls(r))
	return r
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// Brief is a report in one line.
func Brief(r ledger.Report) string {
	text := fmt.Sprintf("%d writes acknowledged, %d errors, %d lost, %d stale, %d undone, longest stall of a shard %.2f s",
		r.Acked, r.Errors, r.Lost, r.Stale, r.Undone, LongestStall(r))
	kinds := make([]string, 0, len(r.ErrorKinds))
	for kind, n := range r.ErrorKinds {
		kinds = append(kinds, fmt.Sprintf(", %s %d", kind, n))
	}
	slices.Sort(kinds)
	return text + strings.Join(kinds, "")
}

// stalls are the longest times that each shard took no write.
func stalls(r ledger.Report) string {
	each := make([]string, len(r.Shards))
	for i, shard := range r.Shards {
		each[i] = fmt.Sprintf("%.2f s (slots %s)", shard.Seconds, shard.Slots)
	}
	return strings.Join(each, ", ")
}

// LongestStall is the longest time that any shard took no write, in seconds.
func LongestStall(r ledger.Report) float64 {
	longest := 0.0
	for _, shard := range r.Shards {
		longest = max(longest, shard.Seconds)
	}
	return longest
}

// NothingLost ends the journey if an acknowledged write is gone.
func (w *Writer) NothingLost(r ledger.Report) {
	w.cluster.Expect(r.Acked > 0, "the writer wrote nothing")
	w.cluster.Expect(r.Lost == 0 && r.Stale == 0 && r.Undone == 0 && r.Unread == 0,
		"acknowledged writes are gone: %d keys lost, %d stale, %d writes undone, %d keys unreadable %v", r.Lost, r.Stale, r.Undone, r.Unread, r.Notes)
}

// NothingNoticed ends the journey if an acknowledged write is gone or a client saw an error.
func (w *Writer) NothingNoticed(r ledger.Report) {
	w.NothingLost(r)
	w.cluster.Expect(r.Errors == 0, "clients saw %d errors: %v", r.Errors, r.ErrorKinds)
}
