package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

// The manager requests the tokens with the credentials of the registration Secrets; what those need
// in a worker is in package workeraccess.
//
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=list;watch;patch

// defaultFraction of a lifetime passes before a token is renewed, and up to a third more.
const defaultFraction = 0.5

// requestTimeout bounds a request for a token.
const requestTimeout = 10 * time.Second

// Options of the renewal. What is zero gets its default, but for the required.
type Options struct {
	// Namespace is that of the registration Secrets. Required.
	Namespace string
	// Fraction of a token's lifetime that passes before it is renewed, and up to a third of that more.
	// Default a half.
	Fraction float64
	// Metrics is where the metrics are registered. Default controller-runtime's registry.
	Metrics prometheus.Registerer
	// Clock defaults to the real one.
	Clock clock.PassiveClock
}

// workers are the connections to the workers.
type workers interface {
	// of returns a worker's name and client; false: there is none with this registration Secret.
	of(secret string) (name string, c client.Client, ok bool)
	Report(worker string, c metav1.Condition)
}

// renewer renews the tokens of the registration Secrets, on the leader only.
type renewer struct {
	hub      client.Client
	workers  workers
	fraction float64
	clock    clock.PassiveClock
	expiry   *prometheus.GaugeVec
	// notBefore is when the worker of each Secret may be asked again, a time.Time by name. One whose
	// clock is wrong, or that lies about the times in its tokens, isn't asked all the time.
	notBefore sync.Map
	// asked has the names of the Secrets whose workers haven't answered yet. However many don't, the
	// others' tokens are renewed in time.
	asked sync.Map
	// answered has the Secrets whose workers have.
	answered chan event.GenericEvent
}

// Setup adds the renewal to a manager whose cache has the registration Secrets.
func Setup(mgr manager.Manager, registry *clusters.Registry, o Options) error {
	r := newRenewer(mgr.GetClient(), connections{registry}, o)
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	if err := o.Metrics.Register(r.expiry); err != nil {
		return err
	}
	mine := predicate.NewPredicateFuncs(func(object client.Object) bool { return clusters.Registers(object, o.Namespace) })
	return ctrl.NewControllerManagedBy(mgr).Named("tokens").
		For(&corev1.Secret{}).WithEventFilter(mine).
		WatchesRawSource(source.Channel(r.answered, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

func newRenewer(hub client.Client, w workers, o Options) *renewer {
	r := &renewer{hub: hub, workers: w, fraction: o.Fraction, clock: o.Clock, expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "jobferry_worker_token_expiration_timestamp_seconds",
		Help: "When the token of a worker expires that the manager renews, in seconds since the epoch.",
	}, []string{"worker"}), answered: make(chan event.GenericEvent)}
	if r.fraction == 0 {
		r.fraction = defaultFraction
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	return r
}

// Reconcile has the token of a registration Secret renewed when it's due.
func (r *renewer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var secret corev1.Secret
	if err := r.hub.Get(ctx, request.NamespacedName, &secret); err != nil {
		r.expiry.DeleteLabelValues(request.Name)
		r.notBefore.Delete(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	due := decide(&secret, r.fraction)
	if due == nil {
		r.expiry.DeleteLabelValues(request.Name)
		return ctrl.Result{}, nil
	}
	r.expiry.WithLabelValues(request.Name).Set(float64(due.token.Expires.Unix()))
	now := r.clock.Now()
	worker, c, ok := r.workers.of(secret.Name)
	switch {
	case !ok: // not registered yet, or not used by any worker
		return ctrl.Result{RequeueAfter: minRetry}, nil
	case now.Before(due.at):
		r.workers.Report(worker, renewed(due))
		return ctrl.Result{RequeueAfter: due.at.Sub(now)}, nil
	}
	if at, is := r.notBefore.Load(request.NamespacedName); is {
		if left := at.(time.Time).Sub(now); left > 0 { //nolint:forcetypeassert // see notBefore
			return ctrl.Result{RequeueAfter: left}, nil
		}
	}
	if _, is := r.asked.LoadOrStore(request.NamespacedName, true); !is {
		go func() {
			workerpanic.Contain(worker, func() { r.ask(ctx, &secret, due, worker, c) })
			r.asked.Delete(request.NamespacedName)
			select {
			case r.answered <- event.GenericEvent{Object: &secret}:
			case <-ctx.Done():
			}
		}()
	}
	return ctrl.Result{}, nil
}

// ask asks a worker to renew its token, and says when it may be asked again.
func (r *renewer) ask(ctx context.Context, secret *corev1.Secret, due *renewal, worker string, c client.Client) {
	again := func(after time.Duration) {
		r.notBefore.Store(client.ObjectKeyFromObject(secret), r.clock.Now().Add(after))
	}
	again(minRetry)
	switch err := r.renew(ctx, secret, due, c); {
	case err == nil:
		again(pauseAfter(r.fraction))
	case apierrors.IsConflict(err): // somebody has changed the Secret: perhaps its token
		again(time.Second)
	default:
		klog.FromContext(ctx).Error(err, "The token of a worker isn't renewed", "worker", worker, "expires", due.token.Expires)
		r.workers.Report(worker, failed(due, worker, err))
		again(retry(due.token, r.clock.Now()))
	}
}

// renew requests a token, and puts it into the Secret.
func (r *renewer) renew(ctx context.Context, secret *corev1.Secret, due *renewal, worker client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(due.lifetime / time.Second)),
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: due.token.Account.Namespace, Name: due.token.Account.Name}}
	if err := worker.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("request a token for ServiceAccount %s: %w", due.token.Account, notOurs(err))
	}
	if err := refusal(due.token, request.Status.Token, r.clock.Now()); err != nil {
		return fmt.Errorf("request a token for ServiceAccount %s: %w", due.token.Account, err)
	}
	kubeconfig, err := boundtoken.Replace(secret.Data[v1alpha1.KubeconfigKey], request.Status.Token)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": secret.ResourceVersion},
		"data":     map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig},
	})
	if err != nil {
		return err
	}
	return r.hub.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// notOurs hides that an error is a conflict: one in the worker isn't one on the hub.
func notOurs(err error) error {
	if apierrors.IsConflict(err) {
		return errors.New(err.Error())
	}
	return err
}

func renewed(due *renewal) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionTokenRenewed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTokenValid,
		Message: fmt.Sprintf("the token expires at %s, and is renewed before", inUTC(due.token.Expires))}
}

func failed(due *renewal, worker string, err error) metav1.Condition {
	advice := "the manager tries again"
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
		advice = fmt.Sprintf("run kubectl jobferry register %s again, which grants the right to renew it, or kubectl jobferry rotate %s", worker, worker)
	}
	return metav1.Condition{Type: v1alpha1.ConditionTokenRenewed, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRenewalFailed,
		Message: fmt.Sprintf("the token expires at %s: %s: %v", inUTC(due.token.Expires), advice, err)}
}

// connections are the workers of a registry.
type connections struct{ *clusters.Registry }

func (c connections) of(secret string) (string, client.Client, bool) {
	for _, w := range c.List() {
		if w.View().Spec.KubeconfigSecret == secret {
			return w.Name(), w.Client(), true
		}
	}
	return "", nil, false
}
