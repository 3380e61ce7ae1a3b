package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/valkey"
)

// Cluster is everything observed of one ValkeyCluster: the input of its plan.
type Cluster struct {
	Now        time.Time `json:"now"`
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	Version    string    `json:"version"` // resource version
	Generation int64     `json:"generation"`
	CreatedAt  time.Time `json:"createdAt"`
	// Deleting says that the cluster is on its way out: nothing is made for it any more.
	Deleting bool                         `json:"deleting,omitempty"`
	Status   v1alpha1.ValkeyClusterStatus `json:"status"`
	// FreshID is an identity that nobody has, for a cluster that needs its first.
	FreshID string `json:"freshID"`

	// Passwords are the digests of the system users' passwords, by user; nil
	// when the Secret does not exist.
	Passwords map[string]string `json:"passwords"`
	// Users are the digests of the passwords of the spec's users, in its order.
	Users []UserPasswords `json:"users,omitempty"`
	// Objects are the cluster's own objects, by Kind/name; absent ones are not listed.
	Objects map[string]Object `json:"objects,omitempty"`
	// Claims are all claims that bear the cluster's label, those of members too.
	Claims []Claim `json:"claims,omitempty"`
	// Unowned are the shards of a new cluster whose slots were given to nobody, as
	// far as is remembered: forgetting it costs waiting until every member answers.
	Unowned map[int]bool `json:"unowned,omitempty"`
	// FailOvers are when a replica of a shard was last asked to take over from a
	// primary that is well, as far as is remembered: forgetting it costs one try more.
	FailOvers map[int]time.Time `json:"failOvers,omitempty"`
	// LossAllowed is the template revision for which a person allowed that members
	// without volume and replica lose their keys; empty for none.
	LossAllowed string `json:"lossAllowed,omitempty"`
	// ConfigFiles are the files of settings in the cluster's ConfigMap, by name.
	ConfigFiles map[string]string `json:"configFiles,omitempty"`
	// Given are the settings that running servers were given, by node, as far as is
	// remembered: forgetting it costs giving them again.
	Given map[string]GivenSettings `json:"given,omitempty"`
	// SettingRefusals are what servers said last to settings that they refused and
	// have not taken since, by node, as far as is remembered.
	SettingRefusals map[string]SettingRefusal `json:"settingRefusals,omitempty"`
	// Classes are the StorageClasses of the claims, by name, as far as they may
	// be read.
	Classes map[string]Class `json:"classes,omitempty"`
	// Quotas and Limits are what the namespace allows claims. They are read only
	// when a growth is about to begin.
	Quotas Fact[[]Quota]      `json:"quotas"`
	Limits Fact[[]ClaimLimit] `json:"limits"`
	// Refusal is what the API server said last to a trial of a growth that it
	// refused; nil when it never did, or gave in since.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Members are the members that the spec wants and those that exist, in order.
	Members []Member `json:"members,omitempty"`
}

// Quota is what a ResourceQuota leaves for the storage requests of claims.
type Quota struct {
	Name string `json:"name"`
	// Class confines it to the claims of a StorageClass; empty means all claims.
	Class string `json:"class,omitempty"`
	// Left is what it does not hold yet; below zero when it was lowered since.
	Left resource.Quantity `json:"left"`
}

// ClaimLimit is the largest request that a LimitRange lets a claim make.
type ClaimLimit struct {
	Name string            `json:"name"`
	Max  resource.Quantity `json:"max"`
}

// Class is the StorageClass of a name, if it could be read.
func (c Cluster) Class(className string) Fact[Class] {
	if class, read := c.Classes[className]; read {
		return Seen(class)
	}
	return Unknown[Class]("the class could not be read")
}

// Object is an object as far as we may own it.
type Object struct {
	UID string `json:"uid,omitempty"`
	// Foreign says that it belongs to somebody else; Earlier, that this is an
	// earlier cluster of the same name, which it goes with.
	Foreign bool `json:"foreign,omitempty"`
	Earlier bool `json:"earlier,omitempty"`
	// Orphaned objects have no controller: they would outlive their cluster.
	Orphaned bool `json:"orphaned,omitempty"`
	// Digest of the fields that our field manager owns.
	Digest string `json:"digest,omitempty"`
}

// UserPasswords are the digests of one user's passwords.
type UserPasswords struct {
	Name    string   `json:"name"`
	Digests []string `json:"digests,omitempty"`
	// Missing names the Secret or key that could not be found. Where a whole
	// Secret is missing, the digests are those that the servers know.
	Missing string `json:"missing,omitempty"`
}

// Member is one member of a cluster: a ValkeyNode with its claim, pods and server.
type Member struct {
	Name  string `json:"name"`
	Shard int    `json:"shard"`
	Node  int    `json:"node"`
	// Wanted says that the spec asks for this member.
	Wanted bool `json:"wanted,omitempty"`
	// Record is the ValkeyNode; nil when there is none.
	Record *NodeRecord `json:"record,omitempty"`
	// Claim is the member's claim; nil when there is none.
	Claim *Claim `json:"claim,omitempty"`
	Pods  []Pod  `json:"pods,omitempty"`
	// Server is what the member's server says.
	Server Fact[valkey.View] `json:"server"`
	// Agent is what the member's agent says, checked to be this member's.
	Agent Fact[protocol.Facts] `json:"agent"`
}

// NodeRecord is a ValkeyNode.
type NodeRecord struct {
	UID     string `json:"uid"`
	Version string `json:"version,omitempty"` // resource version
	Foreign bool   `json:"foreign,omitempty"`
	Earlier bool   `json:"earlier,omitempty"`
	// Orphaned nodes have no owner: they would outlive their cluster.
	Orphaned bool `json:"orphaned,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
	// StoppedAt is when the member was stopped; zero while it is not, or when that
	// is not known.
	StoppedAt time.Time `json:"stoppedAt,omitzero"`
	// StoppedInVain is the size that the volume did not get although the member
	// was stopped for it; empty when that never happened.
	StoppedInVain string `json:"stoppedInVain,omitempty"`
	// StartEmpty is the hold in which a person lets the member start without its
	// data; empty for none.
	StartEmpty string `json:"startEmpty,omitempty"`
	// Generation of the spec: what was said of an earlier one is about another wish.
	Generation int64                     `json:"generation,omitempty"`
	Spec       v1alpha1.ValkeyNodeSpec   `json:"spec"`
	Status     v1alpha1.ValkeyNodeStatus `json:"status"`
}

// LivePod is the one pod of a set that is neither finished nor terminating,
// and whether there is exactly one.
func LivePod(pods []Pod) (Pod, bool) {
	var live []Pod
	for _, pod := range pods {
		if !pod.Finished() && !pod.Terminating {
			live = append(live, pod)
		}
	}
	if len(live) != 1 {
		return Pod{}, false
	}
	return live[0], true
}

// Alone says whether the member's live pod is its only pod that may still run
// a server: no other one is terminating.
func (m Member) Alone() bool {
	running := 0
	for _, pod := range m.Pods {
		if !pod.Finished() {
			running++
		}
	}
	return running == 1
}

// ID is the member's id in the Valkey cluster: its server's word, else its
// agent's. A member that never ran has none. Without its agent nothing is known:
// at an address that was seen a moment ago another member may answer by now.
func (m Member) ID() (valkey.NodeID, bool) {
	if m.Server.Known && m.Agent.Known {
		if id, known := m.Server.Value.MyID(); known {
			return id, true
		}
	}
	if m.Agent.Known && m.Agent.Value.NodeID != "" {
		return valkey.NodeID(m.Agent.Value.NodeID), true
	}
	return "", false
}

// Table is the member's node table with its own entry, if its server answers.
func (m Member) Table() (valkey.NodeTable, valkey.NodeEntry, bool) {
	if !m.Server.Known || !m.Server.Value.TableKnown {
		return valkey.NodeTable{}, valkey.NodeEntry{}, false
	}
	myself, known := m.Server.Value.Table.Myself()
	return m.Server.Value.Table, myself, known
}

// Digest is a short name for a value's content: equal for equal JSON.
func Digest(value any) string {
	first, err := json.Marshal(value)
	if err != nil {
		return "unmarshalable: " + err.Error()
	}
	var plain any
	if err := json.Unmarshal(first, &plain); err != nil {
		return "unreadable: " + err.Error()
	}
	canonical, err := json.Marshal(plain) // maps have sorted keys
	if err != nil {
		return "unmarshalable: " + err.Error()
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:16])
}
