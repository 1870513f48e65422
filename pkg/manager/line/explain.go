package line

import (
	"context"
	"iter"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
)

// maxLine bounds how many Jobs an explanation lists.
const maxLine = 500

// Explain says where a Job is in the line, with the other Jobs of its namespace; nil: it doesn't
// wait. Jobs that fit in no worker, whatever ends there, have no place: no turn helps them.
func (l *Line) Explain(key types.NamespacedName) (of *v1alpha1.WaitingExplanation, all []v1alpha1.WaitingJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inLine := slices.Collect(l.order.Jobs())
	inLine = slices.DeleteFunc(inLine, func(job *waiting.Job) bool { w := l.waiters[job.Key]; return w != nil && w.fitsNowhere })
	for i, job := range inLine {
		if job.Key.Namespace != key.Namespace || job.Key != key && len(all) == maxLine {
			continue
		}
		e := l.explainLocked(job, i+1, len(inLine))
		if job.Key == key {
			of = &e
		}
		if len(all) < maxLine {
			all = append(all, v1alpha1.WaitingJob{Name: job.Key.Name, WaitingExplanation: e})
		}
	}
	if of == nil && l.waiters[key] == nil {
		return nil, nil
	}
	return of, all
}

func (l *Line) explainLocked(job *waiting.Job, place, of int) v1alpha1.WaitingExplanation {
	e := v1alpha1.WaitingExplanation{Place: place, Of: of}
	if r := l.order.Reservation(job); r != nil {
		e.Worker, e.Latest = r.Worker, r.Certain
		if !r.Start.IsZero() {
			e.ExpectedStart = ptr.To(metav1.NewTime(r.Start))
		}
	}
	return e
}

// isReserved reports whether a worker's room is kept from a Job that waits.
func (l *Line) isReserved(key types.NamespacedName, worker string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	job := l.order.Get(key)
	return job != nil && l.order.Admits(job, worker, l.clock.Now()) < job.Least()
}

// Wait is how a Job waits.
type Wait struct {
	// Class is the name of the PriorityClass of the Job's Pods.
	Class string
	// InLine: it waits in line, and no walk has chosen a worker for it yet. Returning: it runs, and
	// waits for room in a worker that it prefers to its own.
	InLine, Returning bool
	// Judged is how many changes there had been when the Job was last judged.
	Judged uint64
	// Needs are what it lacks, by worker.
	Needs waiting.Needs
	// Held: the line holds the whole Job.
	Held bool
}

// Waits are all Jobs that wait, and those that a walk has chosen a worker for. Nothing else of the
// line may be called meanwhile.
func (l *Line) Waits() iter.Seq2[types.NamespacedName, Wait] {
	return func(yield func(types.NamespacedName, Wait) bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for key, w := range l.returning {
			if !yield(key, w.wait(false, true)) {
				return
			}
		}
		for key, w := range l.waiters {
			if !yield(key, w.wait(l.order.Get(key) != nil, false)) {
				return
			}
		}
	}
}

func (w *entry) wait(inLine, returning bool) Wait {
	return Wait{Class: w.class, InLine: inLine, Returning: returning, Judged: w.asked, Needs: w.Needs, Held: w.request.Job != nil}
}

// Reservations are those of the Jobs in line, by worker.
func (l *Line) Reservations() map[string]*waiting.Reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.order.Reservations())
}

// IsAtRest reports whether all Jobs that wait were looked at since the last change.
func (l *Line) IsAtRest() bool { return !l.freed.isPending() }

// Candidates are all workers as a Job sees them whose question isn't counted, until the context
// ends.
func (l *Line) Candidates(ctx context.Context, job *batchv1.Job) iter.Seq[placement.Cluster] {
	key, out, reads := keyOf(job), l.stockouts.of(job), placement.ReadsOf(&job.Spec.Template.Spec)
	return func(yield func(placement.Cluster) bool) {
		for _, w := range l.workers.Workers() {
			l.Fill(context.WithoutCancel(ctx), w.Name()) // a ledger without some reservations would stay so
			c := candidate(w, key, reads)
			c.Drops, c.Reserved = l.workers.Drops(w), l.isReserved(key, w.Name())
			c.StockedOut = out.isOut(w.Name())
			if ctx.Err() != nil || !yield(c) {
				return
			}
		}
	}
}
