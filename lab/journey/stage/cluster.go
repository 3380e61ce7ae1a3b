package stage

import (
	"fmt"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"valkey.io/valkey-operator/lab/journey/contract"
)

// readyWithin is how long a cluster may take to be Ready. A journey about time
// measures; this only ends a journey that is stuck.
const readyWithin = 3 * time.Minute

// Spec is what the journeys vary of a ValkeyCluster.
type Spec struct {
	Name             string
	Shards, Replicas int
	// Size of each volume; empty makes an ephemeral cluster.
	Size string
	// Class overrides the world's storage class.
	Class        string
	WorkloadType string
	// Image overrides the world's.
	Image string
	// More is YAML below spec, indented by two spaces.
	More string
	// MoreStorage is YAML below spec.storage, indented by four spaces.
	MoreStorage string
}

// Manifest is the YAML that a user would write.
func (w *World) Manifest(spec Spec) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.WriteString("apiVersion: valkey.io/v1alpha1\nkind: ValkeyCluster\nmetadata:\n")
	line("  name", spec.Name)
	fmt.Fprintf(&b, "spec:\n  shards: %d\n  replicas: %d\n", spec.Shards, spec.Replicas)
	line("  image", or(spec.Image, w.Images.Valkey))
	line("  workloadType", spec.WorkloadType)
	if spec.Size != "" {
		b.WriteString("  storage:\n    enabled: true\n")
		line("    size", spec.Size)
		line("    storageClassName", or(spec.Class, w.StorageClass))
		b.WriteString(spec.MoreStorage)
	}
	b.WriteString(spec.More)
	return b.String()
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Cluster is a ValkeyCluster of the journey.
type Cluster struct {
	*Stage
	Spec Spec
	// Environment is how the ledger logs in, as NAME=value.
	Environment map[string]string
}

// Create applies the manifest of a cluster and does not wait.
func (s *Stage) Create(spec Spec) *Cluster {
	s.Say("creating cluster %s: %d shards with %d replicas each, %s", spec.Name, spec.Shards, spec.Replicas, kindOf(spec))
	s.Apply(s.Manifest(spec))
	return s.Cluster(spec)
}

// Cluster is a handle on a cluster that exists.
func (s *Stage) Cluster(spec Spec) *Cluster { return &Cluster{Stage: s, Spec: spec} }

func kindOf(spec Spec) string {
	if spec.Size == "" {
		return "ephemeral"
	}
	return "volumes of " + spec.Size
}

// Members is the number of servers.
func (c *Cluster) Members() int { return c.Spec.Shards * (1 + c.Spec.Replicas) }

// Selector selects the cluster's pods and claims.
func (c *Cluster) Selector() string { return contract.LabelInstance + "=" + c.Spec.Name }

// Get reads the cluster.
func (c *Cluster) Get() contract.Cluster {
	got, err := c.read()
	c.NoError(err, "reading valkeycluster "+c.Spec.Name)
	return got
}

func (c *Cluster) read() (contract.Cluster, error) {
	var got contract.Cluster
	found, err := c.Dynamic.Resource(contract.Clusters).Namespace(c.Namespace).Get(c.ctx, c.Spec.Name, metav1.GetOptions{})
	if err != nil {
		return got, err
	}
	return got, contract.Decode(found, &got)
}

// Nodes reads the cluster's ValkeyNodes, sorted by name.
func (c *Cluster) Nodes() []contract.Node {
	list, err := c.Dynamic.Resource(contract.Nodes).Namespace(c.Namespace).List(c.ctx, metav1.ListOptions{LabelSelector: c.Selector()})
	c.NoError(err, "listing valkeynodes")
	nodes := make([]contract.Node, len(list.Items))
	for i := range list.Items {
		c.NoError(contract.Decode(&list.Items[i], &nodes[i]), "reading a valkeynode")
	}
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].Metadata.Name < nodes[j].Metadata.Name })
	return nodes
}

// Pods reads the cluster's pods, those on their way out included, sorted by name.
func (c *Cluster) Pods() []corev1.Pod {
	list, err := c.Typed.CoreV1().Pods(c.Namespace).List(c.ctx, metav1.ListOptions{LabelSelector: c.Selector()})
	c.NoError(err, "listing pods")
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Name < list.Items[j].Name })
	return list.Items
}

// Claims reads the cluster's claims, sorted by name.
func (c *Cluster) Claims() []corev1.PersistentVolumeClaim {
	list, err := c.Typed.CoreV1().PersistentVolumeClaims(c.Namespace).List(c.ctx, metav1.ListOptions{LabelSelector: c.Selector()})
	c.NoError(err, "listing claims")
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Name < list.Items[j].Name })
	return list.Items
}

// AwaitReady waits until the cluster says that it serves and has nothing left
// to do, and checks that the servers themselves agree.
func (c *Cluster) AwaitReady() time.Duration {
	took := c.Await("cluster "+c.Spec.Name+" to be Ready", readyWithin, func() (bool, string) {
		got, err := c.read()
		if err != nil {
			return false, err.Error()
		}
		return got.Ready(), got.Brief()
	})
	c.AwaitServing()
	c.Say("cluster %s is Ready after %s, and its servers agree", c.Spec.Name, seconds(took))
	return took
}

// AwaitCondition waits for a condition of this status and, unless it is empty, reason.
func (c *Cluster) AwaitCondition(kind string, status metav1.ConditionStatus, reason string, within time.Duration) metav1.Condition {
	return c.awaitCondition(kind, Told{kind, status, reason}, within, func() ([]metav1.Condition, error) {
		got, err := c.read()
		return got.Status.Conditions, err
	})
}

// Patch edits the cluster by a merge patch.
func (c *Cluster) Patch(patch string) {
	c.NoError(c.TryPatch(patch), "patching the cluster with "+patch)
}

// TryPatch is Patch where a refusal is part of the story.
func (c *Cluster) TryPatch(patch string) error {
	_, err := c.Dynamic.Resource(contract.Clusters).Namespace(c.Namespace).
		Patch(c.ctx, c.Spec.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// Resize asks for another size.
func (c *Cluster) Resize(size string) {
	c.Say("asking for a size of %s", size)
	c.Patch(fmt.Sprintf(`{"spec":{"storage":{"size":%q}}}`, size))
}

// Delete deletes the cluster with this propagation (background, foreground or
// orphan) and waits until it is gone.
func (c *Cluster) Delete(propagation string) {
	c.Kubectl("delete", "valkeycluster", c.Spec.Name, "--cascade="+propagation, "--timeout=90s")
}

// DeletePods deletes the named pods at once and does not wait; none named means all.
func (c *Cluster) DeletePods(names ...string) {
	if len(names) == 0 {
		c.NoError(c.Typed.CoreV1().Pods(c.Namespace).DeleteCollection(c.ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: c.Selector()}), "deleting all pods")
		return
	}
	for _, name := range names {
		c.NoError(c.Typed.CoreV1().Pods(c.Namespace).Delete(c.ctx, name, metav1.DeleteOptions{}), "deleting pod "+name)
	}
}
