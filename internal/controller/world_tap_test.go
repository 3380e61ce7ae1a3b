package controller_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// tap counts all that the operator writes, to the API server and to servers,
// and may be told of each right before and right after.
type tap struct {
	count int
	log   []string
	watch func(when, what string) // nil for nobody
}

func (k *tap) last(n int) []string { return k.log[max(0, len(k.log)-n):] }

func (k *tap) tell(when, what string) {
	if k.watch != nil {
		k.watch(when, what)
	}
}

func (k *tap) before(_, command string) error {
	k.tell("before", command)
	k.count++
	k.log = append(k.log, command)
	return nil
}

func (k *tap) after(_, command string) error {
	k.tell("after", command)
	return nil
}

func (k *tap) around(what string, write func() error) error {
	_ = k.before("", what)
	err := write()
	_ = k.after("", what)
	return err
}

// on is a client whose writes are counted.
func (k *tap) on(api client.WithWatch) client.Client {
	return interceptor.NewClient(api, interceptor.Funcs{
		Create: func(ctx context.Context, under client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return k.around(fmt.Sprintf("create %s %s", kindOf(object), object.GetName()), func() error { return under.Create(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, under client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if tries(options) {
				return under.Patch(ctx, object, patch, options...) // it writes nothing
			}
			return k.around(fmt.Sprintf("patch %s %s", kindOf(object), object.GetName()), func() error { return under.Patch(ctx, object, patch, options...) })
		},
		Apply: func(ctx context.Context, under client.WithWatch, config runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return k.around("apply "+kindOf(config), func() error { return under.Apply(ctx, config, options...) })
		},
		Delete: func(ctx context.Context, under client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return k.around(fmt.Sprintf("delete %s %s", kindOf(object), object.GetName()), func() error { return under.Delete(ctx, object, options...) })
		},
		SubResourcePatch: func(ctx context.Context, under client.Client, part string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return k.around(fmt.Sprintf("patch %s of %s %s", part, kindOf(object), object.GetName()), func() error {
				return under.SubResource(part).Patch(ctx, object, patch, options...)
			})
		},
	})
}
