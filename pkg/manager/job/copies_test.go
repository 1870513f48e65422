package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// While no manager is there, the backup of a mirror is restored, and ends: that's told, and the
// copy is removed.
func TestCopiesThatNobodySaw(t *testing.T) {
	named := func(j *batchv1.Job) { j.Spec.Template.Labels = map[string]string{batchv1.JobNameLabel: "train"} }
	leaves := func(w *world) {
		w.worker("a").drains(true)
		w.step(time.Minute)
	}
	for name, row := range map[string]struct {
		job   *batchv1.Job
		given func(*world)
		as    string
		told  string
		stays bool
	}{
		"its Job has finished":  {job: aJob("train"), given: func(w *world) { w.worker("a").completes(4) }, told: "MirrorStopped: The Job has finished, but worker a"},
		"its shard has left":    {job: divisible(12, 8), given: leaves, told: "MirrorStopped: Worker a has a mirror"},
		"its Job has moved":     {job: aJob("train"), given: leaves, told: "MirrorStopped: Worker a has a mirror"},
		"its shard has settled": {job: divisible(12, 12), given: func(w *world) { w.worker("a").finishes(8) }, told: "MirrorRecreated: Worker a has another Job", stays: true},
		"under another name":    {job: aJob("train", named), given: func(*world) {}, as: "again", told: "MirrorStopped: Worker a has a mirror of the Job under another name, again"},
		"under another name, its Job has finished": {job: aJob("train", named), given: func(w *world) { w.worker("a").completes(4) },
			as: "again", told: "MirrorStopped: Worker a has a mirror of the Job under another name, again"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker("a")
			w.submits(row.job)
			w.step(time.Second)
			accounted(w)
			backup := a.api.jobs[jobKey].DeepCopy()
			row.given(w)
			w.step(time.Second)
			w.start()
			w.step(time.Minute)
			if text := strings.Join(w.events, "\n"); strings.Contains(text, "restored") {
				w.fail("told before: %s", text)
			}
			if a.api.jobs[jobKey] != nil && row.as == "" {
				a.expires(background)
				a.api.collectGarbage()
			}
			key := types.NamespacedName{Namespace: jobKey.Namespace, Name: jobKey.Name}
			if row.as != "" {
				key.Name = row.as
			}
			backup.Name, backup.ResourceVersion, backup.Status = key.Name, "", batchv1.JobStatus{}
			succeeds(backup)
			a.has(backup)
			w.lightly = mirror.Slim // as caches hold Jobs that have ended
			w.start()
			w.step(time.Minute)
			if !slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, row.told) }) {
				w.fail("events %q", w.events)
			}
			if is := a.api.jobs[key] != nil; is != row.stays {
				w.fail("the copy is there: %v\n%s", is, w.state())
			}
		})
	}
}

// succeeds has a mirror be complete, whatever it was to run.
func succeeds(m *batchv1.Job) {
	m.Status.Succeeded = *m.Spec.Completions
	m.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
}

// A mirror that has ended with its Job stays, whatever its Job had in the worker before.
func TestAMirrorThatEndedIsNoCopy(t *testing.T) {
	w := newWorld(t)
	runs(w)
	accounted(w)
	w.worker("a").expires(background)
	w.step(time.Minute)
	w.worker("a").completes(4)
	w.step(time.Minute)
	w.start()
	w.step(time.Minute)
	if !mirror.Finished(w.hub.jobs[jobKey]) || w.worker("a").api.jobs[jobKey] == nil || slices.Contains(reasons(w.events), v1alpha1.EventMirrorStopped) {
		w.fail("events %q\n%s", w.events, w.state())
	}
}
