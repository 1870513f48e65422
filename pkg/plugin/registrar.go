package plugin

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	var before client.Object
	switch err := to.Get(ctx, client.ObjectKeyFromObject(object), object); {
	case err == nil:
		before = object
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("%s: read %s: %w", where, what, access.Explain(err))
	}
	err = to.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.ForceOwnership, client.FieldOwner(registration.FieldManager))
	if err != nil {
		return fmt.Errorf("%s: apply %s: %w", where, what, access.Explain(err))
	}
	c.say("%s: %s %s", where, what, outcome(before, manifest))
	return nil
}

func outcome(before, after client.Object) string {
	switch {
	case before == nil:
		return "created"
	case before.GetResourceVersion() != after.GetResourceVersion():
		return "changed"
	default:
		return "unchanged"
	}
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
