package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/state"
)

func secret(secretName string, data map[string]string) *corev1.Secret {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: secretName}, Data: map[string][]byte{}}
	for key, value := range data {
		out.Data[key] = []byte(value)
	}
	return out
}

func digestOf(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

func TestUserPasswords(t *testing.T) {
	t.Parallel()
	acl := secret(name.ACLSecret("prod"), map[string]string{name.KeyACL: "user _operator on #1111 +ping\nuser app on #aaaa #bbbb ~*\n"})
	for what, row := range map[string]struct {
		objects []client.Object
		keys    []string
		want    state.UserPasswords
	}{
		"the key that is called like the user": {
			objects: []client.Object{secret("pw", map[string]string{"app": "s3cret"})},
			want:    state.UserPasswords{Name: "app", Digests: []string{digestOf("s3cret")}},
		},
		"two keys are two passwords": {
			objects: []client.Object{secret("pw", map[string]string{"old": "one", "new": "two"})}, keys: []string{"new", "old"},
			want: state.UserPasswords{Name: "app", Digests: []string{digestOf("two"), digestOf("one")}},
		},
		"a key that was taken out revokes its password": {
			objects: []client.Object{acl, secret("pw", map[string]string{"new": "two"})}, keys: []string{"old", "new"},
			want: state.UserPasswords{Name: "app", Digests: []string{digestOf("two")}, Missing: "key old of Secret pw"},
		},
		"an empty password is none": {
			objects: []client.Object{acl, secret("pw", map[string]string{"app": ""})},
			want:    state.UserPasswords{Name: "app", Missing: "key app of Secret pw"},
		},
		"a Secret that is gone revokes nothing": {
			objects: []client.Object{acl},
			want:    state.UserPasswords{Name: "app", Digests: []string{"aaaa", "bbbb"}, Missing: "Secret pw"},
		},
		"a Secret that never was leaves nothing": {
			want: state.UserPasswords{Name: "app", Missing: "Secret pw"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			observer := ClusterObserver{Direct: fake.NewClientBuilder().WithObjects(row.objects...).Build()}
			cluster := &v1alpha1.ValkeyCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"}}
			cluster.Spec.Users = []v1alpha1.User{{Name: "app", PasswordSecret: &v1alpha1.PasswordSecret{Name: "pw", Keys: row.keys}}}
			var seen state.Cluster
			if err := observer.users(t.Context(), cluster, &seen); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]state.UserPasswords{row.want}, seen.Users); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
