package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Whichever write of a manager is its last one, and whether or not it arrives, the next manager
// brings the Job to the same end, and creates no mirror more.
func TestKilledAtAnyWrite(t *testing.T) {
	for _, done := range []bool{false, true} {
		disturb(t, func(n int) kill { return kill{at: n, done: done} })
	}
}

// Whichever write conflicts with one of somebody else, the Job comes to the same end.
func TestConflictOnAnyWrite(t *testing.T) {
	disturb(t, func(n int) kill { return kill{at: n, conflicts: true} })
}

// disturb plays each story once for each write of the manager, which is disturbed.
func disturb(t *testing.T, at func(n int) kill) {
	t.Helper()
	for _, s := range stories {
		want := newWorld(t)
		s.play(want)
		for n := 1; n <= want.writes; n++ {
			w := newWorld(t)
			w.kill = at(n)
			s.play(w)
			if w.writes < n {
				w.fail("%s: there is no write %d", s.name, n)
			}
			if w.state() != want.state() {
				w.fail("%s, write %d: %+v\nends as:\n%swant:\n%s", s.name, n, w.kill, w.state(), want.state())
			}
			for name, v := range w.workers {
				if got, most := v.api.created, want.worker(name).api.created; got > most {
					w.fail("%s, write %d: %d mirrors were created in %s, want %d", s.name, n, got, name, most)
				}
			}
		}
	}
}

// state says where the Job and its mirrors are.
func (w *world) state() string {
	var b strings.Builder
	for _, job := range w.hub.jobs {
		fmt.Fprintf(&b, "hub: %s on %q, from %q, finalizers %v\n", jobState(job),
			hubstate.Get(job, hubstate.Cluster), hubstate.Get(job, hubstate.MovedFrom), job.Finalizers)
	}
	for _, name := range slices.Sorted(maps.Keys(w.workers)) {
		for _, m := range w.workers[name].api.jobs {
			fmt.Fprintf(&b, "%s: %s of %s, parallelism %d\n", name, jobState(m), mirror.HubUID(m), *m.Spec.Parallelism)
		}
	}
	return b.String()
}

func jobState(job *batchv1.Job) string {
	text := fmt.Sprintf("%d active, %d succeeded", job.Status.Active, job.Status.Succeeded)
	if mirror.Suspended(job) {
		text += ", suspended"
	}
	if job.DeletionTimestamp != nil {
		text += ", being deleted"
	}
	if mirror.Finished(job) {
		text += ", finished"
	}
	return text
}
