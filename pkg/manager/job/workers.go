package job

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// workerView is what gather reads of a worker. None of its methods writes.
type workerView interface {
	line.WorkerReader
	// Synced reports whether the worker is connected, its mirrors have been listed, and this process
	// may write there.
	Synced() bool
	// ControllerSeen is when its Job controller was last seen to start or end a mirror.
	ControllerSeen() time.Time
	// Mirror reads the cache of the worker's mirrors.
	Mirror(key types.NamespacedName) (*batchv1.Job, bool)
	// Unschedulable is what the worker's Pods say of those of a mirror that wait.
	Unschedulable(mirror objectnames.ID) placement.Report
	// PodTimes are those of a mirror's Pods.
	PodTimes(mirror objectnames.ID) usage.Times
	// PodTimesAt returns the times that PodTimes had at the moment of an account, and at that of the
	// list of all Pods. Without a view they aren't known yet.
	PodTimesAt(mirror objectnames.ID, account usage.Accounted) (then, listed usage.Times)
}

// worker is what the controller uses of a worker.
type worker interface {
	workerView
	Client() client.Client
	// Hold is for requests whose answers are used until release is called.
	Hold(ctx context.Context) (held context.Context, release func())
	Ledger() *placement.Ledger
	Mirrors() []packed.Facts
	// UnseenMirrors are some Jobs that Pods there say are mirrors, and that Mirror doesn't get.
	UnseenMirrors() []types.NamespacedName
}

// workers is what the controller uses of the registry of workers.
type workers interface {
	// Loaded is closed when this replica leads, and all WorkerClusters are known.
	Loaded() <-chan struct{}
	get(name string) (worker, bool)
	list() []worker
	// holders are the workers with a mirror of this name, in order of names.
	holders(key types.NamespacedName) []worker
	Loss(worker string) clusters.Loss
	// PlacementsChanged is called when the number of Jobs on a worker has changed.
	PlacementsChanged(worker string)
	// StockoutsChanged is called when a worker is out for other shapes of Pods than before.
	StockoutsChanged(worker string)
}

// registry adapts a clusters.Registry.
type registry struct{ *clusters.Registry }

func (r registry) get(name string) (worker, bool) {
	w, ok := r.Get(name)
	return connected{w}, ok
}

func (r registry) list() []worker { return wrap(r.List()) }

func (r registry) holders(key types.NamespacedName) []worker { return wrap(r.MirrorHolders(key)) }

func wrap(all []*clusters.Worker) []worker {
	wrapped := make([]worker, 0, len(all))
	for _, w := range all {
		wrapped = append(wrapped, connected{w})
	}
	return wrapped
}

// connected adapts a clusters.Worker.
type connected struct{ *clusters.Worker }

// Unschedulable implements workerView.
func (c connected) Unschedulable(mirror objectnames.ID) placement.Report {
	return c.Ledger().Unschedulable(mirror)
}

// views shows gather the workers without what writes.
type views struct{ workers }

func (v views) view(name string) (workerView, bool) { return v.get(name) }

func (v views) viewHolders(key types.NamespacedName) []workerView {
	var all []workerView
	for _, w := range v.holders(key) {
		all = append(all, w)
	}
	return all
}
