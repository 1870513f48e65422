package checker

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// inGroup has the Job belong to a group, and another one beside it.
func inGroup(s *story.Story) {
	s.Job.Annotations = map[string]string{v1alpha1.AnnotationGroup: "pair"}
}

// withMate adds another Job of the group, of which a Pod runs in a worker.
func (w *world) withMate(worker string) Event {
	mate := story.Story{Name: "mate", Job: &batchv1.Job{}}
	inGroup(&mate)
	r := newRecord(&mate)
	w.checker.records["mate"] = r
	w.checker.groups[mate.Group()] = append(w.checker.groups[mate.Group()], r)
	e := w.run(worker, 0)
	e.Pod = e.Pod.DeepCopy()
	e.Pod.UID, e.Pod.Name, e.Pod.Labels = "of-mate", "of-mate", map[string]string{batchv1.JobNameLabel: "mate"}
	w.stop(Event{Where: worker, Pod: e.Pod})
	w.see(Event{Where: worker, Pod: e.Pod})
	return e
}

func TestGroupsRunInOneWorker(t *testing.T) {
	for name, c := range map[string]struct {
		play func(*world)
		want []Rule
	}{
		"in one": {func(w *world) {
			w.place("fenced")
			w.run("fenced", 0)
			w.withMate("fenced")
		}, nil},
		"in two": {func(w *world) {
			w.place("fenced")
			w.run("fenced", 0)
			w.withMate("open")
		}, []Rule{Apart}},
		"one after the other": {func(w *world) {
			w.place("fenced")
			w.stop(w.run("fenced", 0))
			w.withMate("open")
		}, nil},
		"of a lost worker without a fence": {func(w *world) {
			w.place("open")
			w.fault("open", schedule.BlackHoleLink)
			w.run("open", 0)
			w.pass(time.Minute)
			w.place("fenced")
			w.withMate("fenced")
		}, nil},
		"of a Job that was deleted": {func(w *world) {
			w.place("open")
			w.run("open", 0)
			w.checker.Acted(w.at, "job", story.Delete)
			w.withMate("fenced")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, inGroup)
			c.play(w)
			var apart []Question
			for _, q := range w.questions {
				if q.Rule == Apart {
					apart = append(apart, q)
				}
			}
			w.questions = apart
			w.allRun()
			w.expect(c.want...)
		})
	}
}
