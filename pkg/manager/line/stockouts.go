package line

import (
	"math"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line/stockout"
	"github.com/jobferry/jobferry/pkg/placement"
)

// stockouts are the shapes of Pods that workers didn't start in time.
type stockouts struct {
	line  *Line
	clock clock.WithDelayedExecution

	mu     sync.Mutex
	record stockout.Record
	// ends are when workers are looked at again.
	ends map[end]bool
}

// end is the second in which a worker isn't out any more for some shapes of a namespace, or of all.
type end struct {
	worker, namespace string
	at                int64
}

// of is what is known for one Job.
func (s *stockouts) of(job *batchv1.Job) *jobStockouts {
	s.mu.Lock()
	none := s.record.IsEmpty()
	s.mu.Unlock()
	o := &jobStockouts{stockouts: s, key: keyOf(job)}
	if !none {
		o.shape = stockout.Fingerprint(job) // without the lock: it takes a while
	}
	return o
}

// jobStockouts are those that concern one Job; nearly always there are none, and the shape is
// empty.
type jobStockouts struct {
	*stockouts
	key   types.NamespacedName
	shape string
}

// isOut reports whether the Job isn't to be sent to a worker.
func (s *jobStockouts) isOut(worker string) bool {
	return s.ask((*stockout.Record).IsOut, worker)
}

// isDoubtful reports whether the Job isn't to be sent to a worker while it runs in another.
func (s *jobStockouts) isDoubtful(worker string) bool {
	return s.ask((*stockout.Record).IsDoubtful, worker)
}

// isOutForAll reports whether it's no use to wait in a worker.
func (s *jobStockouts) isOutForAll(worker string) bool {
	return s.ask((*stockout.Record).IsOutForAll, worker)
}

func (s *jobStockouts) ask(is func(*stockout.Record, string, string, types.NamespacedName, time.Time) bool, worker string) bool {
	if s.shape == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return is(&s.record, worker, s.shape, s.key, s.clock.Now())
}

// chosen records that the Job is sent to a worker.
func (s *jobStockouts) chosen(worker string, timeout time.Duration) {
	if s.shape == "" {
		return
	}
	s.mu.Lock()
	until, tries := s.record.Chosen(worker, s.shape, s.key, timeout, s.clock.Now())
	s.mu.Unlock()
	if tries {
		s.line.workers.StockoutsChanged(worker)
		s.endAt(worker, "", until)
	}
}

// failed records that no Pod of a Job has started in a worker within its timeout.
func (s *stockouts) failed(worker string, job *batchv1.Job, timeout time.Duration) {
	shape := stockout.Fingerprint(job)
	s.mu.Lock()
	until, forAll, is := s.record.Failed(worker, shape, keyOf(job), timeout, s.clock.Now())
	s.mu.Unlock()
	if !is {
		return
	}
	startTimeouts.WithLabelValues(worker).Inc()
	s.line.workers.StockoutsChanged(worker)
	namespace := job.Namespace
	if forAll {
		namespace = ""
	}
	s.line.jobs.Enqueue(slices.DeleteFunc(s.line.jobs.AwaitingPods(worker), func(key types.NamespacedName) bool {
		return namespace != "" && key.Namespace != namespace // it's nothing to them
	})...)
	s.endAt(worker, namespace, until)
}

// look records that a Pod of the Job has started in a worker, if it waited there, or was sent there
// to try.
func (s *jobStockouts) look(w *dispatch.Worker) {
	if s.shape == "" || !w.Started() {
		return
	}
	s.mu.Lock()
	is := !w.Pods.WaitingSince.IsZero() || s.record.IsTrying(w.Name, s.shape, s.key)
	is = is && s.record.Started(w.Name, s.shape)
	s.mu.Unlock()
	if is {
		s.line.workers.StockoutsChanged(w.Name)
		s.ended(w.Name, "")
	}
}

// ended has the Jobs of a namespace, or of all, looked at that wait because a worker was out.
func (s *stockouts) ended(worker, namespace string) {
	s.line.Changed(worker, placement.Change{Kinds: placement.AnyChange, Namespace: namespace})
}

// endAt has them looked at when the worker isn't out any more: once for all shapes for which that
// ends within a second.
func (s *stockouts) endAt(worker, namespace string, until time.Time) {
	at := until.Truncate(time.Second)
	if at.Before(until) {
		at = at.Add(time.Second)
	}
	end := end{worker, namespace, at.Unix()}
	s.mu.Lock()
	known := s.ends[end]
	s.ends[end] = true
	s.mu.Unlock()
	if known {
		return
	}
	s.clock.AfterFunc(at.Sub(s.clock.Now()), func() {
		s.mu.Lock()
		delete(s.ends, end)
		s.mu.Unlock()
		s.ended(worker, namespace)
	})
}

func (s *stockouts) forget(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Forget(worker)
}

// entries are those of a worker, as its status has them.
func (s *stockouts) entries(worker string) (all []v1alpha1.Stockout) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.record.Entries(worker, s.clock.Now()) {
		all = append(all, v1alpha1.Stockout{
			Shape: e.Shape, Namespace: e.Namespace, Failures: int32(min(e.Failures, math.MaxInt32)), //nolint:gosec // it's bounded
			Until: metav1.NewTime(e.Until.Truncate(time.Second)), Trying: e.Trying,
		})
	}
	return all
}

// restore takes over what a worker's status has.
func (s *stockouts) restore(worker string, all []v1alpha1.Stockout) {
	now := s.clock.Now()
	var entries []stockout.Entry
	for _, o := range all {
		entries = append(entries, stockout.Entry{
			Shape: o.Shape, Namespace: o.Namespace, Failures: int(o.Failures), Until: o.Until.Time, Trying: o.Trying,
		})
	}
	s.mu.Lock()
	s.record.Restore(worker, entries, now)
	s.mu.Unlock()
	for _, e := range entries {
		if e.Until.After(now) {
			s.endAt(worker, e.Namespace, e.Until)
		}
	}
}

// Stockouts are those of a worker, as its status has them.
func (l *Line) Stockouts(worker string) []v1alpha1.Stockout { return l.stockouts.entries(worker) }

// RestoreStockouts takes over what a worker's status has.
func (l *Line) RestoreStockouts(worker string, all []v1alpha1.Stockout) {
	l.stockouts.restore(worker, all)
}

// StartTimedOut records that no Pod of a Job has started in a worker in time.
func (l *Line) StartTimedOut(worker string, job *batchv1.Job) {
	if v, ok := l.workers.Worker(worker); ok {
		spec := v.View().Spec
		l.stockouts.failed(worker, job, StartTimeoutOf(&spec, l.startTimeout))
	}
}

// Observe records whether a Pod of a Job has started in a worker.
func (l *Line) Observe(job *batchv1.Job, w *dispatch.Worker) { l.stockouts.of(job).look(w) }

// IsStockedOut reports whether it's no use for a Job to wait in a worker.
func (l *Line) IsStockedOut(job *batchv1.Job, worker string) bool {
	return l.stockouts.of(job).isOutForAll(worker)
}
