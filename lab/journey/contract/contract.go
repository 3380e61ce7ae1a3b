// Package contract is what a user of the API sees: the fields of
// ValkeyCluster and ValkeyNode that the journeys read, by their names in JSON.
//
// It promises to say nothing that is not on the wire. It must not import the
// operator's Go types: a renamed field breaks users, and so must break a journey.
package contract

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Clusters and Nodes are the resources of the two kinds.
var (
	Clusters = schema.GroupVersionResource{Group: "valkey.io", Version: "v1alpha1", Resource: "valkeyclusters"}
	Nodes    = schema.GroupVersionResource{Group: "valkey.io", Version: "v1alpha1", Resource: "valkeynodes"}
)

// Labels and names that users rely on.
const (
	LabelInstance   = "app.kubernetes.io/instance"
	LabelShardIndex = "valkey.io/shard-index"
	LabelNodeIndex  = "valkey.io/node-index"
	// ServerContainer runs the server, below the agent.
	ServerContainer = "server"
	// DataPath is where that container has the volume.
	DataPath = "/data"
	// AgentPort serves the agent's facts at FactsPath.
	AgentPort = 9122
	FactsPath = "/v1/facts"
	// ClusterIDAnnotation of a claim is the identity of its data.
	ClusterIDAnnotation = "valkey.io/cluster-id"
)

// Service is the name of a cluster's client Service.
func Service(cluster string) string { return "valkey-" + cluster }

// Cluster is a ValkeyCluster.
type Cluster struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		State              string             `json:"state"`
		Reason             string             `json:"reason"`
		Message            string             `json:"message"`
		ObservedGeneration int64              `json:"observedGeneration"`
		ClusterID          string             `json:"clusterID"`
		Formed             bool               `json:"formed"`
		Shards             int                `json:"shards"`
		ReadyShards        int                `json:"readyShards"`
		Storage            Storage            `json:"storage"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Storage is a cluster's status.storage.
type Storage struct {
	RequestedSize resource.Quantity `json:"requestedSize"`
	Capacity      struct {
		Min resource.Quantity `json:"min"`
		Max resource.Quantity `json:"max"`
	} `json:"capacity"`
	Phase      string       `json:"phase"`
	ExpandedAt *metav1.Time `json:"expandedAt"`
	Volumes    []Volume     `json:"volumes"`
}

// Volume is one line of status.storage.volumes.
type Volume struct {
	Node      string            `json:"node"`
	Claim     string            `json:"claim"`
	Phase     string            `json:"phase"`
	Reason    string            `json:"reason"`
	Message   string            `json:"message"`
	Requested resource.Quantity `json:"requested"`
	Capacity  resource.Quantity `json:"capacity"`
}

// Node is a ValkeyNode.
type Node struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		PodName string `json:"podName"`
		PodUID  string `json:"podUID"`
		Worker  string `json:"worker"`
		Role    string `json:"role"`
		NodeID  string `json:"nodeID"`
		Agent   struct {
			Server   string `json:"server"`
			Decision string `json:"decision"`
			Message  string `json:"message"`
		} `json:"agent"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Decode reads an object of the API into one of the types above.
func Decode(from *unstructured.Unstructured, into any) error {
	text, err := from.MarshalJSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: %w", from.GetKind(), from.GetName(), err)
	}
	return nil
}

// Condition finds a condition; known is false where there is none.
func Condition(all []metav1.Condition, kind string) (c metav1.Condition, known bool) {
	for _, c := range all {
		if c.Type == kind {
			return c, true
		}
	}
	return metav1.Condition{}, false
}

// Is says whether a condition has this status and, unless it is empty, this reason.
func Is(all []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) bool {
	c, known := Condition(all, kind)
	return known && c.Status == status && (reason == "" || c.Reason == reason)
}

// Brief is one line on where a cluster stands.
func (c Cluster) Brief() string {
	s := fmt.Sprintf("state %s, %d of %d shards ready", or(c.Status.State, "unknown"), c.Status.ReadyShards, c.Status.Shards)
	if c.Status.Reason != "" {
		s += ", " + c.Status.Reason
	}
	if c.Status.Message != "" {
		s += ": " + c.Status.Message
	}
	return s
}

// Ready says whether the cluster serves and has nothing left to do for its
// present spec: Ready is True of the newest generation, and Progressing is not.
func (c Cluster) Ready() bool {
	ready, known := Condition(c.Status.Conditions, "Ready")
	return known && ready.Status == metav1.ConditionTrue &&
		c.Status.ObservedGeneration == c.Metadata.Generation &&
		!Is(c.Status.Conditions, "Progressing", metav1.ConditionTrue, "")
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
