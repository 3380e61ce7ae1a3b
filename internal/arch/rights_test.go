package arch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Rights that would let the operator, or whoever takes it over, reach beyond
// its own work. Each row is never granted in full: one verb of it is too much.
var neverGranted = map[string]struct {
	resources, verbs []string // no verbs: none at all
}{
	"run programs in pods":             {resources: []string{"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers"}},
	"go through a worker":              {resources: []string{"nodes/proxy", "pods/proxy", "services/proxy"}},
	"read every Secret":                {resources: []string{"secrets"}, verbs: []string{"list", "watch", "deletecollection"}},
	"delete data":                      {resources: []string{"persistentvolumeclaims", "persistentvolumes"}, verbs: []string{"delete", "deletecollection"}},
	"raise its own rights":             {resources: []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings", "serviceaccounts", "serviceaccounts/token"}},
	"change admission or the API":      {resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "customresourcedefinitions"}},
	"everything of some resource":      {resources: []string{"*"}},
	"change what a user asked for":     {resources: []string{"valkeyclusters"}, verbs: []string{"create", "update", "patch", "delete"}},
	"change the classes of volumes":    {resources: []string{"storageclasses"}, verbs: []string{"create", "update", "patch", "delete"}},
	"take workers down or drain them":  {resources: []string{"nodes", "pods/eviction"}, verbs: []string{"create", "update", "patch", "delete"}},
	"delete members, in this version":  {resources: []string{"valkeynodes"}, verbs: []string{"delete", "deletecollection"}},
	"act as somebody else":             {resources: []string{"users", "groups", "serviceaccounts"}, verbs: []string{"impersonate"}},
	"delete namespaces with all there": {resources: []string{"namespaces"}, verbs: []string{"create", "update", "patch", "delete"}},
}

func TestRightsAreNoMoreThanNeeded(t *testing.T) {
	t.Parallel()
	role := managerRole(t)
	for what, never := range neverGranted {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for _, granted := range role.Rules {
				for _, resource := range granted.Resources {
					if slices.Contains(never.resources, resource) && tooMuch(granted.Verbs, never.verbs) {
						t.Errorf("config/rbac/role.yaml grants %v on %s", granted.Verbs, resource)
					}
				}
			}
		})
	}
}

func tooMuch(granted, never []string) bool {
	if len(never) == 0 {
		return true
	}
	return slices.ContainsFunc(granted, func(verb string) bool { return verb == "*" || slices.Contains(never, verb) })
}

func managerRole(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(content, &role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) == 0 {
		t.Fatal("config/rbac/role.yaml grants nothing: run make generate")
	}
	return role
}
