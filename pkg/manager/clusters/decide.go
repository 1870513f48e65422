package clusters

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// plan is what is to be done, in the order of its fields.
type plan struct {
	// addFinalizer to the Secret.
	addFinalizer bool
	// create makes this WorkerCluster.
	create *v1alpha1.WorkerCluster
	// renew: the worker is connected anew.
	renew bool
	// connect the worker; nil: remove it.
	connect *connect
	// status is to be written; nil: it's up to date, or can wait.
	status *v1alpha1.WorkerClusterStatus
	// deleteCluster deletes the WorkerCluster.
	deleteCluster bool
	// removeFinalizer from this Secret.
	removeFinalizer *corev1.Secret
	// events follow when all that has been done.
	events []event
	// requeueAfter is the wake-up to look again without any event.
	requeueAfter time.Duration
}

type connect struct {
	settings Settings
	target   *link.Target
	before   known
}

// event is recorded on the Secret and on the WorkerCluster, as far as they exist.
type event struct {
	kind    string // Normal or Warning
	reason  string
	action  string
	message string
}

// known is what the hub knows of a worker from before this process.
type known struct {
	clusterUID types.UID
	// since is when the worker was first found not to be Ready, and clock the loss clock; zero if
	// it was Ready.
	since, clock time.Time
}

// decide is the whole reconciler, but for reading and writing.
func decide(s gathered, options Options) plan {
	switch {
	case s.servedBy != "":
		return plan{}
	case s.secret == nil && s.cluster == nil:
		return plan{}
	case s.secret == nil || released(s.secret):
		return withoutSecret(s, options)
	case s.secret.DeletionTimestamp != nil:
		return removing(s, options)
	default:
		return registered(s, options)
	}
}

// released reports whether a Secret is being deleted and has our finalizer no more.
func released(secret *corev1.Secret) bool {
	return secret.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(secret, v1alpha1.FinalizerWorkerCluster)
}

// withoutSecret keeps the WorkerCluster, so that Jobs placed there stay in place, and reports that
// they can't be reached.
func withoutSecret(s gathered, options Options) plan {
	if s.cluster == nil {
		return plan{}
	}
	p := serve(s, options, link.Nowhere(v1alpha1.ReasonSecretMissing, missingSecret(s, options)))
	p.removeFinalizer = s.unlabelled
	return p
}

// missingSecret says what to do about a Secret that is gone, or hasn't come yet.
func missingSecret(s gathered, options Options) string {
	problem := "Secret %s/%s is gone: create it again, with the label %s=true; or, to move the Jobs away, delete this WorkerCluster"
	if neverReached(s) {
		problem = "there is no Secret %s/%s yet: create it, with the label %s=true"
	}
	return fmt.Sprintf(problem, options.Namespace, s.cluster.Spec.KubeconfigSecret, v1alpha1.LabelWorkerCluster)
}

// registered makes the WorkerCluster and the connection what the Secret says.
func registered(s gathered, options Options) plan {
	p := plan{}
	if s.cluster != nil {
		p = serve(s, options, targetIn(s.secret))
	} else {
		p.create = newCluster(s)
	}
	p.addFinalizer = !controllerutil.ContainsFinalizer(s.secret, v1alpha1.FinalizerWorkerCluster)
	return p
}

// removing removes the worker once nothing depends on it.
func removing(s gathered, options Options) plan {
	if e, removable := removable(s, options); removable {
		return plan{deleteCluster: s.cluster != nil, removeFinalizer: s.secret, events: []event{e}}
	}
	if s.cluster == nil {
		return plan{create: newCluster(s)}
	}
	p := serve(s, options, targetIn(s.secret))
	p.connect.settings.Removing = true
	if s.cluster.Spec.RemovalPolicy == v1alpha1.RemovalOrphan {
		p.requeueAfter = wake.Soonest(p.requeueAfter, wake.In(s.secret.DeletionTimestamp.Add(options.OrphanGrace).Sub(s.now)))
	}
	return p
}

func targetIn(secret *corev1.Secret) *link.Target {
	raw, ok := secret.Data[v1alpha1.KubeconfigKey]
	if !ok {
		return link.Nowhere(v1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("it has no key %q: put the worker's kubeconfig there", v1alpha1.KubeconfigKey))
	}
	return link.To(raw)
}

// renewInterval is how often a worker is connected anew at most, whatever it says about its state.
const renewInterval = time.Minute

// serve connects the worker and keeps the status.
func serve(s gathered, options Options, target *link.Target) plan {
	p := plan{connect: &connect{
		target:   target,
		before:   knownBefore(s),
		settings: Settings{Labels: s.cluster.Labels, Spec: s.cluster.Spec, TakeOverFrom: s.cluster.Annotations[v1alpha1.AnnotationTakeOverFrom]},
	}}
	if s.worker == nil {
		return p // its first View enqueues it again
	}
	if s.worker.Reason == v1alpha1.ReasonRestored {
		if wait := s.lastRenewal.Add(renewInterval).Sub(s.now); wait > 0 {
			p.requeueAfter = wait
		} else {
			p.renew = true
		}
	}
	next := nextStatus(s)
	switch urgency := compareStatus(s.cluster.Status, next); {
	case urgency == statusSame:
	case urgency == statusLater && s.now.Sub(s.lastWrite) < options.StatusInterval:
		p.requeueAfter = wake.Soonest(p.requeueAfter, s.lastWrite.Add(options.StatusInterval).Sub(s.now))
	default:
		p.status = &next
		p.events = slices.Concat(readinessEvents(s, next), lossEvents(s, next), exclusiveEvents(s, next))
	}
	if s.worker.loss.State == LossPending {
		p.requeueAfter = wake.Soonest(p.requeueAfter, wake.In(s.worker.loss.At.Sub(s.now)))
	}
	return p
}

// knownBefore reads what an earlier process knew: which cluster it was, since when it isn't Ready,
// and from when on that counts.
func knownBefore(s gathered) known {
	before := known{clusterUID: s.cluster.Status.ClusterUID, since: s.now, clock: s.now}
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

// clockBefore is when the loss clock of an earlier process started. The condition Lost leaves
// Unknown when a time of isolation ends; if the process ended in one, the clock restarts.
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

// newCluster is the WorkerCluster that a Secret gets. The admin sets its spec from then on; here it
// gets the API's defaults.
//
// The garbage collector doesn't accept a namespaced owner of a cluster-scoped object, so
// spec.kubeconfigSecret and the finalizer on the Secret connect the two.
func newCluster(s gathered) *v1alpha1.WorkerCluster {
	return &v1alpha1.WorkerCluster{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: inheritedLabels(s.secret.Labels)},
		Spec:       v1alpha1.WorkerClusterSpec{KubeconfigSecret: s.secret.Name},
	}
}

// inheritedLabels are the Secret's labels that describe the cluster: those without a prefix, and
// Kubernetes' own topology labels. Others belong to the tools that manage the Secret, and some of
// those delete what has their label and isn't theirs.
func inheritedLabels(labels map[string]string) map[string]string {
	inherited := map[string]string{}
	for key, value := range labels {
		prefix, _, prefixed := strings.Cut(key, "/")
		if !prefixed || prefix == "topology.kubernetes.io" {
			inherited[key] = value
		}
	}
	return inherited
}
