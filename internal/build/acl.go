package build

import (
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
	"valkey.io/valkey-operator/internal/valkey"
)

// SystemUsers are the users that every cluster has.
func SystemUsers() []string { return []string{name.UserOperator, name.UserReplication} }

// ACLSecret is the ACL file of the cluster: passwords stand in it as digests
// only. The system users' digests come by name, the others' in the spec's order.
func ACLSecret(c Cluster, system map[string]string, users []state.UserPasswords) *corev1ac.SecretApplyConfiguration {
	lines := []string{
		userLine(name.UserOperator, "on", []string{system[name.UserOperator]}, valkey.OperatorACL()),
		userLine(name.UserReplication, "on", []string{system[name.UserReplication]}, valkey.ReplicationACL()),
	}
	if !Names(c.Spec.Users, name.UserDefault) {
		lines = append(lines, "user default on nopass ~* &* +@all")
	}
	for i, user := range c.Spec.Users {
		var digests []string
		if i < len(users) {
			digests = users[i].Digests
		}
		lines = append(lines, specUserLine(user, digests))
	}
	return corev1ac.Secret(name.ACLSecret(c.Name), c.Namespace).
		WithLabels(name.ClusterLabels(c.Name)).
		WithOwnerReferences(c.owner()).
		WithData(map[string][]byte{name.KeyACL: []byte(strings.Join(lines, "\n") + "\n")})
}

// Names says whether a user of this name is in the list.
func Names(users []v1alpha1.User, user string) bool {
	for _, u := range users {
		if u.Name == user {
			return true
		}
	}
	return false
}

// specUserLine is one user of the spec. A user whose password could not be
// read is off: nobody must get in by a name that was to have a password.
func specUserLine(user v1alpha1.User, digests []string) string {
	enabled := user.Enabled == nil || *user.Enabled
	switch {
	case enabled && user.Nopass:
		return userLine(user.Name, "on nopass", nil, user.Permissions)
	case enabled && len(digests) > 0:
		return userLine(user.Name, "on", digests, user.Permissions)
	default:
		return userLine(user.Name, "off resetpass", nil, user.Permissions)
	}
}

func userLine(user, state string, digests []string, rules string) string {
	words := []string{"user", user, state}
	for _, digest := range digests {
		words = append(words, "#"+digest)
	}
	if rules = strings.TrimSpace(rules); rules != "" {
		words = append(words, rules)
	}
	return strings.Join(words, " ")
}
