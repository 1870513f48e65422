package job

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/waiting"
)

// maxLine bounds how many Jobs an explanation lists.
const maxLine = 500

// lineOf says where a Job is in the line, with the other Jobs of its namespace; nil: it isn't in it.
func (s *scheduler) lineOf(key types.NamespacedName) (of *v1alpha1.WaitingExplanation, all []v1alpha1.WaitingJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := 0
	for job := range s.line.Jobs() {
		place++
		if job.Key.Namespace != key.Namespace || job.Key != key && len(all) == maxLine {
			continue
		}
		e := s.explainLocked(job, place)
		if job.Key == key {
			of = &e
		}
		if len(all) < maxLine {
			all = append(all, v1alpha1.WaitingJob{Name: job.Key.Name, WaitingExplanation: e})
		}
	}
	if of == nil {
		return nil, nil
	}
	return of, all
}

func (s *scheduler) explainLocked(job *waiting.Job, place int) v1alpha1.WaitingExplanation {
	e := v1alpha1.WaitingExplanation{Place: place, Of: s.line.Len()}
	if r := s.line.Reservation(job); r != nil {
		e.Worker, e.Latest = r.Worker, r.Certain
		if !r.Start.IsZero() {
			e.ExpectedStart = ptr.To(metav1.NewTime(r.Start))
		}
	}
	return e
}

// isReserved reports whether a worker's room is kept from a Job that waits.
func (s *scheduler) isReserved(key types.NamespacedName, worker string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	job := s.line.Get(key)
	return job != nil && s.line.Admits(job, worker, s.clock.Now()) < job.Least()
}

// pending counts the Jobs that wait in line by PriorityClass.
func (s *scheduler) pending() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for key, w := range s.waiters {
		if s.line.Get(key) != nil {
			counts[w.class.name]++
		}
	}
	return counts
}
