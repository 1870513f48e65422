package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/memstats"
	"github.com/jobferry/jobferry/e2e/rig"
)

// resident is what a manager took to get in control, and what it holds then.
type resident struct {
	heap, peak              int64
	control, cpu            time.Duration
	hubWrites, workerWrites int
}

// resident starts a manager with so many Jobs, and ends it.
func (s *scale) resident(ctx context.Context, live, finished int) (_ resident, err error) {
	var r resident
	if err := s.fill(ctx, live, finished); err != nil {
		return r, err
	}
	workers := s.workerWrites()
	began := time.Now()
	m, err := s.start(0)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	ctx, cancel := m.whileRuns(ctx)
	defer cancel()
	at, err := s.inControl(ctx)
	if err != nil {
		return r, err
	}
	r.control = at.Sub(began)
	if err := awaitRest(ctx, m); err != nil {
		return r, err
	}
	usage, err := m.usage()
	if err != nil {
		return r, err
	}
	r.peak, r.cpu = usage.PeakRSS, usage.CPU
	stats, err := memstats.Read(ctx, s.profiles[0])
	if err != nil {
		return r, err
	}
	r.heap = stats["HeapAlloc"]
	written, err := s.hubWrites(began)
	r.hubWrites, r.workerWrites = len(written), s.workerWrites()-workers-1 // one for the Job of inControl
	for i, w := range written {
		if i < 10 {
			s.options.Progress("needless: %s %s", w.Verb, w.URI)
		}
	}
	s.options.Progress("%d live, %d finished: in control after %s, %s of CPU, heap %d MB, peak %d MB, %d and %d needless writes",
		live, finished, r.control, r.cpu, r.heap/1e6, r.peak/1e6, r.hubWrites, r.workerWrites)
	return r, err
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

// awaitRest returns when a manager is at rest.
func awaitRest(ctx context.Context, m *manager) error {
	const rest, calm = 30 * time.Millisecond, 3
	last := time.Duration(0)
	for quiet := 0; quiet < calm; {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		usage, err := m.usage()
		if err != nil {
			return err
		}
		if quiet++; usage.CPU-last > rest {
			quiet = 0
		}
		last = usage.CPU
	}
	return nil
}

// hubWrites are the manager's since a time, but for its Lease, the Jobs of inControl, and the numbers of
// the workers that these run on.
func (s *scale) hubWrites(since time.Time) ([]rig.Request, error) {
	all, err := managerRequests(s.hub)
	counted := s.seen.workers(controlPrefix)
	return audit.Select(all, audit.Between(since, time.Now()), func(r rig.Request) bool {
		reads := r.Verb == "get" || r.Verb == "list" || r.Verb == "watch"
		about := r.Object.Resource == "leases" || r.Object.Resource == "events" && r.Object.Namespace == managerNamespace
		return !reads && !about && !counted[r.Object.Name] && !strings.HasPrefix(r.Object.Name, controlPrefix)
	}), err
}

// workerWrites counts those to all workers so far, but for the fence's Leases.
func (s *scale) workerWrites() (n int) {
	for _, c := range s.workers {
		for kind, count := range c.AllRequests() {
			verb, of, _ := strings.Cut(kind, " ")
			if verb != "get" && verb != "watch" && !strings.HasPrefix(of, "jobferry-fence-") {
				n += count
			}
		}
	}
	return n
}
