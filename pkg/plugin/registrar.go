package plugin

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// registrar makes a registration in both clusters.
type registrar struct {
	*cli
	request registration.Request
	hub     client.Client
	worker  *workerAdmin
}

// apply makes the worker's side, then the hub's. What fails can be run again.
func (r *registrar) apply(ctx context.Context, endpoint registration.Endpoint) error {
	for _, object := range r.request.Worker() {
		if err := r.put(ctx, r.worker, "worker", object); err != nil {
			return err
		}
	}
	for _, object := range r.request.Superfluous() {
		if err := r.remove(ctx, r.worker, "worker", object); err != nil {
			return err
		}
	}
	credentials, err := r.token(ctx)
	if err != nil {
		return err
	}
	if !credentials.expires.IsZero() {
		r.say("The token expires at %s: run kubectl jobferry rotate %s before.", credentials.expires.UTC().Format(time.RFC3339), r.request.Name)
	}
	kubeconfig, err := endpoint.Kubeconfig(r.request.Name, credentials.token)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{r.request.WorkerCluster(), r.request.Secret(kubeconfig, credentials.expires)} {
		if err := r.put(ctx, r.hub, "hub", object); err != nil {
			return err
		}
	}
	return nil
}

// put applies an object, and tells what came of it.
func (c *cli) put(ctx context.Context, to client.Client, where string, object client.Object) error {
	manifest, err := registration.Manifest(object, access.Scheme)
	if err != nil {
		return err
	}
	what := manifest.GetKind() + " " + object.GetName()
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(manifest.GroupVersionKind())
	switch err := to.Get(ctx, client.ObjectKeyFromObject(object), before); {
	case apierrors.IsNotFound(err):
		before = nil
	case err != nil:
		return fmt.Errorf("%s: read %s: %w", where, what, access.Explain(err))
	}
	err = to.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.ForceOwnership, client.FieldOwner(registration.FieldManager))
	if err != nil {
		return fmt.Errorf("%s: apply %s: %w", where, what, access.Explain(err))
	}
	c.say("%s: %s %s", where, what, outcome(before, manifest))
	return nil
}

// outcome is what an apply came to. Whose the fields are doesn't count.
func outcome(before, after *unstructured.Unstructured) string {
	if before == nil {
		return "created"
	}
	for _, object := range []*unstructured.Unstructured{before, after} {
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		unstructured.RemoveNestedField(object.Object, "status")
	}
	if equality.Semantic.DeepEqual(before.Object, after.Object) {
		return "unchanged"
	}
	return "changed"
}

// remove deletes an object, if it's there.
func (c *cli) remove(ctx context.Context, from client.Client, where string, object client.Object) error {
	manifest, err := registration.Manifest(object, access.Scheme)
	if err != nil {
		return err
	}
	what := manifest.GetKind() + " " + object.GetName()
	err = from.Delete(ctx, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: delete %s: %w", where, what, access.Explain(err))
	}
	c.say("%s: %s removed", where, what)
	return nil
}
