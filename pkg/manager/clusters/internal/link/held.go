package link

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// heldClient holds each answer until it has been decoded: client-go closes its body before that.
// Who uses the object for longer calls Hold.
type heldClient struct {
	client.Client
	link *Link
}

// errNames: names and UIDs are kept in many places, and are taken to be as short as API servers
// make them.
var errNames = errors.New("the answer is about another object, or has names that no API server stores")

// about holds the answer to a request about an object of some name.
func (l *Link) about(ctx context.Context, name client.ObjectKey, object client.Object, request func(context.Context) error) error {
	ctx, release := l.Hold(ctx)
	defer release()
	err := OfAPIServer(request(ctx))
	if err == nil && (client.ObjectKeyFromObject(object) != name || !objectnames.Valid(object)) {
		return errNames
	}
	return err
}

func (c heldClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.link.about(ctx, key, into, func(ctx context.Context) error { return c.Client.Get(ctx, key, into, options...) })
}

// Status implements client.Client.
func (c heldClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.Client.
func (c heldClient) SubResource(name string) client.SubResourceClient {
	return heldSubResource{c.Client.SubResource(name), c.link}
}

type heldSubResource struct {
	client.SubResourceClient
	link *Link
}

func (c heldSubResource) Create(
	ctx context.Context, of, object client.Object, options ...client.SubResourceCreateOption,
) error {
	ctx, release := c.link.Hold(ctx)
	defer release()
	return OfAPIServer(c.SubResourceClient.Create(ctx, of, object, options...))
}

func (c heldSubResource) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return c.link.about(ctx, client.ObjectKeyFromObject(object), object, func(ctx context.Context) error {
		return c.SubResourceClient.Patch(ctx, object, patch, options...)
	})
}

func (c heldClient) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	ctx, release := c.link.Hold(ctx)
	defer release()
	return OfAPIServer(c.Client.List(ctx, into, options...))
}

func (c heldClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return c.link.about(ctx, client.ObjectKeyFromObject(object), object, func(ctx context.Context) error { return c.Client.Create(ctx, object, options...) })
}

func (c heldClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	ctx, release := c.link.Hold(ctx)
	defer release()
	return OfAPIServer(c.Client.Delete(ctx, object, options...))
}

func (c heldClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return c.link.about(ctx, client.ObjectKeyFromObject(object), object, func(ctx context.Context) error { return c.Client.Update(ctx, object, options...) })
}

func (c heldClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.link.about(ctx, client.ObjectKeyFromObject(object), object, func(ctx context.Context) error { return c.Client.Patch(ctx, object, patch, options...) })
}
