package controller_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/controller"
	"valkey.io/valkey-operator/internal/observe"
	"valkey.io/valkey-operator/internal/valkey/valkeytest"
)

const (
	namespace   = "shop"
	clusterName = "prod"
	className   = "fast"
)

var kinds = func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(kinds); err != nil {
			panic(err)
		}
	}
	return kinds
}()

// world is one cluster with its two reconcilers, a small Kubernetes under it
// and servers in memory. It is driven by hand, and nothing in it waits.
type world struct {
	t       *testing.T
	api     *store // Kubernetes' own hands
	tap     *tap
	servers *valkeytest.Cluster
	// volumes are the servers, by their place among all, by the UID of their
	// claim or, without one, their pod.
	volumes map[string]int
	// live are the pods that run, by their address.
	live      map[string]seat
	addresses int
	ticks     int
	sizes     map[string]resource.Quantity
	// nodesFirst says which controller is quicker.
	nodesFirst bool
	// offline says that the driver grows no volume that a pod uses.
	offline bool
	// asleep says that the driver does nothing about a volume that no pod uses.
	asleep bool
	// barren says that no pod is made, as a quota or a webhook may see to.
	barren bool
	// most is the largest size that the driver can give; zero for any.
	most resource.Quantity
	// instead is the size that the user asks for when told that another is infeasible.
	instead string
	// filled are the bytes that each volume of a shard is filled with; agents tell
	// nothing of the others.
	filled map[int]int64

	clusters *controller.ClusterReconciler
	nodes    *controller.NodeReconciler
}

// seat is a pod that runs: its server, and what its agent was told it is.
type seat struct {
	server      int
	clusterID   string
	shard, node int
}

// newWorld is a world with an expandable StorageClass and a ValkeyCluster that
// nobody has looked at yet.
func newWorld(t *testing.T, spec v1alpha1.ValkeyClusterSpec) *world {
	t.Helper()
	w := &world{
		t: t, api: newStore(), servers: valkeytest.New(valkeytest.Options{Seed: 1}),
		volumes: map[string]int{}, live: map[string]seat{}, sizes: map[string]resource.Quantity{},
	}
	w.must(w.api.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: className}, Provisioner: "test", AllowVolumeExpansion: new(true),
	}))
	w.must(w.api.Create(t.Context(), &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName, UID: "cluster-uid", Generation: 1}, Spec: spec,
	}))
	w.startOperator()
	return w
}

// fork is a second world in the very state of this one, with an operator that
// has just started.
func (w *world) fork(t *testing.T) *world {
	t.Helper()
	fork := &world{
		t: t, api: w.api.fork(), servers: w.servers.Clone(), volumes: maps.Clone(w.volumes), live: maps.Clone(w.live),
		addresses: w.addresses, ticks: w.ticks, sizes: maps.Clone(w.sizes), offline: w.offline, asleep: w.asleep, most: w.most, instead: w.instead, filled: maps.Clone(w.filled),
	}
	fork.startOperator()
	return fork
}

func persistent(shards, replicas int32) v1alpha1.ValkeyClusterSpec {
	spec := ephemeral(shards, replicas)
	spec.Storage = &v1alpha1.Storage{Enabled: true, Size: new(resource.MustParse("1Gi")), StorageClassName: new(className)}
	return spec
}

func ephemeral(shards, replicas int32) v1alpha1.ValkeyClusterSpec {
	return v1alpha1.ValkeyClusterSpec{Shards: shards, Replicas: replicas, Image: "valkey/valkey:9.1.2"}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// startOperator has fresh reconcilers, which remember nothing.
func (w *world) startOperator() {
	w.tap = &tap{}
	w.servers.Before, w.servers.After = w.tap.before, w.tap.after
	operator := w.tap.on(w.api)
	events := &record.FakeRecorder{} // without a channel it drops them
	w.clusters = &controller.ClusterReconciler{
		Client: operator, Dial: w.servers.Dial, Events: events, AgentImage: "valkey-operator:v1",
		Observer: observe.ClusterObserver{Reader: w.api, Direct: w.api, ReadClasses: true, Dial: w.servers.Dial, Ask: w.ask, Now: w.now},
	}
	w.nodes = &controller.NodeReconciler{
		Client: operator, Events: events,
		Observer: observe.NodeObserver{Reader: w.api, ReadClasses: true, Ask: w.ask, Now: w.now},
	}
}

// pass has the operator look at everything once. An error is tried again by
// the next pass, as a work queue would.
func (w *world) pass() {
	w.t.Helper()
	if w.nodesFirst {
		w.passNodes()
		w.passCluster()
		return
	}
	w.passCluster()
	w.passNodes()
}

// now is the time in this world: each tick takes a second.
func (w *world) now() time.Time {
	return time.Date(2026, 11, 30, 12, 0, w.ticks, 0, time.UTC)
}

func (w *world) context() context.Context { return ctrl.LoggerInto(w.t.Context(), logr.Discard()) }

func (w *world) passCluster() { _, _ = w.clusters.Reconcile(w.context(), w.cluster()) }

func (w *world) passNodes() {
	w.t.Helper()
	for _, object := range w.list(&v1alpha1.ValkeyNodeList{}) {
		if node, is := object.(*v1alpha1.ValkeyNode); is {
			_, _ = w.nodes.Reconcile(w.context(), node)
		}
	}
}

func (w *world) cluster() *v1alpha1.ValkeyCluster {
	w.t.Helper()
	cluster := &v1alpha1.ValkeyCluster{}
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: clusterName}, cluster))
	return cluster
}

// list are the objects of a kind, by name.
func (w *world) list(of client.ObjectList) []client.Object {
	w.t.Helper()
	w.must(w.api.List(w.t.Context(), of, client.InNamespace(namespace)))
	items, err := meta.ExtractList(of)
	w.must(err)
	var objects []client.Object
	for _, item := range items {
		if object, is := item.(client.Object); is {
			objects = append(objects, object)
		}
	}
	return objects
}

// mostRounds is far more than any story here takes: tens of rounds.
const mostRounds = 300

// settle lets the operator and the world take turns until nobody does anything
// any more and the cluster is ready.
func (w *world) settle() {
	w.t.Helper()
	for range mostRounds {
		before := w.tap.count
		w.pass()
		w.checkClaims()
		if moved := w.tick(); !moved && w.tap.count == before && w.ready() {
			return
		}
	}
	status := w.cluster().Status
	w.t.Fatalf("not settled after %d rounds: %s %s: %s\nlast writes: %q", mostRounds, status.State, status.Reason, status.Message, w.tap.last(20))
}

// checkClaims fails the test when a claim asks for less than before, unless that is
// infeasible, and whenever it asks for less than it has.
func (w *world) checkClaims() {
	w.t.Helper()
	for _, object := range w.list(&corev1.PersistentVolumeClaimList{}) {
		claim, _ := object.(*corev1.PersistentVolumeClaim)
		asked := claim.Spec.Resources.Requests.Storage()
		before, known := w.sizes[claim.Name]
		if known && asked.Cmp(before) < 0 && !infeasible(claim) || asked.IsZero() || asked.Cmp(*claim.Status.Capacity.Storage()) < 0 {
			w.t.Errorf("claim %s of %s asks for %s, and asked for %s before", claim.Name, claim.Status.Capacity.Storage(), asked, before.String())
		}
		w.sizes[claim.Name] = *asked
	}
}

func (w *world) ready() bool {
	status := w.cluster().Status
	return status.State == v1alpha1.StateReady && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStorageReady)
}

// picture is what must come out the same whatever happened on the way.
type picture struct {
	Status  string
	Members map[string]member
	Objects map[string]int
	Lost    []string
	// Files are the user's settings in each file of the ConfigMap.
	Files []string
}

type member struct {
	ID, Primary string
	Slots       string
	Knows       int
	Claim       string
	Size        string
	Capacity    string
	Settings    string
}

// picture tells ids by the place of the member that has them, unless they are
// to be compared with those of another time in this same world.
func (w *world) picture() picture {
	w.t.Helper()
	out := picture{Members: map[string]member{}, Objects: map[string]int{}, Lost: w.servers.Lost(), Files: w.settingsInFiles()}
	status := w.cluster().Status
	out.Status = fmt.Sprintf("%s %s %t %s", status.State, status.Reason, status.Formed, status.ShardsReady)
	for _, of := range []client.ObjectList{
		&v1alpha1.ValkeyNodeList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ServiceList{},
	} {
		out.Objects[strings.TrimSuffix(kindOf(of), "List")] = len(w.list(of))
	}
	for _, object := range w.list(&corev1.PodList{}) {
		pod, _ := object.(*corev1.Pod)
		out.Members[nodeOfPod(pod)] = w.member(pod)
	}
	return out
}

func (w *world) member(pod *corev1.Pod) member {
	at, lives := w.live[pod.Status.PodIP]
	if !lives {
		return member{}
	}
	view := w.servers.Nodes()[at.server].View()
	myself, _ := view.Myself()
	out := member{ID: string(myself.ID), Primary: string(myself.PrimaryID), Slots: myself.Slots.String(), Knows: len(view.Table.Nodes), Settings: w.settingsOf(at.server)}
	if claim := w.claimOf(pod); claim != nil {
		out.Claim = string(claim.UID)
		out.Size = claim.Spec.Resources.Requests.Storage().String()
		out.Capacity = claim.Status.Capacity.Storage().String()
	}
	return out
}

// shape is a picture without what differs between two worlds: ids and UIDs, and
// which member of a shard is its primary.
func (p picture) shape() picture {
	names := map[string]string{}
	for node, m := range p.Members {
		names[m.ID] = node[:len(node)-2]
	}
	out := p
	out.Members = map[string]member{}
	slots := map[string][]string{}
	for node, m := range p.Members {
		shard := node[:len(node)-2]
		slots[shard] = append(slots[shard], m.Slots)
		if m.Primary != "" {
			m.Primary = names[m.Primary]
		}
		out.Members[node] = member{Knows: m.Knows, Size: m.Size, Capacity: m.Capacity, Settings: m.Settings}
		if m.Primary != "" && m.Primary != shard {
			out.Members[node] = member{ID: "follows " + m.Primary}
		}
	}
	for shard, owned := range slots {
		slices.Sort(owned)
		out.Members[shard] = member{Slots: fmt.Sprint(owned)}
	}
	return out
}

// write writes keys, which must be there at the end.
func (w *world) write(keys int) {
	w.t.Helper()
	for i := range keys {
		w.must(w.servers.Write(fmt.Sprint("key-", i), "value"))
	}
	w.servers.Step()
}
