package job

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line"
)

// lineWorkers shows the line the workers.
type lineWorkers struct {
	workers
	fieldSupport *fieldSupport
}

var _ line.Workers = lineWorkers{}

func (w lineWorkers) Worker(name string) (line.Worker, bool) { return w.get(name) }

func (w lineWorkers) Workers() []line.Worker {
	all := w.list()
	workers := make([]line.Worker, len(all))
	for i, v := range all {
		workers[i] = v
	}
	return workers
}

func (w lineWorkers) Drops(worker line.WorkerReader) map[string]bool {
	return w.fieldSupport.drops(worker)
}

// lineJobs shows the line the hub's Jobs.
type lineJobs struct {
	*Reconciler
	triggers *triggers
}

var _ line.Jobs = &lineJobs{}

func (j *lineJobs) Cached(ctx context.Context, key types.NamespacedName) *batchv1.Job {
	job, err := j.gatherer.cachedJob(ctx, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "A Job that waits isn't looked at")
	}
	return job
}

func (j *lineJobs) PassedOver(key types.NamespacedName) map[string]string {
	return j.store.passedOverBy(j.clock.Now(), key)
}

func (j *lineJobs) Admission(ctx context.Context, job *batchv1.Job) dispatch.Admission {
	return j.queues.Admission(ctx, job)
}

func (j *lineJobs) PlacedOn(worker string) []types.NamespacedName {
	return j.store.unfinishedOn(worker)
}

func (j *lineJobs) AwaitingPods(worker string) []types.NamespacedName {
	return j.store.waitingIn(worker)
}

func (j *lineJobs) AwaitingCapacity() []types.NamespacedName { return j.store.waiters(ofWalk) }

func (j *lineJobs) CountAwaitingCapacity() int { return j.store.waitingJobs() }

func (j *lineJobs) Run(key types.NamespacedName) (started time.Time, deadline time.Duration) {
	run := j.store.runOf(key)
	return run.started, run.deadline
}

func (j *lineJobs) Reserver(key types.NamespacedName) line.Reserver {
	return reserver{j.store.open(key)}
}

func (j *lineJobs) ReturnsNow(key types.NamespacedName) {
	j.store.open(key).update(func(m *memory) { m.returning.next = time.Time{} })
}

func (j *lineJobs) GroupPlaces(id group.ID) []group.Place { return j.store.placesOf(id) }

func (j *lineJobs) MayPlace() bool { return j.startup.over() }

func (j *lineJobs) Enqueue(keys ...types.NamespacedName) { j.triggers.Enqueue(keys...) }

func (j *lineJobs) EnqueueRelated(keys ...types.NamespacedName) { j.triggers.EnqueueRelated(keys...) }

// reserver remembers in a Job's record where capacity is reserved for it.
type reserver struct{ *record }

func (r reserver) Key() types.NamespacedName { return r.key }

func (r reserver) ReservedIn() []string { return r.reservingWorkers() }

func (r reserver) SetReservedIn(workers []string) {
	r.update(func(m *memory) { m.reservedIn = workers })
}
