package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

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
				if ctx.Err() == nil { // else it ends because it was told to
					f.fail(fmt.Errorf("the watch ended: %v", e.Object))
				}
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
	if n := len(f.seen); n > 0 && f.seen[n-1].Metadata.ResourceVersion == c.Metadata.ResourceVersion {
		return // a watch may begin with the version that was read
	}
	f.seen = append(f.seen, c)
}

func (f *Follower) fail(trouble error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = trouble
}

// reached says whether a version was recorded, or never will be.
func (f *Follower) reached(version string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trouble != nil || slices.ContainsFunc(f.seen, func(c contract.Cluster) bool { return c.Metadata.ResourceVersion == version })
}

// Stop ends the recording once it has the present version, and returns all
// versions, oldest first.
func (f *Follower) Stop() []contract.Cluster {
	present := f.cluster.Get().Metadata.ResourceVersion
	f.cluster.Await("the present version of the cluster to be recorded", time.Minute, func() (bool, string) {
		return f.reached(present), "version " + present + " is missing"
	})
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
