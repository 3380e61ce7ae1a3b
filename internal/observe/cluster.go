package observe

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// ClusterObserver reads all that decisions about a ValkeyCluster need.
type ClusterObserver struct {
	// Reader is cached; Direct is not, and is used for Secrets, quotas and limits.
	Reader, Direct client.Reader
	// ReadClasses says that StorageClasses may be read. Without the right to
	// list them the cache would wait for ever.
	ReadClasses bool
	Dial        valkey.Dialer
	// Ask asks the agent at an address for its facts.
	Ask func(ctx context.Context, address string) (protocol.Facts, error)
	Now func() time.Time
}

// Credentials are what a snapshot must not hold: the operator's password at
// the cluster's servers. Empty when there is none yet.
type Credentials struct{ Operator string }

// Snapshot reads both worlds once. An error means that the API server could
// not be read, and nothing may be decided; a silent server is no error but an
// unknown fact.
func (o ClusterObserver) Snapshot(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (state.Cluster, Credentials, error) {
	snapshot := state.Cluster{
		Now: o.Now().UTC(), Namespace: cluster.Namespace, Name: cluster.Name, UID: string(cluster.UID),
		Version: cluster.ResourceVersion, Generation: cluster.Generation, CreatedAt: cluster.CreationTimestamp.Time, Deleting: cluster.DeletionTimestamp != nil,
		Status: *cluster.Status.DeepCopy(), FreshID: strings.ToLower(rand.Text()),
		LossAllowed: cluster.Annotations[name.AnnotationAllowDataLoss],
		Objects:     map[string]state.Object{},
	}
	if snapshot.Deleting {
		return snapshot, Credentials{}, nil
	}
	credentials, err := o.passwords(ctx, cluster, &snapshot)
	if err != nil {
		return snapshot, credentials, err
	}
	for _, read := range []func(context.Context, *v1alpha1.ValkeyCluster, *state.Cluster) error{
		o.users, o.objects, o.members,
	} {
		if err := read(ctx, cluster, &snapshot); err != nil {
			return snapshot, credentials, err
		}
	}
	o.classes(ctx, &snapshot)
	o.allowances(ctx, cluster, &snapshot)
	o.servers(ctx, &snapshot, credentials)
	return snapshot, credentials, nil
}

func (o ClusterObserver) passwords(ctx context.Context, cluster *v1alpha1.ValkeyCluster, snapshot *state.Cluster) (Credentials, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: name.PasswordsSecret(cluster.Name)}
	if err := o.Direct.Get(ctx, key, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return Credentials{}, nil
		}
		return Credentials{}, fmt.Errorf("reading the system users' passwords: %w", err)
	}
	snapshot.Objects[objectKey("Secret", secret.Name)] = objectOf(&secret, cluster)
	snapshot.Passwords = map[string]string{}
	for user, password := range secret.Data {
		if len(password) > 0 { // an empty one would let anybody in
			snapshot.Passwords[user] = digest(password)
		}
	}
	return Credentials{Operator: string(secret.Data[name.UserOperator])}, nil
}

// users reads the passwords of the spec's users; what is missing is a fact.
func (o ClusterObserver) users(ctx context.Context, cluster *v1alpha1.ValkeyCluster, snapshot *state.Cluster) error {
	for _, user := range cluster.Spec.Users {
		seen := state.UserPasswords{Name: user.Name}
		if user.PasswordSecret != nil {
			if err := o.userPasswords(ctx, cluster, user, &seen); err != nil {
				return err
			}
		}
		snapshot.Users = append(snapshot.Users, seen)
	}
	return nil
}

func (o ClusterObserver) userPasswords(ctx context.Context, cluster *v1alpha1.ValkeyCluster, user v1alpha1.User, seen *state.UserPasswords) error {
	var secret corev1.Secret
	err := o.Direct.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: user.PasswordSecret.Name}, &secret)
	if apierrors.IsNotFound(err) {
		seen.Missing = "Secret " + user.PasswordSecret.Name
		seen.Digests, err = o.knownDigests(ctx, cluster, user.Name)
		return err
	}
	if err != nil {
		return fmt.Errorf("reading the passwords of user %s: %w", user.Name, err)
	}
	keys := user.PasswordSecret.Keys
	if len(keys) == 0 {
		keys = []string{user.Name}
	}
	for _, key := range keys {
		password, found := secret.Data[key]
		if !found || len(password) == 0 {
			seen.Missing = fmt.Sprintf("key %s of Secret %s", key, user.PasswordSecret.Name)
			continue
		}
		seen.Digests = append(seen.Digests, digest(password))
	}
	return nil
}

// knownDigests are the passwords of a user that the servers know. A Secret that
// is gone, be it for the moment in which another tool makes it anew, revokes
// nothing: taking its key out, or disabling the user, does.
func (o ClusterObserver) knownDigests(ctx context.Context, cluster *v1alpha1.ValkeyCluster, user string) ([]string, error) {
	var acl corev1.Secret
	err := o.Direct.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name.ACLSecret(cluster.Name)}, &acl)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var digests []string
	for line := range strings.Lines(string(acl.Data[name.KeyACL])) {
		words := strings.Fields(line)
		if len(words) < 2 || words[1] != user {
			continue
		}
		for _, word := range words[2:] {
			if known, is := strings.CutPrefix(word, "#"); is {
				digests = append(digests, known)
			}
		}
	}
	return digests, nil
}

// digest is a password as it stands in an ACL file.
func digest(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

func objectKey(kind, objectName string) string { return kind + "/" + objectName }

// objects reads the cluster's own objects as far as we own them.
func (o ClusterObserver) objects(ctx context.Context, cluster *v1alpha1.ValkeyCluster, snapshot *state.Cluster) error {
	service, headless, config := &corev1.Service{}, &corev1.Service{}, &corev1.ConfigMap{}
	acl, budget := &corev1.Secret{}, &policyv1.PodDisruptionBudget{}
	for _, read := range []struct {
		from    client.Reader
		kind    string
		name    string
		into    client.Object
		extract func() (any, error)
	}{
		{o.Reader, "Service", name.Service(cluster.Name), service, func() (any, error) { return corev1ac.ExtractService(service, name.FieldManager) }},
		{o.Reader, "Service", name.HeadlessService(cluster.Name), headless, func() (any, error) { return corev1ac.ExtractService(headless, name.FieldManager) }},
		{o.Reader, "ConfigMap", name.Service(cluster.Name), config, func() (any, error) { return corev1ac.ExtractConfigMap(config, name.FieldManager) }},
		{o.Direct, "Secret", name.ACLSecret(cluster.Name), acl, func() (any, error) { return corev1ac.ExtractSecret(acl, name.FieldManager) }},
		{o.Reader, "PodDisruptionBudget", name.Service(cluster.Name), budget, func() (any, error) {
			return policyv1ac.ExtractPodDisruptionBudget(budget, name.FieldManager)
		}},
	} {
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: read.name}
		err := read.from.Get(ctx, key, read.into)
		if apierrors.IsNotFound(err) && read.from != o.Direct {
			// The cache may hold only what bears our label: look for somebody else's.
			err = o.Direct.Get(ctx, key, read.into)
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", read.kind, read.name, err)
		}
		owned, err := read.extract()
		if err != nil {
			return fmt.Errorf("reading the owned fields of %s %s: %w", read.kind, read.name, err)
		}
		if read.into == client.Object(config) {
			snapshot.ConfigFiles = configFiles(config)
		}
		seen := objectOf(read.into, cluster)
		seen.Digest = state.Digest(owned)
		snapshot.Objects[objectKey(read.kind, read.name)] = seen
	}
	return nil
}

// configFiles are the files of settings in a ConfigMap.
func configFiles(config *corev1.ConfigMap) map[string]string {
	files := map[string]string{}
	for file, content := range config.Data {
		if _, is := name.ConfigRevision(file); is {
			files[file] = content
		}
	}
	return files
}

func objectOf(object metav1.Object, cluster *v1alpha1.ValkeyCluster) state.Object {
	return state.Object{
		UID: string(object.GetUID()), Orphaned: metav1.GetControllerOf(object) == nil,
		Foreign: foreign(object, cluster), Earlier: earlier(object, cluster),
	}
}

// foreign says whether an object belongs to somebody else: it has another
// controller, or none and another cluster's label, or no label of ours at all.
func foreign(object metav1.Object, cluster *v1alpha1.ValkeyCluster) bool {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller.UID != cluster.UID
	}
	return object.GetLabels()[name.LabelCluster] != cluster.Name
}

// earlier says whether an object belongs to a cluster that had this one's name
// before.
func earlier(object metav1.Object, cluster *v1alpha1.ValkeyCluster) bool {
	return goesWithEarlier(object, "ValkeyCluster", cluster)
}

// goesWithEarlier says whether an object's controller is one of a kind that had
// another one's name before: it is collected with it.
func goesWithEarlier(object metav1.Object, kind string, now metav1.Object) bool {
	controller := metav1.GetControllerOf(object)
	return controller != nil && controller.Kind == kind && controller.Name == now.GetName() && controller.UID != now.GetUID()
}

// members reads the ValkeyNodes, claims and pods of the cluster.
func (o ClusterObserver) members(ctx context.Context, cluster *v1alpha1.ValkeyCluster, snapshot *state.Cluster) error {
	ours := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{name.LabelCluster: cluster.Name}}
	var nodes v1alpha1.ValkeyNodeList
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&nodes, &claims, &pods} {
		if err := o.Reader.List(ctx, list, ours...); err != nil {
			return fmt.Errorf("listing members: %w", err)
		}
	}
	byName := map[string]*state.Member{}
	for shard := range int(cluster.Spec.Shards) {
		for node := range int(cluster.Spec.Replicas) + 1 {
			member := &state.Member{Name: name.Node(cluster.Name, shard, node), Shard: shard, Node: node, Wanted: true}
			byName[member.Name] = member
		}
	}
	for i := range nodes.Items {
		addRecord(byName, &nodes.Items[i], cluster)
	}
	addClaims(byName, claims.Items, snapshot)
	for i := range pods.Items {
		labels := pods.Items[i].Labels
		key := cluster.Name + "-" + labels[name.LabelShardIndex] + "-" + labels[name.LabelNodeIndex]
		if member := byName[key]; member != nil {
			member.Pods = append(member.Pods, state.PodOf(&pods.Items[i]))
		}
	}
	snapshot.Members = inOrder(byName)
	slices.SortFunc(snapshot.Claims, func(a, b state.Claim) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func addRecord(byName map[string]*state.Member, node *v1alpha1.ValkeyNode, cluster *v1alpha1.ValkeyCluster) {
	member := byName[node.Name]
	if member == nil {
		member = &state.Member{Name: node.Name, Shard: int(node.Spec.Shard), Node: int(node.Spec.Node)}
		byName[node.Name] = member
	}
	// One that cannot be read is none: the node's own word of the stop is there as well.
	stoppedAt, _ := time.Parse(time.RFC3339, node.Annotations[name.AnnotationStoppedAt])
	member.Record = &state.NodeRecord{
		StoppedAt: stoppedAt,
		UID:       string(node.UID), Version: node.ResourceVersion, StoppedInVain: node.Annotations[name.AnnotationStoppedInVain],
		StartEmpty: node.Annotations[name.AnnotationStartEmpty],
		Foreign:    foreign(node, cluster), Earlier: earlier(node, cluster), Orphaned: metav1.GetControllerOf(node) == nil, Deleting: node.DeletionTimestamp != nil,
		Generation: node.Generation, Spec: node.Spec, Status: node.Status,
	}
}

func addClaims(byName map[string]*state.Member, claims []corev1.PersistentVolumeClaim, snapshot *state.Cluster) {
	byClaim := map[string]*state.Member{}
	for _, member := range byName {
		byClaim[name.Claim(member.Name)] = member
	}
	for i := range claims {
		claim := state.ClaimOf(&claims[i])
		snapshot.Claims = append(snapshot.Claims, claim)
		if member := byClaim[claim.Name]; member != nil {
			member.Claim = &claim
		}
	}
}

func inOrder(byName map[string]*state.Member) []state.Member {
	members := make([]state.Member, 0, len(byName))
	for _, member := range byName {
		slices.SortFunc(member.Pods, func(a, b state.Pod) int { return strings.Compare(a.Name, b.Name) })
		members = append(members, *member)
	}
	slices.SortFunc(members, func(a, b state.Member) int {
		if a.Shard != b.Shard {
			return a.Shard - b.Shard
		}
		return a.Node - b.Node
	})
	return members
}
