package job

import (
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// putsBack has the hub's etcd be as it was in a backup.
func (w *world) putsBack(backup *batchv1.Job) {
	w.logf("admin", "puts the hub's etcd back")
	w.hub.jobs[jobKey] = backup.DeepCopy()
	w.hub.version, _ = strconv.Atoi(backup.ResourceVersion)
}

// isPutBack does so, and a new manager takes over in the workers.
func (w *world) isPutBack(backup *batchv1.Job) {
	w.putsBack(backup)
	for _, v := range w.workers {
		v.view.Writer.TookOver = true
	}
	w.start()
}

// The hub's etcd is put back to before the Job was placed, or moved, or divided so far: it goes on
// where it is, and nothing of it runs twice.
func TestTheHubForgetsAPlacement(t *testing.T) {
	finish := func(w *world) { w.worker("a").finishes(4); w.worker("b").finishes(3) }
	for name, row := range map[string]struct {
		job      *batchv1.Job
		embedded []string
		// placed: the backup is made when the Job is placed, and b is drained until then.
		placed bool
		since  func(*world)
	}{
		"placed since":               {job: aJob("train"), since: func(w *world) { w.worker("a").completes(1) }},
		"placed and moved since":     {job: aJob("train"), since: goesToB},
		"moved since":                {job: aJob("train"), placed: true, since: goesToB},
		"divided since":              {job: divisible(40, 16), since: finish},
		"divided since, elastic":     {job: divisible(40, 16), embedded: []string{"a", "b"}, since: finish},
		"divided and finished since": {job: divisible(40, 16), since: (*world).finishAll},
		"... elastic":                {job: divisible(40, 16), embedded: []string{"a", "b"}, since: (*world).finishAll},
		"given more since, elastic": {job: divisible(120, 60), embedded: []string{"a", "b"}, since: func(w *world) {
			for range 3 {
				w.worker("a").finishes(6)
				w.worker("b").finishes(2)
				w.step(5 * time.Second)
			}
		}},
		"divided further since":             {job: divisible(40, 16), placed: true, since: finish},
		"divided further since, half of it": {job: divisible(40, 16), placed: true, embedded: []string{"b"}, since: finish},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.isEmbedded(row.embedded...)
			w.worker("b").drains(row.placed)
			w.submits(row.job)
			backup := w.hub.jobs[jobKey]
			w.step(time.Second)
			if row.placed {
				backup = w.hub.jobs[jobKey]
				w.worker("b").drains(false)
				w.step(time.Minute)
			}
			row.since(w)
			w.step(time.Second)
			before := w.uids()
			w.isPutBack(backup)
			w.step(time.Second)
			if after := w.uids(); !slices.Equal(before, after) {
				w.fail("the mirrors were %v, and are %v", before, after)
			}
			if !shards.MayDivide(row.job) {
				on := w.worker(hubstate.Get(w.hub.jobs[jobKey], hubstate.Cluster))
				on.completes(4 - on.api.jobs[jobKey].Status.Succeeded)
				w.step(time.Second)
			} else {
				w.finishAll()
			}
			if job := w.hub.jobs[jobKey]; !mirror.Finished(job) || job.Status.Succeeded != *row.job.Spec.Completions {
				w.fail("it doesn't end as it should: %s", w.state())
			}
		})
	}
}

// The hub's etcd is put back while its manager stands still. It goes on before anything has told it
// of that, and its watch shows the earlier state: it deletes no mirror and makes none, and ends.
func TestAManagerGoesOnAsTheHubWasPutBack(t *testing.T) {
	finish := func(w *world) { w.worker("a").completes(4) }
	for name, row := range map[string]struct {
		job    *batchv1.Job
		placed bool
		since  func(*world)
	}{
		"placed since":              {job: aJob("train"), since: func(w *world) { w.worker("a").completes(1) }},
		"placed and finished since": {job: aJob("train"), since: finish},
		"moved since":               {job: aJob("train"), placed: true, since: goesToB},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.worker("b").drains(row.placed)
			w.submits(row.job)
			backup := w.hub.jobs[jobKey]
			w.step(time.Second)
			if row.placed {
				backup = w.hub.jobs[jobKey]
				w.worker("b").drains(false)
				w.step(time.Minute)
			}
			row.since(w)
			w.step(time.Second)
			before := w.uids()
			w.putsBack(backup)
			w.step(time.Minute)
			if after := w.uids(); !slices.Equal(before, after) {
				w.fail("the mirrors were %v, and are %v", before, after)
			}
			if err := w.guard.Start(t.Context()); err == nil {
				w.fail("the process doesn't end")
			}
		})
	}
}

// goesToB moves the Job from a, where one of its Pods succeeds, to b, where another does.
func goesToB(w *world) {
	w.worker("a").completes(1)
	w.worker("a").drains(true)
	w.step(time.Minute)
	w.worker("b").completes(1)
	w.worker("a").drains(false)
}

// uids are those of the Job's mirrors that aren't being deleted.
func (w *world) uids() (all []string) {
	for _, v := range w.registered() {
		if m := v.api.jobs[jobKey]; m != nil && m.DeletionTimestamp == nil {
			all = append(all, v.Name()+" "+string(m.UID))
		}
	}
	return all
}
