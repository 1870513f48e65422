package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
)

// The results of an attempt to place a Job, as kube-scheduler calls them.
const (
	scheduled     = "scheduled"
	unschedulable = "unschedulable"
	failed        = "error"
)

func resultOf(written bool) string {
	if written {
		return scheduled
	}
	return failed
}

// obstacleKind is why a worker can't take a Job: the manager's filter, and the scheduler's plugin
// if it comes from one. There are few.
type obstacleKind struct {
	reason placement.Reason
	plugin string
}

// obstacleKinds counts the workers that couldn't take a Job by why.
func obstacleKinds(d placement.Decision) map[obstacleKind]int {
	kinds := map[obstacleKind]int{}
	for i := range d.Rejections {
		kinds[obstacleKind{d.Rejections[i].Reason, d.Rejections[i].Plugin}]++
	}
	return kinds
}

// countAttempt counts an attempt to place a Job.
func countAttempt(result string, took time.Duration) {
	placementAttempts.WithLabelValues(result).Inc()
	attemptDuration.WithLabelValues(result).Observe(took.Seconds())
}

// unscheduled counts an attempt that found no place, and remembers why.
func (t *turn) unscheduled(took time.Duration, d placement.Decision) {
	countAttempt(unschedulable, took)
	kinds := obstacleKinds(d)
	for kind, n := range kinds {
		rejectionsTotal.WithLabelValues(string(kind.reason), kind.plugin).Add(float64(n))
	}
	t.record.update(func(m *memory) { m.obstacles = slices.Collect(maps.Keys(kinds)) })
}

// unschedulable counts the Jobs that wait for a worker, by why.
func (s *store) unschedulable() map[obstacleKind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[obstacleKind]int{}
	for key := range s.waiting {
		r := s.records[key]
		if r == nil || r.indexed.Value().names != "" {
			continue // it runs, and waits for more room
		}
		for _, kind := range r.obstacles {
			counts[kind]++
		}
	}
	return counts
}

// countWait counts a Job that goes for the first time, and whether that is as soon as was expected.
func countWait(class string, r *waiting.Reservation, age time.Duration, now time.Time) {
	pendingDuration.WithLabelValues(class).Observe(age.Seconds())
	if r == nil || r.First.IsZero() {
		return
	}
	result := "missed"
	if expected := r.First.Sub(r.Told); !now.After(r.First.Add(expected / 10)) {
		result = "kept"
	}
	reservationsTotal.WithLabelValues(result).Inc()
}

// attempts are made for one generation of a hub Job, and in a shard's worker for one form of the
// shard.
type attempts struct {
	dispatch.Attempts
	wanted string
}

// of returns the attempts for the hub Job, or the shard, as it is.
func (a attempts) of(s *dispatch.Snapshot, now time.Time) dispatch.Attempts {
	if a.wanted != wanted(s) {
		return dispatch.Attempts{}
	}
	return a.UnlessExpired(now)
}

// next counts one more.
func (a attempts) next(s *dispatch.Snapshot, now time.Time) attempts {
	return attempts{a.of(s, now).Next(now), wanted(s)}
}

// countPatch counts a patch of the mirror in a worker.
func (t *turn) countPatch(w worker, now time.Time) {
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.patches = m.patches.next(t.Snapshot, now) })
}

// wanted names what a mirror is to be. The hub changes a shard without a new generation of its Job.
func wanted(s *dispatch.Snapshot) string {
	text := strconv.FormatInt(s.Job.Generation, 10)
	if s.Part != nil {
		text += fmt.Sprintf("/%s/%d", s.Part.Asked(), s.Part.Parallelism)
	}
	return text
}
