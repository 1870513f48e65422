package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// registrar applies a registration to both clusters.
type registrar struct {
	*cli
	request registration.Request
	hub     client.Client
	worker  *workerAdmin
}

// apply applies the worker's objects, then the hub's. It can be repeated.
func (r *registrar) apply(ctx context.Context, endpoint registration.Endpoint) error {
	if err := r.putWorker(ctx); err != nil {
		return err
	}
	if err := r.removeRoles(ctx, r.worker, r.request.HubUID, r.request.HasRole); err != nil {
		return err
	}
	credentials, err := r.token(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := endpoint.Kubeconfig(r.request.Name, credentials.token)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{r.request.WorkerCluster(), r.request.Secret(kubeconfig)} {
		if err := r.put(ctx, r.hub, "hub", object); err != nil {
			return err
		}
	}
	return nil
}

// putWorker applies the worker's objects.
func (r *registrar) putWorker(ctx context.Context) error {
	for _, object := range r.request.Worker() {
		if err := r.put(ctx, r.worker, "worker", object); err != nil {
			return err
		}
	}
	return nil
}

// put applies an object, and reports what that changed.
func (c *cli) put(ctx context.Context, to client.Client, where string, object client.Object) error {
	manifest, err := registration.Manifest(object, access.Scheme)
	if err != nil {
		return err
	}
	what := nameOf(manifest)
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(manifest.GroupVersionKind())
	switch err := to.Get(ctx, client.ObjectKeyFromObject(object), before); {
	case apierrors.IsNotFound(err):
		before = nil
	case err != nil:
		return fmt.Errorf("%s: read %s: %w", where, what, access.Explain(err))
	default:
		if err := registration.KeepUnknown(manifest, before); err != nil {
			return fmt.Errorf("%s: managed fields of %s: %w", where, what, err)
		}
	}
	err = to.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.ForceOwnership, client.FieldOwner(registration.FieldManager))
	if err != nil {
		return fmt.Errorf("%s: apply %s: %w", where, what, access.Explain(err))
	}
	c.say("%s: %s %s", where, what, changeOf(before, manifest))
	return nil
}

// nameOf is an object's kind and name, and its namespace, unless that is Jobferry's own.
func nameOf(object *unstructured.Unstructured) string {
	name := object.GetName()
	if in := object.GetNamespace(); in != "" && in != v1alpha1.SystemNamespace {
		name = in + "/" + name
	}
	return object.GetKind() + " " + name
}

// changeOf describes what an apply changed, except managed fields and status.
func changeOf(before, after *unstructured.Unstructured) string {
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

// remove deletes an object in the worker, if it exists.
func (c *cli) remove(ctx context.Context, worker client.Client, object client.Object) error {
	manifest, err := registration.Manifest(object, access.Scheme)
	if err != nil {
		return err
	}
	what := nameOf(manifest)
	err = worker.Delete(ctx, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("worker: delete %s: %w", what, access.Explain(err))
	}
	c.say("worker: %s removed", what)
	return nil
}

// removeRoles deletes the Roles of a hub in a worker and their bindings, except those in the
// namespaces to keep.
func (c *cli) removeRoles(ctx context.Context, worker client.Client, hub types.UID, keep func(namespace string) bool) error {
	return c.removeOf(ctx, worker, hub, corev1.NamespaceAll, func(o client.Object) bool { return keep(o.GetNamespace()) },
		&rbacv1.RoleBindingList{}, &rbacv1.RoleList{})
}

// removeOf deletes what a hub has in a namespace of a worker, in the order of the lists, except
// what is to be kept. All is listed before something is deleted, and of that the names are held.
func (c *cli) removeOf(ctx context.Context, worker client.Client, hub types.UID, namespace string, keep func(client.Object) bool, lists ...client.ObjectList) error {
	var all []client.Object
	listed := 0
	for _, list := range lists {
		pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			page, _ := list.DeepCopyObject().(client.ObjectList)
			err := worker.List(ctx, page, client.InNamespace(namespace), client.MatchingLabels(registration.WorkerLabels(hub)),
				client.Limit(o.Limit), client.Continue(o.Continue))
			if err == nil && page.GetContinue() != "" && meta.LenList(page) == 0 {
				err = errEmptyPage
			}
			return page, err
		})
		pages.PageSize = 25 // a Role has some hundred values, see access.NewWorkerClient
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			switch listed++; {
			case listed > maxOfHub:
				return fmt.Errorf("it has more than %d objects with this hub's labels: delete those that aren't its own", maxOfHub)
			case ok && !hasPlainName(object):
				return errName
			case ok && !keep(object):
				kind, err := apiutil.GVKForObject(object, access.Scheme)
				named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
				named.SetGroupVersionKind(kind)
				all = append(all, named)
				return err
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("worker: list what this hub has there: %w", access.Explain(err))
		}
	}
	for _, object := range all {
		if err := c.remove(ctx, worker, object); err != nil {
			return err
		}
	}
	return nil
}

var errName = errors.New("its answer has a name that no registration makes: check what answers at its server")

// errEmptyPage ends a list that would have no end.
var errEmptyPage = errors.New("its answer is an empty page, after which there are more: check what answers at its server")

// hasPlainName reports whether an object of a worker can be named in a terminal.
func hasPlainName(object client.Object) bool {
	name := object.GetNamespace() + "/" + object.GetName()
	return len(name) <= maxName && objectnames.IsPlain(name)
}

// maxName is how long an API server lets a name be, with its namespace.
const maxName = validation.DNS1123LabelMaxLength + len("/") + validation.DNS1123SubdomainMaxLength

// maxOfHub bounds what a hub can have in a worker: two objects for each namespace, and a few.
const maxOfHub = 20_000

// credentials is a token, and when it expires; zero: never.
type credentials struct {
	token   string
	expires time.Time
}

// tokenTimeout bounds the wait for the worker's token controller, which takes milliseconds.
const tokenTimeout = 30 * time.Second

// token returns a token of the account: the one in use, if there is one.
func (r *registrar) token(ctx context.Context) (credentials, error) {
	key := types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: r.request.AccountName()}
	if r.request.Bound() {
		return r.boundToken(ctx, key)
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	var secret corev1.Secret
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := r.worker.Get(ctx, key, &secret)
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	if canceled(err) {
		return credentials{}, access.Advise(fmt.Errorf("worker: Secret %s has no token yet", key),
			"the worker's token controller may be off: use a token that expires, --token-duration 720h")
	}
	if err != nil {
		return credentials{}, fmt.Errorf("worker: read Secret %s: %w", key, access.Explain(err))
	}
	return credentials{token: string(secret.Data[corev1.ServiceAccountTokenKey])}, nil
}

// boundToken requests a token that expires, and ends with its account.
func (r *registrar) boundToken(ctx context.Context, key types.NamespacedName) (credentials, error) {
	var account corev1.ServiceAccount
	if err := r.worker.Get(ctx, key, &account); err != nil {
		return credentials{}, fmt.Errorf("worker: read ServiceAccount %s: %w", key, access.Explain(err))
	}
	if current, ok := boundtoken.Parse(r.request.Token); ok && current.AccountUID == account.UID && r.now().Before(current.Expires) {
		return credentials{r.request.Token, current.Expires}, nil // the manager renews it
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(r.request.TokenDuration.Seconds())),
	}}
	if err := r.worker.SubResource("token").Create(ctx, &account, request); err != nil {
		return credentials{}, fmt.Errorf("worker: token for ServiceAccount %s: %w", key, access.Explain(err))
	}
	return credentials{request.Status.Token, request.Status.ExpirationTimestamp.Time}, nil
}
