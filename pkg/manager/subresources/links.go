package subresources

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// idleLink is how long a link that isn't used is kept. Its connections are closed earlier.
const idleLink = 10 * time.Minute

// links are the connections of this replica to workers, made when they're needed.
type links struct {
	hub       client.Reader
	namespace string
	options   Options

	mu sync.Mutex // never held while calling out
	of map[string]*kept
}

// kept is a link, and which state of the Secret it was made from.
type kept struct {
	link    *link
	secret  types.UID
	version string
	used    time.Time
}

func newLinks(hub client.Reader, options Options) *links {
	return &links{hub: hub, namespace: options.Namespace, options: options, of: map[string]*kept{}}
}

// to finds or makes the link to a worker. One that is known to be out of touch isn't tried.
func (l *links) to(ctx context.Context, worker string) (*link, error) {
	var cluster v1alpha1.WorkerCluster
	if err := l.hub.Get(ctx, client.ObjectKey{Name: worker}, &cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, unavailable("worker %q isn't registered any more, so what is there can't be read. If the Job hasn't finished, it moves to another", worker)
		}
		return nil, fromHub(fmt.Sprintf("WorkerCluster %q", worker), err)
	}
	if err := inTouch(&cluster); err != nil {
		return nil, err
	}
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: l.namespace, Name: cluster.Spec.KubeconfigSecret}
	if err := l.hub.Get(ctx, key, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, unavailable("worker %q has no kubeconfig any more: the hub's administrator removed its Secret", worker)
		}
		return nil, fromHub(fmt.Sprintf("Secret %q", key), err)
	}
	return l.obtain(worker, &secret)
}

// inTouch goes by what the leader's probes tell.
func inTouch(cluster *v1alpha1.WorkerCluster) error {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return unavailable("worker %q isn't connected yet: try again", cluster.Name)
	case ready.Status != "True":
		return unavailable("worker %q is out of touch since %s: %s: %s", cluster.Name,
			ready.LastTransitionTime.UTC().Format(time.RFC3339), ready.Reason, clean(ready.Message))
	}
	return nil
}

// obtain takes the link that there is, if it was made from this Secret, else a new one. What is
// under way on an old link goes on.
func (l *links) obtain(worker string, secret *corev1.Secret) (*link, error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	if k := l.of[worker]; k != nil && k.secret == secret.UID && k.version == secret.ResourceVersion {
		k.used = now
		return k.link, nil
	}
	made, err := newLink(worker, secret.Data[v1alpha1.KubeconfigKey], l.options)
	if err != nil {
		return nil, unavailable("the kubeconfig of worker %q can't be used: %s", worker, clean(err.Error()))
	}
	if old := l.of[worker]; old != nil {
		old.link.idle()
	}
	l.of[worker] = &kept{link: made, secret: secret.UID, version: secret.ResourceVersion, used: now}
	return made, nil
}

// forget drops the links that haven't been used for long; the caller holds the lock.
func (l *links) forget(now time.Time) {
	for worker, k := range l.of {
		if now.Sub(k.used) > idleLink {
			k.link.idle()
			delete(l.of, worker)
		}
	}
}
