package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/memstats"
	"github.com/jobferry/jobferry/e2e/rig"
)

// resident is what a manager took to get in control, and what it holds then.
type resident struct {
	heap, peak              int64
	goroutines              int
	control, cpu            time.Duration
	hubWrites, workerWrites int
}

// resident starts a manager with so many Jobs, and ends it.
func (s *scale) resident(ctx context.Context, live, finished int) (r resident, err error) {
	if err := s.fill(ctx, live, finished); err != nil {
		return r, err
	}
	began, workers := time.Now(), s.workerWrites()
	m, err := s.start(0)
	if err != nil {
		return r, err
	}
	err = m.whileRuns(ctx, func(ctx context.Context) error {
		if err := s.readUsage(ctx, m, &r, began); err != nil {
			return err
		}
		if err := s.readMemory(ctx, m, &r, fmt.Sprintf("heap-%d-%d-live-%d-finished", s.probes, live, finished)); err != nil {
			return err
		}
		written, err := s.hubWrites(began)
		// one for the Job of inControl
		r.hubWrites, r.workerWrites = len(written), s.workerWrites()-workers-1
		for _, w := range written[:min(10, len(written))] {
			s.options.Progress("written: %s %s", w.Verb, w.URI)
		}
		return err
	})
	s.options.Progress("%d live, %d finished: in control after %s, %s of CPU, heap %d MB, peak %d MB, %d goroutines, %d writes to the hub and %d to workers",
		live, finished, r.control, r.cpu, r.heap/1e6, r.peak/1e6, r.goroutines, r.hubWrites, r.workerWrites)
	return r, err
}

// readUsage waits until a manager, which began at a time, is in control and at rest, and reads what
// that took.
func (s *scale) readUsage(ctx context.Context, m *manager, r *resident, began time.Time) error {
	at, err := s.inControl(ctx)
	if err != nil {
		return err
	}
	r.control = at.Sub(began)
	if err := s.awaitRest(ctx, m); err != nil {
		return err
	}
	usage, err := m.Usage()
	r.peak, r.cpu = usage.PeakRSS, usage.CPU
	return err
}

// readMemory reads what a manager says of its memory, and what was taken from the system for it,
// and saves the profile of its heap, if profiles are wanted.
func (s *scale) readMemory(ctx context.Context, m *manager, r *resident, profile string) error {
	stats, err := memstats.Read(ctx, m.profiles)
	if err != nil {
		return err
	}
	r.heap = stats["HeapAlloc"]
	if r.goroutines, err = memstats.Goroutines(ctx, m.profiles); err != nil {
		return err
	}
	s.options.Progress("allocated so far %d MB in %d objects, %d collections; of the system: heap %d MB, stacks %d MB, collector %d MB, other %d MB",
		stats["TotalAlloc"]/1e6, stats["Mallocs"], stats["NumGC"], stats["HeapSys"]/1e6, stats["Stack"]/1e6, stats["GCSys"]/1e6, stats["OtherSys"]/1e6)
	if s.options.Profiles == "" {
		return nil
	}
	from, err := m.profilesOf()
	if err != nil {
		return err
	}
	return saveProfile(ctx, filepath.Join(s.options.Profiles, profile), from, "heap", 0)
}

// inControl submits a Job, and says when a worker has started it.
func (s *scale) inControl(ctx context.Context) (time.Time, error) {
	s.probes++
	name := fmt.Sprintf("%s%d", controlPrefix, s.probes)
	if _, err := s.hub.create(ctx, 1, scaleNamespace, []string{name}, dispatched); err != nil {
		return time.Time{}, err
	}
	seen, err := s.seen.await(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	return seen[0].at, nil
}

// controlPrefix is that of the Jobs that show whether a manager is in control.
const controlPrefix = "control-"

const (
	// restMost is what a manager uses of a core at rest, and restEach what it uses more for each
	// worker, which it probes.
	restMost, restEach = 30 * time.Millisecond, time.Millisecond
	// restAfter is how long a manager may take until it's at rest: the result says if something was
	// measured without.
	restAfter = 2 * time.Minute
)

// awaitRest returns when a manager is at rest, or has had the time for it.
func (s *scale) awaitRest(ctx context.Context, m *manager) error {
	const calm = 3
	most, last := restMost+time.Duration(s.options.Workers)*restEach, time.Duration(0)
	for quiet, began := 0, time.Now(); quiet < calm; {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		usage, err := m.Usage()
		if err != nil {
			return err
		}
		used := usage.CPU - last
		if quiet++; used > most {
			quiet = 0
		}
		if time.Since(began) > restAfter {
			s.options.Progress("not at rest after %s: it used %s of CPU in the last second, where %s are at rest", restAfter, used, most)
			s.result.NotAtRest = true
			return nil
		}
		last = usage.CPU
	}
	return nil
}

// hubWrites are the manager's since a time, but for its Lease, the Jobs of inControl, and the
// numbers of the workers that these run on.
func (s *scale) hubWrites(since time.Time) ([]rig.Request, error) {
	all, err := requestsOf(managerUser, s.hub)
	counted := s.seen.workers(controlPrefix)
	return audit.Select(all, audit.Between(since, time.Now()), func(r rig.Request) bool {
		reads := r.Verb == "get" || r.Verb == "list" || r.Verb == "watch"
		about := r.Object.Resource == "leases" || r.Object.Resource == "events" && r.Object.Namespace == managerNamespace
		return !reads && !about && !counted[r.Object.Name] && !strings.HasPrefix(r.Object.Name, controlPrefix)
	}), err
}

// workerWrites counts those to all workers so far, but for the Leases of the fence and of the
// writer.
func (s *scale) workerWrites() (n int) {
	for _, c := range s.workers {
		for kind, count := range c.AllRequests() {
			verb, of, _ := strings.Cut(kind, " ")
			isLease := strings.HasPrefix(of, "jobferry-fence-") || strings.HasPrefix(of, "jobferry-writer-")
			if verb != "get" && verb != "watch" && !isLease {
				n += count
			}
		}
	}
	return n
}
