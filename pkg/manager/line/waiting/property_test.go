package waiting_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
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

// endless takes the deadline from every other Job.
func endless(jobs []*simJob) []*simJob {
	for i := range jobs {
		if i%2 == 0 {
			jobs[i].Runtime = 0
		}
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

// behind has seen all nodes but the last one, which came while what runs there was asked for.
type behind struct{ *fleet }

func (b behind) Nodes(worker string) ([]*placement.Node, bool) {
	nodes, known := b.fleet.Nodes(worker)
	return nodes[:len(nodes)-1], known
}

// What runs on a node that nobody has seen yet frees no room on another.
func TestANodeComesDuringAWalk(t *testing.T) {
	f := newFullFleet()
	wide := newSimJob(9, 0, 0, 2, "8")
	wide.Needs.Set("w", waiting.Need{Lacks: waiting.Room, Pods: 2})
	var line waiting.Line
	line.Add(&wide.Job)
	line.Walk(noon, nil, behind{f})
	if r := line.Reservations()["w"]; r == nil || !r.Start.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("reservation %+v, want one in 3 hours", r)
	}
}

// No Job starts later than its reservation says because of a Job behind it. All Jobs have the same
// priority here and arrive in the order of their age. One before it may still take its room.
func TestNoJobIsDelayedByABackfill(t *testing.T) {
	promises, brief, spared := 0, 0, 0
	for seed := range uint64(seeds) {
		f := someFleet(seed)
		jobs := someJobs(f.rand, 80, 1)
		q := &lineQueue{}
		f.starts = func(job *simJob, w *simWorker) {
			q.overtaken(job, w)
			switch r := q.Reservations()[w.name]; {
			case r == nil || waiting.Compare(&job.Job, r.Job) <= 0 || !job.Created.Equal(f.now): // a walk makes others
			case f.now.Add(job.Runtime).After(r.Start):
				spared++
			default:
				brief++
			}
		}
		simulate(f, slices.Clone(jobs), q, 1000*time.Hour)
		for _, job := range f.started {
			if !job.promised.IsZero() {
				promises++
			}
			if job.start.After(job.promised) && !job.promised.IsZero() {
				t.Fatalf("seed %d: %s started %s after its reservation", seed, job.Key.Name, job.start.Sub(job.promised))
			}
		}
		for _, job := range jobs {
			if job.Needs.Len() > 0 && job.start.IsZero() {
				t.Fatalf("seed %d: %s never started", seed, job.Key.Name)
			}
		}
	}
	if promises < 1000 || brief < 1000 || spared < 300 {
		t.Errorf("%d reservations, and %d brief and %d other Jobs that went before them, show little", promises, brief, spared)
	}
}

// After each walk no Job waits that fits in a worker that admits it, and the first Job of those
// that may use a worker has a reservation, there or elsewhere.
func TestNoJobIsPassedByOneBehindIt(t *testing.T) {
	timeless := 0
	for seed := range uint64(seeds) {
		f, q := someFleet(seed), &lineQueue{}
		q.checked = func(f *fleet) {
			for _, job := range f.jobs {
				if q.Get(job.Key) == nil {
					continue
				}
				for worker := range job.Needs.All() {
					w, r := f.worker(worker), q.Reservations()[worker]
					brief := r != nil && job.Runtime > 0 && !f.now.Add(job.Runtime).After(r.Start)
					if r != nil && r.Start.IsZero() {
						timeless++
					}
					if w.fits(&job.Job) && (brief || q.Admits(&job.Job, worker, f.now) >= job.Pods) {
						t.Fatalf("seed %d: %s waits, and fits in %s", seed, job.Key.Name, worker)
					}
					first := true
					for _, r := range q.Reservations() {
						_, could := r.Job.Needs.Get(worker)
						first = first && (!could || waiting.Compare(&job.Job, r.Job) < 0)
					}
					if first {
						t.Fatalf("seed %d: %s has no reservation, and could have %s", seed, job.Key.Name, worker)
					}
				}
			}
		}
		jobs := someJobs(f.rand, 80, 3)
		if seed%2 == 0 {
			jobs = endless(jobs)
		}
		simulate(f, jobs, q, 1000*time.Hour)
	}
	if timeless < 1000 {
		t.Errorf("%d reservations without a time show little", timeless)
	}
}

// A time is told only if the room comes by what is known.
func TestNoTimeIsMadeOfNothing(t *testing.T) {
	told, untold := 0, 0
	for seed := range uint64(seeds) {
		f, q := someFleet(seed), &lineQueue{}
		q.checked = func(f *fleet) {
			for worker, r := range q.Reservations() {
				switch {
				case r.Start.IsZero():
					untold++
					continue
				case !r.Told.Equal(f.now) || !r.First.Equal(r.Start):
					continue // it was told before
				}
				told++
				var room int64
				for _, node := range f.worker(worker).nodes {
					free := node.Free
					for _, end := range f.Ends(worker) {
						for on, pods := range end.Pods {
							if on == node.Object.Name && end.Basis != waiting.ByNothing && !end.At.After(r.Start) {
								free = free.Add(end.Unit, pods)
							}
						}
					}
					room += r.Job.Shape.Slots(node.Object, &free)
				}
				if room < r.Job.Pods {
					t.Fatalf("seed %d: %s is to start in %s by %s, where %d of %d Pods are known to fit then", seed, r.Job.Key.Name, worker, r.Start, room, r.Job.Pods)
				}
			}
		}
		simulate(f, endless(someJobs(f.rand, 80, 1)), q, 1000*time.Hour)
	}
	if told < 1000 || untold < 1000 {
		t.Errorf("%d reservations with a time, and %d without, show little", told, untold)
	}
}

// The first Job of the line starts soon, though nobody can say when: its worker is left to it until
// those have ended that ran there, or once as long again.
func TestNobodyStarvesWithoutATime(t *testing.T) {
	const longest = 310 * time.Second // of someJobs
	timeless := 0
	for seed := range uint64(seeds) {
		f, q := someFleet(seed), &lineQueue{}
		var first *waiting.Job
		var since time.Time
		q.checked = func(f *fleet) {
			for job := range q.Jobs() {
				if job.Needs.Len() == 0 {
					continue // it's too wide for each worker
				}
				if job != first {
					first, since = job, f.now
				}
				if r := q.Reservation(job); r != nil && r.Start.IsZero() {
					timeless++
				}
				if waits := f.now.Sub(since); waits > 2*longest {
					t.Fatalf("seed %d: %s is the first for %s", seed, job.Key.Name, waits)
				}
				return
			}
		}
		simulate(f, endless(someJobs(f.rand, 300, 1)), q, 1000*time.Hour)
	}
	if timeless < 1000 {
		t.Errorf("%d reservations without a time show little", timeless)
	}
}

// A Job starts after one of higher priority that waits and fits in the same worker alone.
func TestPrioritiesAreNotInverted(t *testing.T) {
	for seed := range uint64(seeds) {
		f := someFleet(seed)
		jobs := someJobs(f.rand, 60, 3)
		for _, job := range jobs {
			// all alike, and nobody knows how long they run
			job.Pods, job.Shape, job.Runtime = 1, shapeOf("2"), 0
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

// The same Jobs in the same workers start at the same times in the same places, and are promised
// the same.
func TestSameJobsGoTheSameWay(t *testing.T) {
	story := func(seed uint64) string {
		f, q, told := someFleet(seed), &lineQueue{}, &strings.Builder{}
		q.checked = func(f *fleet) {
			for _, w := range f.workers {
				if r := q.Reservations()[w.name]; r != nil {
					fmt.Fprintln(told, f.now, w.name, "is reserved for", r.Job.Key.Name, "at", r.Start, r.Certain)
				}
			}
		}
		simulate(f, someJobs(f.rand, 80, 3), q, 1000*time.Hour)
		for _, job := range f.started {
			fmt.Fprintln(told, job.start, job.Key.Name, "in", job.on.name)
		}
		return told.String()
	}
	for seed := range uint64(seeds) {
		if first, again := story(seed), story(seed); first != again {
			t.Fatalf("seed %d: %s\nand then\n%s", seed, first, again)
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
			var all []string
			for _, w := range f.workers {
				all = append(all, w.name)
			}
			line.Walk(f.now, freed(all...), f)
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

// A reservation doesn't move to a later time, as long as everything ends when it was expected to
// and nobody comes who goes before.
func TestReservationsAreSteady(t *testing.T) {
	kept, sooner := 0, 0
	for seed := range uint64(seeds) {
		f, q := someFleet(seed), &lineQueue{}
		known := map[types.NamespacedName]time.Time{}
		q.checked = func(*fleet) {
			for worker, r := range q.Reservations() {
				before, had := known[r.Job.Key]
				switch {
				case had && r.Start.After(before):
					t.Fatalf("seed %d: %s was to start in %s by %s, and now by %s", seed, r.Job.Key.Name, worker, before, r.Start)
				case had && r.Start.Before(before):
					sooner++
				case had:
					kept++
				}
				known[r.Job.Key] = r.Start
			}
		}
		simulate(f, someJobs(f.rand, 80, 1), q, 1000*time.Hour)
	}
	if kept < 1000 || sooner < 100 {
		t.Errorf("%d reservations that were kept, and %d that came sooner, show little", kept, sooner)
	}
}

// When a Job starts, no Job that goes before it waits for the same room: either that one doesn't
// fit there, or the room is reserved for one that goes before both.
func TestOnlyWhatCannotGoIsPassed(t *testing.T) {
	type pass struct {
		job, other *waiting.Job
		in         string
	}
	passed := 0
	for seed := range uint64(seeds) {
		f, q := someFleet(seed), &lineQueue{}
		var fitting []pass // to be explained by the reservations that the same walk makes
		f.starts = func(job *simJob, w *simWorker) {
			for other := range q.Jobs() {
				if waiting.Compare(other, &job.Job) >= 0 {
					break
				}
				if passed++; w.fits(other) && f.jobs[other.Key].start.IsZero() {
					fitting = append(fitting, pass{&job.Job, other, w.name})
				}
			}
			if !q.walking {
				q.checked(f)
			}
		}
		q.checked = func(*fleet) {
			for _, p := range fitting {
				if r := q.Reservations()[p.in]; r == nil || waiting.Compare(r.Job, p.other) >= 0 {
					t.Fatalf("seed %d: %s started in %s before %s, which fits there", seed, p.job.Key.Name, p.in, p.other.Key.Name)
				}
			}
			fitting = nil
		}
		simulate(f, someJobs(f.rand, 80, 3), q, 1000*time.Hour)
	}
	if passed < 1000 {
		t.Errorf("%d Jobs that were passed show little", passed)
	}
}
