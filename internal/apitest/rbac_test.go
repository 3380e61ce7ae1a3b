//go:build apiserver

package apitest

import (
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/controller"
)

// Where the operator is installed, and as whom it runs.
const (
	systemNamespace = "valkey-operator-system"
	serviceAccount  = "valkey-operator"
)

// as is a client that the API server takes for a service account.
func as(namespace, account string) *rest.Config {
	config := rest.CopyConfig(server)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return config
}

// shippedRules are the rules of the operator's ClusterRole.
func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := readManifests(shipped("rbac", "role.yaml"))
	if err != nil || len(objects) != 1 {
		t.Fatalf("config/rbac/role.yaml has %d objects: %v", len(objects), err)
	}
	var role rbacv1.ClusterRole
	if err := scheme.Convert(objects[0], &role, nil); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// wantNothingForbidden has an operator form and grow a cluster, and asserts
// that it never asked for what it may not do.
func (w *world) wantNothingForbidden(o *operator, kind v1alpha1.WorkloadType) {
	w.t.Helper()
	spec := persistent()
	spec.WorkloadType = kind
	cluster := w.settledCluster(spec)
	w.growTo2Gi(cluster)
	w.awaitSettled(cluster)
	if sizes := w.capacities(); sizes != "2Gi of 2Gi, 2Gi of 2Gi, 2Gi of 2Gi" {
		w.t.Errorf("the volumes have %s", sizes)
	}
	await(w.t, "the growth is told", func() error { return w.oneEvent(cluster.Name, v1alpha1.ReasonVolumeExpanded) })
	if forbidden := o.requests.forbidden(); len(forbidden) > 0 {
		w.t.Errorf("forbidden: %v", forbidden)
	}
	if o.requests.count("") == 0 {
		w.t.Error("no request was recorded")
	}
}

// One of several managers, in a namespace of its own, as it is installed. It
// looks after all namespaces here, so this test must be alone: it
// does not call t.Parallel, and those that do wait for it.
func TestPermissionsAsShipped(t *testing.T) { //nolint:paralleltest // it would look after the clusters of other tests
	w := newWorld(t)
	for _, file := range []string{
		shipped("manager", "namespace.yaml"), shipped("rbac", "role.yaml"), shipped("rbac", "service_account.yaml"),
		shipped("rbac", "role_binding.yaml"), shipped("rbac", "leader_election.yaml"), shipped("rbac", "user_roles.yaml"),
	} {
		objects, err := readManifests(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if err := install(t.Context(), object); err != nil {
				t.Fatalf("installing %s: %v", file, err)
			}
		}
	}
	operator := as(systemNamespace, serviceAccount)
	w.awaitRight(operator, "", "valkeyclusters")
	settings, err := controller.ManagerOptions("")
	if err != nil {
		t.Fatal(err)
	}
	settings.LeaderElection = true
	settings.LeaderElectionID = "valkey-operator.valkey.io"
	settings.LeaderElectionNamespace = systemNamespace
	settings.LeaderElectionReleaseOnCancel = true
	o := w.operateWith(operator, settings)
	w.wantNothingForbidden(o, v1alpha1.WorkloadStatefulSet)
	o.stop()
	if o.requests.count("/leases/") == 0 {
		t.Error("the manager asked for no lease")
	}
}

// An operator of one namespace needs no right outside it. StorageClasses have
// no namespace: without the right to read them their class is unknown, and the
// API server's own checks decide.
func TestPermissionsOfOneNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allow(shippedRules(t))
	operator := as(w.namespace, serviceAccount)
	w.awaitRight(operator, w.namespace, "valkeyclusters")
	o := w.operate(operator)
	w.wantNothingForbidden(o, v1alpha1.WorkloadDeployment)
	if o.nodes.Observer.ReadClasses || o.requests.count("storageclasses") > 0 {
		t.Error("StorageClasses were read without the right to")
	}
}

// allow lets the service account of the namespace do what rules say, there.
func (w *world) allow(rules []rbacv1.PolicyRule) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: serviceAccount}
	if err := admin.Create(w.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}); err != nil {
		w.t.Fatal(err)
	}
	if err := admin.Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: serviceAccount},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: serviceAccount}},
	}); err != nil {
		w.t.Fatal(err)
	}
}

// awaitRight waits until the API server knows the bindings of somebody.
func (w *world) awaitRight(somebody *rest.Config, namespace, resource string) {
	w.t.Helper()
	await(w.t, "the role is in force", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: somebody.Impersonate.UserName, Groups: somebody.Impersonate.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: "watch", Group: v1alpha1.GroupVersion.Group, Resource: resource,
			},
		}}
		if err := admin.Create(w.t.Context(), review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return fmt.Errorf("not allowed: %s", review.Status.Reason)
		}
		return nil
	})
}
