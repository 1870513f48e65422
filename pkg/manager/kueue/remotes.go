package kueue

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The Secrets of Kueue's namespace are read by a Role there, which the chart makes.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=multikueueclusters/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=get;create;update

// remotes registers MultiKueueClusters as workers, and keeps their condition Active.
type remotes struct {
	*session

	mu     sync.Mutex
	active map[string]writtenCondition
}

// writtenCondition is what was last written of a cluster.
type writtenCondition struct {
	metav1.Condition
	at time.Time
}

func newRemotes(s *session) *remotes {
	return &remotes{session: s, active: map[string]writtenCondition{}}
}

// Reconcile brings one MultiKueueCluster up to date, if a check of ours uses it.
func (r *remotes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &kueue.MultiKueueCluster{}
	if !r.get(ctx, request.Name, cluster) {
		r.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if !r.isUsed(ctx, request.Name) {
		return ctrl.Result{}, nil
	}
	facts, err := r.gather(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decideCluster(facts)
	if result, err := afterWrite(r.apply(ctx, facts, d)); err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	return ctrl.Result{RequeueAfter: d.again}, nil
}

func (r *remotes) gather(ctx context.Context, cluster *kueue.MultiKueueCluster) (*remote, error) {
	facts := &remote{now: time.Now(), cluster: cluster, kueueNamespace: r.options.Namespace, namespace: r.namespace}
	r.mu.Lock()
	written := r.active[cluster.Name]
	r.mu.Unlock()
	facts.written, facts.writtenAt = written.Condition, written.at
	var worker v1alpha1.WorkerCluster
	if err := r.hub.Get(ctx, types.NamespacedName{Name: cluster.Name}, &worker); err == nil {
		facts.worker = &worker
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	var err error
	key := types.NamespacedName{Namespace: r.namespace, Name: cluster.Name}
	if facts.copy, err = r.secret(ctx, key); err != nil {
		return nil, err
	}
	if facts.isFromSecret() {
		key := types.NamespacedName{Namespace: r.options.Namespace, Name: cluster.Spec.ClusterSource.KubeConfig.Location}
		facts.secret, err = r.secret(ctx, key)
		if apierrors.IsForbidden(err) {
			facts.secretTrouble = fmt.Sprintf("Secret %s may not be read by the manager: a Role in %s must allow it to get Secrets", key, key.Namespace)
			err = nil
		}
	}
	return facts, err
}

// secret reads a Secret past the cache, which has registrations only.
func (r *remotes) secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	var secret corev1.Secret
	if err := r.live.Get(ctx, key, &secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &secret, nil
}

func (r *remotes) apply(ctx context.Context, facts *remote, d registration) error {
	if d.create != nil {
		if err := r.hub.Create(ctx, d.create); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("register worker %s: %w", facts.cluster.Name, err)
		}
	}
	if d.update != nil {
		if err := r.hub.Update(ctx, d.update); err != nil {
			return fmt.Errorf("rotate the credentials of worker %s: %w", facts.cluster.Name, err)
		}
	}
	if d.active == nil {
		return nil
	}
	changed := facts.cluster.DeepCopy()
	next := *d.active
	next.ObservedGeneration = facts.cluster.Generation
	meta.SetStatusCondition(&changed.Status.Conditions, next)
	patch := client.MergeFromWithOptions(facts.cluster, client.MergeFromWithOptimisticLock{})
	if err := r.hub.Status().Patch(ctx, changed, patch); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active[facts.cluster.Name] = writtenCondition{next, facts.now}
	return nil
}

func (r *remotes) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.active, name)
}

// afterWrite says when to look again: who was overtaken looks again soon, what is gone needs no
// look.
func afterWrite(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: behind}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
