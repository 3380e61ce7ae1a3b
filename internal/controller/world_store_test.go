package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// store is an API server in memory, enough of one for these stories, in which
// nobody else writes. The library's fake one cannot be forked, is slower by far,
// and makes of an apply of half a ValkeyNode one of the whole, with zero values
// in the other half. Objects in it are never changed, only replaced.
type store struct {
	client.WithWatch // nil: what is not below is not used

	objects map[storeKey]client.Object
	version int
}

type storeKey struct{ kind, name string }

func newStore() *store { return &store{objects: map[storeKey]client.Object{}} }

// fork is a second store with the same objects.
func (s *store) fork() *store {
	return &store{objects: maps.Clone(s.objects), version: s.version}
}

func kindOf(object any) string { return reflect.TypeOf(object).Elem().Name() }

func (s *store) put(object client.Object) {
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprint("uid-", s.version)))
	}
	kept, _ := object.DeepCopyObject().(client.Object)
	s.objects[storeKey{kindOf(object), object.GetName()}] = kept
}

func (s *store) find(kind, name string) (client.Object, error) {
	found := s.objects[storeKey{kind, name}]
	if found == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
	}
	return found, nil
}

func fill(into, from client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, err := s.find(kindOf(into), key.Name)
	if err == nil {
		fill(into, found)
	}
	return err
}

func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	wanted := client.ListOptions{}
	wanted.ApplyOptions(options)
	kind := strings.TrimSuffix(kindOf(into), "List")
	var found []runtime.Object
	for _, key := range slices.SortedFunc(maps.Keys(s.objects), func(a, b storeKey) int { return strings.Compare(a.name, b.name) }) {
		if key.kind != kind {
			continue
		}
		if wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labelsOf(s.objects[key].GetLabels())) {
			found = append(found, s.objects[key].DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}

type labelsOf map[string]string

func (l labelsOf) Has(label string) bool                        { _, has := l[label]; return has }
func (l labelsOf) Get(label string) string                      { return l[label] }
func (l labelsOf) Lookup(label string) (value string, has bool) { value, has = l[label]; return }

func (s *store) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if _, err := s.find(kindOf(object), object.GetName()); err == nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: kindOf(object)}, object.GetName())
	}
	if secret, is := object.(*corev1.Secret); is {
		dataOf(secret)
	}
	s.put(object)
	return nil
}

// dataOf does what the API server does with a Secret's string data.
func dataOf(secret *corev1.Secret) {
	secret.Data = map[string][]byte{}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func (s *store) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	found, err := s.find(kindOf(object), object.GetName())
	if err != nil {
		return err
	}
	if found.GetResourceVersion() != object.GetResourceVersion() {
		return conflict(object)
	}
	s.put(object)
	return nil
}

func conflict(object client.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(object)}, object.GetName(), fmt.Errorf("it has changed"))
}

// Delete knows the precondition of a UID.
func (s *store) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	asked := client.DeleteOptions{}
	asked.ApplyOptions(options)
	found, err := s.find(kindOf(object), object.GetName())
	if err != nil {
		return err
	}
	if asked.Preconditions != nil && *asked.Preconditions.UID != found.GetUID() {
		return conflict(object)
	}
	delete(s.objects, storeKey{kindOf(object), object.GetName()})
	return nil
}

// Patch knows merge patches. A resource version or UID in one is a precondition.
// A trial changes nothing.
func (s *store) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if patch.Type() != types.MergePatchType {
		return fmt.Errorf("the store knows no patch of type %s", patch.Type())
	}
	found, err := s.find(kindOf(object), object.GetName())
	if err != nil {
		return err
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return err
	}
	if metadata, has := change["metadata"].(map[string]any); has {
		if version, asked := metadata["resourceVersion"]; asked && version != found.GetResourceVersion() {
			return conflict(object)
		}
		if uid, asked := metadata["uid"]; asked && uid != string(found.GetUID()) {
			return conflict(object)
		}
	}
	changed, err := merged(found, change)
	if err == nil && !tries(options) {
		s.put(changed)
		fill(object, changed)
	}
	return err
}

// tries says whether a patch is one by way of trial.
func tries(options []client.PatchOption) bool {
	asked := client.PatchOptions{}
	asked.ApplyOptions(options)
	return len(asked.DryRun) > 0
}

// merged is an object with a change merged into its JSON form.
func merged(object client.Object, change map[string]any) (client.Object, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	out, _ := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(object).Elem()))
	text, err := json.Marshal(merge(body, change))
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	return out, err
}

func merge(into, change map[string]any) map[string]any {
	for key, value := range change {
		below, isMap := value.(map[string]any)
		before, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			into[key] = merge(before, below)
		default:
			into[key] = value
		}
	}
	return into
}

// Apply merges a configuration: of these stories none takes a field out of one.
func (s *store) Apply(ctx context.Context, config runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	var change map[string]any
	var named metav1.PartialObjectMetadata
	for _, into := range []any{&change, &named} {
		if err := json.Unmarshal(text, into); err != nil {
			return err
		}
	}
	object, err := s.find(named.Kind, named.Name)
	if err != nil {
		blank, err := kinds.New(named.GroupVersionKind())
		if err != nil {
			return err
		}
		object, _ = blank.(client.Object)
	}
	if asked := named.ResourceVersion; asked != "" && asked != object.GetResourceVersion() {
		return conflict(object)
	}
	delete(change, "status")
	if config, is := object.(*corev1.ConfigMap); is {
		config = config.DeepCopy()
		config.Data = nil // what is not applied any more goes
		object = config
	}
	applied, err := merged(object, change)
	if err != nil {
		return err
	}
	applied.SetManagedFields(managedFields(ctx, config, named))
	s.put(applied)
	return nil
}

// keysOf are the keys of a ConfigMap's data, which each are a field to own.
func keysOf(config runtime.ApplyConfiguration) string {
	if config, is := config.(*corev1ac.ConfigMapApplyConfiguration); is {
		return fmt.Sprint(slices.Sorted(maps.Keys(config.Data)))
	}
	return ""
}

// fieldsOf remembers by kind, name and keys which fields a configuration owns, as the
// library's API server tells: the same ones in every world.
var (
	fieldsMutex sync.Mutex
	fieldsOf    = map[storeKey][]metav1.ManagedFieldsEntry{}
	fieldsFrom  = sync.OnceValue(func() client.Client {
		return fake.NewClientBuilder().WithScheme(kinds).WithReturnManagedFields().Build()
	})
)

func managedFields(ctx context.Context, config runtime.ApplyConfiguration, named metav1.PartialObjectMetadata) []metav1.ManagedFieldsEntry {
	if named.Kind == "ValkeyNode" || named.Kind == "StatefulSet" || named.Kind == "Deployment" {
		return nil // nobody asks
	}
	fieldsMutex.Lock()
	defer fieldsMutex.Unlock()
	key := storeKey{named.Kind, named.Name + keysOf(config)}
	if fields, known := fieldsOf[key]; known {
		return fields
	}
	blank, err := kinds.New(named.GroupVersionKind())
	object, _ := blank.(client.Object)
	if err == nil {
		err = fieldsFrom().Apply(ctx, config, client.ForceOwnership, client.FieldOwner("valkey-operator"))
	}
	if err == nil {
		err = fieldsFrom().Get(ctx, client.ObjectKeyFromObject(&named), object)
	}
	if err != nil {
		panic(err)
	}
	fieldsOf[key] = object.GetManagedFields()
	return fieldsOf[key]
}

func (s *store) Status() client.SubResourceWriter            { return statusOf{store: s} }
func (s *store) SubResource(string) client.SubResourceClient { return statusOf{store: s} }

// statusOf writes whole objects: nobody here writes a spec by way of a status.
type statusOf struct {
	client.SubResourceClient // nil, as above

	store *store
}

func (s statusOf) Update(ctx context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.store.Update(ctx, object)
}

func (s statusOf) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.store.Patch(ctx, object, patch)
}
