package hub

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

// Hub is what a user may see of a hub.
type Hub struct {
	config    *rest.Config
	client    client.WithWatch
	clock     clock.PassiveClock
	namespace string

	jobs, workers *feed
	reasons       *reasonFeed
	probe         *probe
	details       detailCache

	mu   sync.Mutex
	next chan struct{}
}

// New makes a Hub of the Jobs in a namespace, or, if that is empty, in all.
func New(config *rest.Config, namespace string, clock clock.PassiveClock) (*Hub, error) {
	c, err := access.NewWatchClient(config)
	if err != nil {
		return nil, err
	}
	h := &Hub{config: config, client: c, clock: clock, namespace: namespace, next: make(chan struct{})}
	if h.probe, err = newProbe(config, clock, h.notify); err != nil {
		return nil, err
	}
	sources := []struct {
		into **feed
		source
	}{
		{&h.jobs, source{object: &batchv1.Job{}, list: func() client.ObjectList { return &batchv1.JobList{} }, namespace: namespace, trim: trimJob,
			indexers: cache.Indexers{bySubject: subjectOf}}},
		{&h.workers, source{object: &v1alpha1.WorkerCluster{}, list: func() client.ObjectList { return &v1alpha1.WorkerClusterList{} }, trim: trimWorker}},
	}
	for _, s := range sources {
		if *s.into, err = newFeed(c, s.source, clock, h.notify); err != nil {
			return nil, err
		}
	}
	h.reasons = &reasonFeed{
		feedHealth: newFeedHealth(clock, h.notify), client: c, namespace: namespace, isKnown: h.hasJob, reasons: jobview.NewReasonsOfKnown(h.hasJob),
	}
	return h, nil
}

// bySubject is the index of Jobs by what events about them name.
const bySubject = "subject"

func subjectOf(object any) ([]string, error) {
	job, ok := object.(*batchv1.Job)
	if !ok || !mirror.Managed(job) {
		return nil, nil
	}
	return []string{subjectKey(jobview.SubjectOf(job))}, nil
}

func subjectKey(of jobview.Subject) string { return of.Namespace + "/" + string(of.UID) }

func (h *Hub) hasJob(of jobview.Subject) bool {
	keys, _ := h.jobs.informer.GetIndexer().IndexKeys(bySubject, subjectKey(of)) // the index is there
	return len(keys) > 0
}

// Run watches until the context ends.
func (h *Hub) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, f := range []*feed{h.jobs, h.workers} {
		running.Go(func() { f.run(ctx) })
	}
	running.Go(func() { h.reasons.run(ctx, h.jobs.informer.HasSyncedChecker().Done()) })
	running.Go(func() { h.probe.run(ctx) })
	running.Wait()
}

// Namespace is the one whose Jobs are shown; empty: all.
func (h *Hub) Namespace() string { return h.namespace }

// Changed returns a channel that is closed at the next change of anything.
func (h *Hub) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

func (h *Hub) notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.next)
	h.next = make(chan struct{})
}

// Health is that of the hub itself.
func (h *Hub) Health() Health { return h.probe.over(Health{State: Live}) }

// JobsHealth is the health of the Jobs.
func (h *Hub) JobsHealth() Health { return h.probe.over(h.jobs.Health()) }

// EventsHealth is the health of the events.
func (h *Hub) EventsHealth() Health { return h.probe.over(h.reasons.Health()) }

// WorkersHealth is the health of the workers.
func (h *Hub) WorkersHealth() Health { return h.probe.over(h.workers.Health()) }

// Jobs returns the Jobs that Jobferry runs. They are shared: don't change them.
func (h *Hub) Jobs() []*batchv1.Job {
	var jobs []*batchv1.Job
	for _, object := range h.jobs.informer.GetStore().List() {
		if job, ok := object.(*batchv1.Job); ok && mirror.Managed(job) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// Job returns one of them, or nil.
func (h *Hub) Job(key types.NamespacedName) *batchv1.Job {
	object, _, err := h.jobs.informer.GetStore().GetByKey(key.String())
	job, ok := object.(*batchv1.Job)
	if err != nil || !ok || !mirror.Managed(job) {
		return nil
	}
	return job
}

// Workers returns the workers. They are shared: don't change them.
func (h *Hub) Workers() []*v1alpha1.WorkerCluster {
	var workers []*v1alpha1.WorkerCluster
	for _, object := range h.workers.informer.GetStore().List() {
		if worker, ok := object.(*v1alpha1.WorkerCluster); ok {
			workers = append(workers, worker)
		}
	}
	return workers
}

// Around says what is known of a Job beside itself. Of users who may not list the workers, the
// events say which are out of touch.
func (h *Hub) Around() view.Around {
	workers := jobview.WorkersAmong(h.Workers())
	return func(job *batchv1.Job) jobview.Around {
		return jobview.Around{Reason: h.reasons.of(job), Workers: workers}
	}
}
