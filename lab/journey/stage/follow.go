package stage

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// Follower records every version of a cluster that the API server shows.
type Follower struct {
	cluster *Cluster
	stop    context.CancelFunc
	done    chan struct{}
	mu      sync.Mutex
	seen    []contract.Cluster
	trouble error
}

// Follow begins to record. A version may be missed only if the API server
// itself drops it from the watch, which ends the journey.
func (c *Cluster) Follow() *Follower {
	ctx, stop := context.WithCancel(c.ctx)
	got, err := c.Dynamic.Resource(contract.Clusters).Namespace(c.Namespace).Get(ctx, c.Spec.Name, metav1.GetOptions{})
	c.NoError(err, "reading the cluster")
	w, err := c.Dynamic.Resource(contract.Clusters).Namespace(c.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + c.Spec.Name, ResourceVersion: got.GetResourceVersion(),
	})
	c.NoError(err, "watching the cluster")
	f := &Follower{cluster: c, stop: stop, done: make(chan struct{})}
	f.record(got)
	go f.run(ctx, w)
	return f
}

func (f *Follower) run(ctx context.Context, w watch.Interface) {
	defer close(f.done)
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-w.ResultChan():
			version, ok := e.Object.(*unstructured.Unstructured)
			if !open || !ok {
				f.mu.Lock()
				f.trouble = fmt.Errorf("the watch ended: %v", e.Object)
				f.mu.Unlock()
				return
			}
			f.record(version)
		}
	}
}

func (f *Follower) record(version *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var c contract.Cluster
	if err := contract.Decode(version, &c); err != nil {
		f.trouble = err
		return
	}
	f.seen = append(f.seen, c)
}

// Stop ends the recording and returns all versions, oldest first.
func (f *Follower) Stop() []contract.Cluster {
	f.stop()
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster.NoError(f.trouble, "following the cluster")
	return f.seen
}

// AlwaysReady ends the journey if Ready was not True in some version.
func (f *Follower) AlwaysReady(versions []contract.Cluster) {
	for i, v := range versions {
		if !contract.Is(v.Status.Conditions, "Ready", metav1.ConditionTrue, "") {
			ready, _ := contract.Condition(v.Status.Conditions, "Ready")
			f.cluster.Fail("Ready became %s/%s (%s) in version %d of %d", ready.Status, ready.Reason, ready.Message, i+1, len(versions))
		}
	}
	f.cluster.Say("Ready stayed True in all %d versions of the status", len(versions))
}

// Ever says whether a condition had this status and reason in some version.
func Ever(versions []contract.Cluster, kind string, status metav1.ConditionStatus, reason string) bool {
	for _, v := range versions {
		if contract.Is(v.Status.Conditions, kind, status, reason) {
			return true
		}
	}
	return false
}
