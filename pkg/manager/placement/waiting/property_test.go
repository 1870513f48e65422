package waiting_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/placement/waiting"
)

// someJobs are Jobs of all widths, which run for no longer than they say.
func someJobs(r *rand.Rand, n int, priorities int32) []*simJob {
	jobs := make([]*simJob, n)
	for i := range jobs {
		arrives := time.Duration(r.IntN(600)) * time.Second
		cpu := []string{"1", "2", "3", "8"}[r.IntN(4)]
		jobs[i] = newSimJob(i, r.Int32N(priorities), arrives, 1+r.Int64N(6), cpu)
		jobs[i].Runtime = time.Duration(10+r.IntN(300)) * time.Second
		jobs[i].runs = time.Duration(1 + r.Int64N(int64(jobs[i].Runtime)))
	}
	return jobs
}

func someFleet(seed uint64) *fleet {
	r := rand.New(rand.NewPCG(seed, 1))
	f := &fleet{rand: r}
	for i := range 1 + r.IntN(3) {
		f.workers = append(f.workers, newSimWorker(fmt.Sprintf("w%d", i), 1+r.IntN(6), "8"))
	}
	return f
}

const seeds = 300

// No Job starts later than its reservation says because of a Job behind it. All Jobs have the same
// priority here and arrive in the order of their age. One before it may still take its room.
func TestNoJobIsDelayedByABackfill(t *testing.T) {
	promises, backfills := 0, 0
	for seed := range uint64(seeds) {
		f := someFleet(seed)
		jobs := someJobs(f.rand, 80, 1)
		var last time.Time
		q := &lineQueue{}
		f.starts = q.overtaken
		simulate(f, slices.Clone(jobs), q, 1000*time.Hour)
		for _, job := range f.started {
			if !job.promised.IsZero() {
				promises++
			}
			if job.start.After(job.promised) && !job.promised.IsZero() {
				t.Fatalf("seed %d: %s started %s after its reservation", seed, job.Key.Name, job.start.Sub(job.promised))
			}
			if job.Created.Before(last) {
				backfills++
			}
			last = job.Created
		}
		for _, job := range jobs {
			if len(job.Needs) > 0 && job.start.IsZero() {
				t.Fatalf("seed %d: %s never started", seed, job.Key.Name)
			}
		}
	}
	if promises < 1000 || backfills < 1000 {
		t.Errorf("%d reservations and %d Jobs that went before older ones show little", promises, backfills)
	}
}

// After each walk no Job waits that fits in a worker that admits it, and the first Job of those that
// may use a worker has a reservation, there or elsewhere.
func TestNoJobIsPassedByOneBehindIt(t *testing.T) {
	for seed := range uint64(seeds) {
		f, q := someFleet(seed), &lineQueue{}
		q.checked = func(f *fleet) {
			for _, job := range f.jobs {
				if q.Get(job.Key) == nil {
					continue
				}
				for worker := range job.Needs {
					w := f.worker(worker)
					if w.fits(&job.Job) && q.Admits(&job.Job, worker, f.now) >= job.Pods {
						t.Fatalf("seed %d: %s waits, and fits in %s", seed, job.Key.Name, worker)
					}
					first := true
					for _, r := range q.Reservations() {
						_, could := r.Job.Needs[worker]
						first = first && (!could || waiting.Compare(&job.Job, r.Job) < 0)
					}
					if first {
						t.Fatalf("seed %d: %s has no reservation, and could have %s", seed, job.Key.Name, worker)
					}
				}
			}
		}
		simulate(f, someJobs(f.rand, 80, 3), q, 1000*time.Hour)
	}
}

// A Job starts after one of higher priority that waits and fits in the same worker alone.
func TestPrioritiesAreNotInverted(t *testing.T) {
	for seed := range uint64(seeds) {
		f := someFleet(seed)
		jobs := someJobs(f.rand, 60, 3)
		for _, job := range jobs {
			job.Pods, job.Shape, job.Runtime = 1, shapeOf("2"), 0 // all alike, and nobody knows how long they run
		}
		simulate(f, slices.Clone(jobs), &lineQueue{}, 1000*time.Hour)
		for i, job := range f.started {
			for _, later := range f.started[i+1:] {
				if waited := later.Created.Before(job.start); waited && later.start.After(job.start) && later.Priority > job.Priority {
					t.Fatalf("seed %d: %s of priority %d started before %s of priority %d", seed, job.Key.Name, job.Priority, later.Key.Name, later.Priority)
				}
			}
		}
	}
}

// The order in which Jobs were added doesn't matter.
func TestOrderOfInputIsIrrelevant(t *testing.T) {
	for seed := range uint64(seeds) {
		want := ""
		for range 3 {
			f := someFleet(seed)
			jobs := someJobs(f.rand, 60, 3)
			line := &waiting.Line{}
			f.now, f.jobs = noon.Add(time.Hour), byKey(jobs, f)
			for _, i := range rand.Perm(len(jobs)) {
				line.Add(&jobs[i].Job)
			}
			all := map[string]bool{}
			for _, w := range f.workers {
				all[w.name] = true
			}
			line.Walk(f.now, all, f)
			got := ""
			for _, job := range f.started {
				got += job.Key.Name + " in " + job.on.name + "\n"
			}
			for _, w := range f.workers {
				if r := line.Reservations()[w.name]; r != nil {
					got += fmt.Sprintln(w.name, "for", r.Job.Key.Name, "at", r.Start)
				}
			}
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("seed %d: %s\nand then\n%s", seed, want, got)
			}
		}
	}
}
