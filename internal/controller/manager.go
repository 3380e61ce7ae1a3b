package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// ManagerOptions are what the controllers need of the manager that runs them:
// the kinds they know and what is kept in memory of them. A namespace confines
// both to it; empty means all. The rest is the caller's.
func ManagerOptions(namespace string) (ctrl.Options, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return ctrl.Options{}, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return ctrl.Options{Scheme: scheme, Cache: cacheOptions(namespace)}, nil
}

// cacheOptions keep in memory what is ours of the kinds that clusters are full
// of, and nothing that is not looked at.
func cacheOptions(namespace string) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{name.LabelManagedBy: name.ManagedBy})
	options := cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Label: ours, Transform: cache.TransformStripManagedFields()},
			&corev1.ConfigMap{}: {Label: ours},
		},
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	return options
}
