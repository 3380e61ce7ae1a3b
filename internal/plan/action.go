package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// Action is one thing to do: plain data that says what is wanted. The set is
// closed: package apply knows each of them.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	action()
}

// Ensure makes an object have the fields of a configuration, by server-side
// apply under a field manager.
type Ensure struct {
	Kind, Name string
	Config     runtime.ApplyConfiguration
	Manager    string
}

// EnsureNode makes a ValkeyNode have the given fields, by server-side apply
// under a field manager. With a resource version in the fields it does so only
// if the node is still as observed.
type EnsureNode struct {
	Node    string
	Fields  *unstructured.Unstructured
	Manager string
}

// ScaleWorkload takes a member's pod away (Replicas 0) or lets it come back
// (Replicas 1), if the workload is still as observed, and marks the workload as
// stopped by the operator, or no longer so.
type ScaleWorkload struct {
	Kind          v1alpha1.WorkloadType
	Name, Version string
	Replicas      int32
}

// Adopt makes an object that has no controller somebody's own. One that has
// got a controller since is left alone.
type Adopt struct {
	Kind, Name, UID string
	Owner           metav1.OwnerReference
}

// CreatePasswords makes the Secret of the system users' passwords, each
// random. One that is there already is left alone.
type CreatePasswords struct {
	Name   string
	Labels map[string]string
	Owner  metav1.OwnerReference
	Users  []string
}

// RecordIdentity writes the identity of a cluster's data into its status, if
// the cluster is still as observed. Nothing that bears the identity is made
// before that.
type RecordIdentity struct {
	Cluster, Version string
	ClusterID        string
}

// CreateClaim makes a claim. One that is there already is left alone.
type CreateClaim struct {
	Claim *corev1ac.PersistentVolumeClaimApplyConfiguration
}

// ExpandClaim raises (or, to take back an infeasible request, lowers) the size
// that a claim asks for, if the claim is still as observed.
type ExpandClaim struct {
	Claim, Version string
	From, To       resource.Quantity
}

// TryExpandClaim asks the API server whether it would let a claim ask for
// another size, and changes nothing.
type TryExpandClaim struct {
	Claim, Version string
	From, To       resource.Quantity
}

// OwnClaim makes the ValkeyCluster an owner of a claim, so that it is deleted
// with the cluster, or (Owned false) removes that owner.
type OwnClaim struct {
	Claim, Version string
	Owner          Owner
	Owned          bool
}

// Owner is the ValkeyCluster that a claim goes with.
type Owner struct{ Name, UID string }

// MarkClaim sets annotations and labels of a claim.
type MarkClaim struct {
	Claim, Version string
	Labels         map[string]string
	Annotations    map[string]string
}

// MarkPod sets labels and annotations of a pod.
type MarkPod struct {
	Pod, UID    string
	Labels      map[string]string
	Annotations map[string]string
}

// DeletePod deletes a pod, so that its workload makes another one.
type DeletePod struct{ Pod, UID string }

// DeleteBudget deletes a PodDisruptionBudget, so that drains ask no more.
type DeleteBudget struct{ Name, UID string }

// Server is a Valkey server to talk to.
type Server struct {
	Node    string // the ValkeyNode
	Address string // host:port
}

// MeetNode introduces a server to another one, which may be known to it under
// an older address.
type MeetNode struct {
	Via     Server
	Node    string
	Host    string
	Port    int
	BusPort int
}

// AssignSlots gives free slots to a server.
type AssignSlots struct {
	To    Server
	Shard int
	Slots valkey.Slots
}

// AttachReplica makes a server a replica of a primary.
type AttachReplica struct {
	Replica Server
	Primary valkey.NodeID
}

// TakeOver makes a replica the primary of its shard without a vote.
type TakeOver struct {
	Replica Server
	Shard   int
}

// FailOver asks a replica to take its primary's place, with the primary's help:
// that stops writes until the replica has all of them. The primary keeps its place
// if it cannot be done within five seconds.
type FailOver struct {
	Replica Server
	Shard   int
}

// ForgetNode removes an id from a server's node table.
type ForgetNode struct {
	From Server
	ID   valkey.NodeID
}

// RewriteLog makes a server write its append-only file anew, without what its
// data no longer needs.
type RewriteLog struct{ Server Server }

// StartEmpty lets a member whose agent holds it start without its data, which the
// agent sets aside, if it is still in the hold that was seen.
type StartEmpty struct {
	Node, Host string
	To         protocol.Addressee
	Command    protocol.StartEmpty
}

func (Ensure) action()          {}
func (EnsureNode) action()      {}
func (Adopt) action()           {}
func (CreatePasswords) action() {}
func (RecordIdentity) action()  {}
func (CreateClaim) action()     {}
func (ExpandClaim) action()     {}
func (TryExpandClaim) action()  {}
func (OwnClaim) action()        {}
func (MarkClaim) action()       {}
func (MarkPod) action()         {}
func (DeletePod) action()       {}
func (DeleteBudget) action()    {}
func (MeetNode) action()        {}
func (AssignSlots) action()     {}
func (AttachReplica) action()   {}
func (TakeOver) action()        {}
func (ScaleWorkload) action()   {}
func (FailOver) action()        {}
func (ForgetNode) action()      {}
func (RewriteLog) action()      {}
func (StartEmpty) action()      {}

func (a Ensure) String() string { return fmt.Sprintf("apply %s %s", a.Kind, a.Name) }
func (a EnsureNode) String() string {
	if a.Fields != nil {
		stopped, about, _ := unstructured.NestedBool(a.Fields.Object, "spec", "stopped")
		switch {
		case about && stopped:
			return fmt.Sprintf("stop node %s", a.Node)
		case about:
			return fmt.Sprintf("let node %s run", a.Node)
		}
	}
	return fmt.Sprintf("apply node %s as %s", a.Node, a.Manager)
}
func (a Adopt) String() string           { return fmt.Sprintf("adopt %s %s", a.Kind, a.Name) }
func (a CreatePasswords) String() string { return fmt.Sprintf("create Secret %s", a.Name) }
func (a RecordIdentity) String() string {
	return fmt.Sprintf("give cluster %s the identity %s", a.Cluster, a.ClusterID)
}
func (a CreateClaim) String() string { return fmt.Sprintf("create claim %s", *a.Claim.Name) }
func (a ExpandClaim) String() string {
	return fmt.Sprintf("expand claim %s from %s to %s", a.Claim, a.From.String(), a.To.String())
}

func (a TryExpandClaim) String() string {
	return fmt.Sprintf("try to expand claim %s from %s to %s", a.Claim, a.From.String(), a.To.String())
}

func (a OwnClaim) String() string {
	if a.Owned {
		return fmt.Sprintf("make claim %s go with cluster %s", a.Claim, a.Owner.Name)
	}
	return fmt.Sprintf("make claim %s outlive cluster %s", a.Claim, a.Owner.Name)
}
func (a MarkClaim) String() string { return fmt.Sprintf("mark claim %s", a.Claim) }
func (a MarkPod) String() string   { return fmt.Sprintf("mark pod %s", a.Pod) }
func (a DeletePod) String() string { return fmt.Sprintf("delete pod %s", a.Pod) }

func (a DeleteBudget) String() string {
	return fmt.Sprintf("delete PodDisruptionBudget %s", a.Name)
}

func (a MeetNode) String() string {
	return fmt.Sprintf("introduce node %s at %s to node %s", a.Node, a.Host, a.Via.Node)
}

func (a AssignSlots) String() string {
	return fmt.Sprintf("assign slots %s to node %s", a.Slots, a.To.Node)
}

func (a AttachReplica) String() string {
	return fmt.Sprintf("attach node %s as replica of %s", a.Replica.Node, a.Primary)
}

func (a TakeOver) String() string {
	return fmt.Sprintf("let node %s take shard %d over", a.Replica.Node, a.Shard)
}

func (a FailOver) String() string {
	return fmt.Sprintf("ask node %s to take shard %d over from its primary", a.Replica.Node, a.Shard)
}

func (a ScaleWorkload) String() string {
	return fmt.Sprintf("scale %s %s to %d", a.Kind, a.Name, a.Replicas)
}

func (a ForgetNode) String() string {
	return fmt.Sprintf("make node %s forget %s", a.From.Node, a.ID)
}

func (a StartEmpty) String() string {
	return fmt.Sprintf("let node %s (%s) start without its data", a.Node, a.Command.Decision)
}

func (a RewriteLog) String() string { return fmt.Sprintf("rewrite the log of node %s", a.Server.Node) }
