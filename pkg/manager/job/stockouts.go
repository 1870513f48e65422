package job

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/placement/stockout"
)

// stockouts are the shapes of Pods that workers didn't start in time.
type stockouts struct {
	clock clock.WithDelayedExecution
	// onBegin is called when a worker is out for another shape, and onEnd when it may be tried again.
	onBegin, onEnd func(worker string)

	mu     sync.Mutex
	record stockout.Record
}

// of is what is known for one Job.
func (s *stockouts) of(job *batchv1.Job) *stockoutsOf {
	s.mu.Lock()
	none := s.record.IsEmpty()
	s.mu.Unlock()
	o := &stockoutsOf{stockouts: s, job: job}
	if !none {
		o.shape = stockout.Fingerprint(job) // without the lock: it takes a while
	}
	return o
}

// stockoutsOf are those that concern one Job; nearly always there are none, and the shape is empty.
type stockoutsOf struct {
	*stockouts
	job   *batchv1.Job
	shape string
}

// isOut reports whether the Job isn't to be sent to a worker.
func (s *stockoutsOf) isOut(worker string) bool {
	if s.shape == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.IsOut(worker, s.shape, keyOf(s.job), s.clock.Now())
}

// isDoubtful reports whether the Job isn't to be sent to a worker while it runs in another.
func (s *stockoutsOf) isDoubtful(worker string) bool {
	if s.shape == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.IsDoubtful(worker, s.shape, s.clock.Now())
}

// isOutForAll reports whether it's no use to wait in a worker.
func (s *stockoutsOf) isOutForAll(worker string) bool {
	if s.shape == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.IsOutForAll(worker, s.shape, s.clock.Now())
}

// chosen records that the Job is sent to a worker.
func (s *stockoutsOf) chosen(worker string, timeout time.Duration) {
	if s.shape == "" {
		return
	}
	s.mu.Lock()
	until, tries := s.record.Chosen(worker, s.shape, keyOf(s.job), timeout, s.clock.Now())
	s.mu.Unlock()
	if tries {
		s.endAt(worker, until)
	}
}

// failed records that no Pod of a Job has started in a worker within its timeout.
func (s *stockouts) failed(worker string, job *batchv1.Job, timeout time.Duration) {
	shape := stockout.Fingerprint(job)
	s.mu.Lock()
	until, is := s.record.Failed(worker, shape, keyOf(job), timeout, s.clock.Now())
	s.mu.Unlock()
	if is {
		startTimeouts.WithLabelValues(worker).Inc()
		s.onBegin(worker)
		s.endAt(worker, until)
	}
}

// look records that a Pod of the Job has started in a worker, if it waited there, or was sent there to
// try.
func (s *stockoutsOf) look(w *dispatch.Worker) {
	if s.shape == "" || !w.Ran() {
		return
	}
	s.mu.Lock()
	is := !w.Pods.WaitingSince.IsZero() || s.record.IsTrying(w.Name, s.shape, keyOf(s.job))
	is = is && s.record.Started(w.Name, s.shape)
	s.mu.Unlock()
	if is {
		s.onEnd(w.Name)
	}
}

func (s *stockouts) endAt(worker string, until time.Time) {
	s.clock.AfterFunc(until.Sub(s.clock.Now()), func() { s.onEnd(worker) })
}

func (s *stockouts) forget(worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Forget(worker)
}
