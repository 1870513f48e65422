package clusters

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/feed"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/placement"
)

// DefaultWorkerLostTimeout is the default of Options.WorkerLostTimeout.
const DefaultWorkerLostTimeout = 15 * time.Minute

// Options of a Registry. What is zero gets its default, but for the required.
type Options struct {
	// Namespace of the registration Secrets. Required.
	Namespace string
	// Origin of this hub's mirrors. Required.
	Origin v1alpha1.Origin
	// HubUID is the UID of the hub's kube-system namespace: a kubeconfig that leads there is
	// refused. Required.
	HubUID types.UID

	// QPS and Burst limit the requests to each worker, on its own. Probes and watches that are
	// under way don't count. Defaults 1000 and 2000.
	QPS   float32
	Burst int
	// DialTimeout is for the TCP connection, and again for TLS. Default 5s.
	DialTimeout time.Duration
	// RequestTimeout is for one read or write. Lists and watches of the caches must begin within
	// four times as long; a list goes on for as long as objects come, at least one in five times as
	// long and all in forty times. Default 15s.
	RequestTimeout time.Duration
	// ProbeInterval is the time between two probes. Default 10s.
	ProbeInterval time.Duration
	// ProbeTimeout is for one probe. Default 5s.
	ProbeTimeout time.Duration
	// RetryDelay is the time between the first failed probe and the second, after which the worker
	// counts as lost. Default 1s.
	RetryDelay time.Duration
	// MaxBackoff bounds the time between attempts to reach a lost worker; it starts at RetryDelay,
	// and has jitter. Default 30s.
	MaxBackoff time.Duration
	// WorkerLostTimeout is how long a worker that doesn't say so itself may be not Ready before it
	// counts as lost. Default 15m.
	WorkerLostTimeout time.Duration
	// StatusInterval is the least time between two writes of a WorkerCluster's status if nobody acts
	// on what differs, such as numbers and messages. Default 5s.
	StatusInterval time.Duration
	// OrphanGrace is how long the removal of a reachable worker with the policy Orphan waits until
	// its mirrors are orphaned. Default 1m.
	OrphanGrace time.Duration

	// Term of this process as the leader of its hub. Without one, workers aren't guarded against
	// another manager of the same origin.
	Term *Term
	// Placements counts the Jobs on a worker. Required.
	Placements Placements
	// Pods is told of the Pods of mirrors, which the hub shows; nil: it shows none.
	Pods PodListener
	// Recorder for events on Secrets and WorkerClusters. Default: the manager's.
	Recorder events.EventRecorder
	// Metrics is where the metrics are registered. Default: controller-runtime's registry.
	Metrics prometheus.Registerer
	// Clock defaults to the real one.
	Clock clock.WithDelayedExecution
}

// Placements counts the Jobs that keep a worker from being removed, and knows what they have found
// out about it.
type Placements interface {
	// Unfinished counts the hub Jobs that are placed on a worker and haven't finished. It must not
	// block.
	Unfinished(worker string) int
	// Placed counts all of them, those that have finished included. It must not block.
	Placed(worker string) int
	// Stockouts are those of a worker, for its status. It must not block.
	Stockouts(worker string) []v1alpha1.Stockout
	// RestoreStockouts says which ones a worker's status has, before this replica leads.
	RestoreStockouts(worker string, all []v1alpha1.Stockout)
	// Counted is closed when all Jobs have been seen. Until then, nobody leads.
	Counted() <-chan struct{}
}

// PodListener shows the Pods of mirrors on the hub. Its methods are called from many goroutines,
// also on a standby, and must not block.
type PodListener interface {
	// Shown reports whether the Pods of a namespace are shown.
	Shown(namespace string) bool
	// PodChanged: a Pod of a Job in a worker was added, changed or deleted.
	PodChanged(types.NamespacedName)
	// WorkersChanged: a worker was registered or removed, its View changed, or it's known, or no more,
	// that all of its Pods have been told.
	WorkersChanged()
}

// MirrorChange is an event of a mirror.
type MirrorChange = feed.MirrorChange

// Listener is called on changes, once the Registry and its workers show them. Its methods are
// called from many goroutines and must not block.
type Listener interface {
	// MirrorChanged: a Job of this origin was added, changed or deleted in a worker. Of one that is
	// gone, a first call tells the last state (MirrorChange.Last), while the Registry still names the
	// worker as a holder. When it doesn't, a second call follows.
	MirrorChanged(worker string, c MirrorChange)
	// WorkerChanged: a worker was registered or removed, or its View changed.
	WorkerChanged(worker string)
	// WorkerRestored: a worker's etcd was put back to an earlier state. What is known of its objects,
	// by its answers too, counts no more. WorkerChanged follows.
	WorkerRestored(worker string)
	// CapacityFreed: a Job that a worker couldn't take may be helped by a change there. See package
	// change: it's said once until somebody reads that again.
	CapacityFreed(worker string, c placement.Change)
	// PodsStuck: a Pod of a mirror is found to wait for its node, or on it, or such a node doesn't
	// come for now. See placement.Ledger. The worker says of which Job.
	PodsStuck(worker string, key types.NamespacedName)
	// PodUnlabelled: a Pod that a Job controls was added or changed, and lacks the label by which a
	// mirror selects its Pods. It's said of all Jobs in a worker.
	PodUnlabelled(worker string, key types.NamespacedName, job types.UID)
}

func (o Options) withDefaults() Options {
	setDefault(&o.QPS, 1000)
	setDefault(&o.Burst, 2000)
	setDefault(&o.DialTimeout, 5*time.Second)
	setDefault(&o.RequestTimeout, 15*time.Second)
	setDefault(&o.ProbeInterval, 10*time.Second)
	setDefault(&o.ProbeTimeout, 5*time.Second)
	setDefault(&o.RetryDelay, time.Second)
	setDefault(&o.MaxBackoff, 30*time.Second)
	setDefault(&o.WorkerLostTimeout, DefaultWorkerLostTimeout)
	setDefault(&o.StatusInterval, 5*time.Second)
	setDefault(&o.OrphanGrace, time.Minute)
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

func (o Options) ofLink(worker string) link.Options {
	return link.Options{
		Worker: worker, QPS: o.QPS, Burst: o.Burst,
		DialTimeout: o.DialTimeout, RequestTimeout: o.RequestTimeout,
		ProbeInterval: o.ProbeInterval, ProbeTimeout: o.ProbeTimeout,
		RetryDelay: o.RetryDelay, MaxBackoff: o.MaxBackoff,
		Clock: o.Clock,
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
