// Package v1alpha1 is the contract between valkey-operator and its users: the
// kinds ValkeyCluster and ValkeyNode, their validation rules, conditions and
// reasons. Every field that the schema accepts works; a field whose feature
// does not exist yet is not in the schema. It imports apimachinery and the
// core API types only.
//
// +kubebuilder:object:generate=true
// +groupName=valkey.io
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupVersion names this version of the API.
var GroupVersion = schema.GroupVersion{Group: "valkey.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ValkeyCluster{}, &ValkeyClusterList{},
		&ValkeyNode{}, &ValkeyNodeList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
