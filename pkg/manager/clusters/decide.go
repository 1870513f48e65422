package clusters

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/wake"
)

// plan is what is to be done, in the order of its fields.
type plan struct {
	// hold adds the finalizer to the Secret.
	hold bool
	// create makes this WorkerCluster.
	create *v1alpha1.WorkerCluster
	// connect says what the connection shall lead to; nil: it's to be removed.
	connect *connect
	// status is to be written; nil: it's as it should be, or can wait.
	status *v1alpha1.WorkerClusterStatus
	// discard deletes the WorkerCluster.
	discard bool
	// release takes the finalizer off this Secret.
	release *corev1.Secret
	// events follow when all that has been done.
	events []event
	// again is the wake-up to look again without any event.
	again time.Duration
}

type connect struct {
	settings Settings
	aim      *aim
	past     past
}

// event is told on the Secret and on the WorkerCluster, as far as they exist.
type event struct {
	kind    string // Normal or Warning
	reason  string
	action  string
	message string
}

// decide is the whole reconciler, but for reading and writing.
func decide(s snapshot, options Options) plan {
	switch {
	case s.servedBy != "":
		return plan{}
	case s.secret == nil && s.cluster == nil:
		return plan{}
	case s.secret == nil || abandoned(s.secret):
		return withoutSecret(s, options)
	case s.secret.DeletionTimestamp != nil:
		return removing(s, options)
	default:
		return registered(s, options)
	}
}

// abandoned says whether a Secret is going, and this package is done with it.
func abandoned(secret *corev1.Secret) bool {
	return secret.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(secret, v1alpha1.FinalizerWorkerCluster)
}

// withoutSecret keeps the WorkerCluster, so that Jobs placed there stay in place, and says that
// there is no way to reach them.
func withoutSecret(s snapshot, options Options) plan {
	if s.cluster == nil {
		return plan{}
	}
	problem := fmt.Sprintf("Secret %s/%s is gone: create it again, with the label %s=true; or, to move the Jobs away, delete this WorkerCluster",
		options.Namespace, s.cluster.Spec.KubeconfigSecret, v1alpha1.LabelWorkerCluster)
	p := serve(s, options, aimless(v1alpha1.ReasonSecretMissing, problem))
	p.release = s.unlabelled
	return p
}

// registered makes the WorkerCluster and the connection what the Secret says.
func registered(s snapshot, options Options) plan {
	p := plan{}
	if s.cluster != nil {
		p = serve(s, options, aimOf(s.secret))
	} else {
		p.create = newCluster(s)
	}
	p.hold = !controllerutil.ContainsFinalizer(s.secret, v1alpha1.FinalizerWorkerCluster)
	return p
}

// removing lets the worker go once nothing holds on to it.
func removing(s snapshot, options Options) plan {
	if e, free := letGo(s, options); free {
		return plan{discard: s.cluster != nil, release: s.secret, events: []event{e}}
	}
	if s.cluster == nil {
		return plan{create: newCluster(s)}
	}
	p := serve(s, options, aimOf(s.secret))
	p.connect.settings.Removing = true
	if s.cluster.Spec.RemovalPolicy == v1alpha1.RemovalOrphan {
		p.again = wake.Soonest(p.again, wake.In(s.secret.DeletionTimestamp.Add(options.OrphanGrace).Sub(s.now)))
	}
	return p
}

func aimOf(secret *corev1.Secret) *aim {
	raw, ok := secret.Data[v1alpha1.KubeconfigKey]
	if !ok {
		return aimless(v1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("it has no key %q: put the worker's kubeconfig there", v1alpha1.KubeconfigKey))
	}
	return aimAt(raw)
}

// serve connects the worker and keeps the status.
func serve(s snapshot, options Options, aim *aim) plan {
	p := plan{connect: &connect{
		aim:      aim,
		past:     recollect(s),
		settings: Settings{Labels: s.cluster.Labels, Spec: s.cluster.Spec},
	}}
	if s.worker == nil {
		return p // its first view will bring us here again
	}
	next := nextStatus(s)
	switch urgency := compareStatus(s.cluster.Status, next); {
	case urgency == statusSame:
	case urgency == statusNumbers && s.now.Sub(s.lastWrite) < options.StatusInterval:
		p.again = s.lastWrite.Add(options.StatusInterval).Sub(s.now)
	default:
		p.status = &next
		p.events = append(readinessEvents(s, next), lossEvents(s, next)...)
	}
	if s.worker.loss.State == LossPending {
		p.again = wake.Soonest(p.again, wake.In(s.worker.loss.At.Sub(s.now)))
	}
	return p
}

// recollect reads what an earlier process knew: which cluster it was, since when it isn't Ready,
// and from when on that counts.
func recollect(s snapshot) past {
	before := past{clusterUID: s.cluster.Status.ClusterUID, since: s.now, clock: s.now}
	conditions := s.cluster.Status.Conditions
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
	case ready.Status == metav1.ConditionTrue:
		before.since, before.clock = time.Time{}, time.Time{}
	default:
		before.since = notAfter(ready.LastTransitionTime.Time, s.now)
		before.clock = clockBefore(before.since, s.now, meta.FindStatusCondition(conditions, v1alpha1.ConditionLost))
	}
	return before
}

// clockBefore is from when on an earlier process counted. The condition Lost leaves Unknown when a
// time of isolation ends; a process that died in one begins anew.
func clockBefore(since, now time.Time, lost *metav1.Condition) time.Time {
	switch {
	case lost == nil || lost.Status == metav1.ConditionTrue:
		return since
	case lost.Status == metav1.ConditionUnknown:
		return now
	case lost.LastTransitionTime.After(since):
		return notAfter(lost.LastTransitionTime.Time, now)
	default:
		return since
	}
}

// notAfter guards against the clock of an earlier process that was ahead.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}
