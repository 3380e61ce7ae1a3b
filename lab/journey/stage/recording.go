package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Recording keeps every version of a cluster's objects of one kind that the
// API server shows, in the order in which it shows them.
type Recording[T metav1.Object] struct {
	cluster *Cluster
	present func() []string
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	seen    []Version[T]
	trouble error
}

// Version is an object at one moment.
type Version[T metav1.Object] struct {
	Object  T
	Deleted bool
}

// ClaimRecording is a recording of claims.
type ClaimRecording = Recording[*corev1.PersistentVolumeClaim]

// PodRecording is a recording of pods.
type PodRecording = Recording[*corev1.Pod]

// RecordClaims begins to record the cluster's claims.
func (c *Cluster) RecordClaims() *ClaimRecording {
	return record[*corev1.PersistentVolumeClaim](c, c.Typed.CoreV1().PersistentVolumeClaims(c.Namespace).Watch, func() []string {
		var versions []string
		for _, claim := range c.Claims() {
			versions = append(versions, claim.ResourceVersion)
		}
		return versions
	})
}

// RecordPods begins to record the cluster's pods.
func (c *Cluster) RecordPods() *PodRecording {
	return record[*corev1.Pod](c, c.Typed.CoreV1().Pods(c.Namespace).Watch, func() []string {
		var versions []string
		for _, pod := range c.Pods() {
			versions = append(versions, pod.ResourceVersion)
		}
		return versions
	})
}

type openWatch func(context.Context, metav1.ListOptions) (watch.Interface, error)

// record begins with the objects that are there, and returns once it has them.
// The versions that are present now are what it ends with.
func record[T metav1.Object](c *Cluster, open openWatch, present func() []string) *Recording[T] {
	ctx, stop := context.WithCancel(c.ctx)
	w, err := open(ctx, metav1.ListOptions{LabelSelector: c.Selector()})
	if err != nil {
		stop()
	}
	c.NoError(err, "watching the cluster's objects")
	r := &Recording[T]{cluster: c, present: present, stop: stop, done: make(chan struct{})}
	go r.run(ctx, w)
	r.awaitPresent()
	return r
}

func (r *Recording[T]) run(ctx context.Context, w watch.Interface) {
	defer close(r.done)
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.ResultChan():
			object, is := e.Object.(T)
			r.mu.Lock()
			if is {
				r.seen = append(r.seen, Version[T]{object, e.Type == watch.Deleted})
			} else if ctx.Err() == nil { // else it ends because it was told to
				r.trouble = fmt.Errorf("the watch ended: %v", e.Object)
			}
			r.mu.Unlock()
			if !is {
				return
			}
		}
	}
}

func (r *Recording[T]) awaitPresent() {
	r.cluster.Await("the present objects to be recorded", time.Minute, func() (bool, string) {
		for _, version := range r.present() {
			if !r.has(version) {
				return false, "version " + version + " is missing"
			}
		}
		return true, ""
	})
}

func (r *Recording[T]) has(version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trouble != nil || slices.ContainsFunc(r.seen, func(v Version[T]) bool { return v.Object.GetResourceVersion() == version })
}

// Stop ends the recording once it has what is present, and returns all versions.
func (r *Recording[T]) Stop() []Version[T] {
	r.awaitPresent()
	r.stop()
	<-r.done
	r.cluster.NoError(r.trouble, "recording the cluster's objects")
	return r.seen
}

// Asked are the sizes that each claim asked for, one after the other.
func Asked(versions []Version[*corev1.PersistentVolumeClaim]) map[string][]string {
	asked := map[string][]string{}
	for _, v := range versions {
		size := v.Object.Spec.Resources.Requests.Storage().String()
		before := asked[v.Object.Name]
		if len(before) == 0 || before[len(before)-1] != size {
			asked[v.Object.Name] = append(before, size)
		}
	}
	return asked
}

// Outages are the members that went down after they had been ready, in that
// order, and the most that were down at a time in any shard.
func Outages(versions []Version[*corev1.Pod]) (order []string, together int) {
	ready := map[string]bool{}
	for _, v := range versions {
		member, is := MemberOf(v.Object), !v.Deleted && PodReady(v.Object)
		was, known := ready[member]
		if !known && !is {
			continue
		}
		ready[member] = is
		if is || !was {
			continue
		}
		order = append(order, member)
		down := 0
		for other, up := range ready {
			if !up && shardOf(other) == shardOf(member) {
				down++
			}
		}
		together = max(together, down)
	}
	return order, together
}

// shardOf is the shard of a member, for example 0 of 0-1.
func shardOf(member string) string { return member[:len(member)-len("-0")] }
