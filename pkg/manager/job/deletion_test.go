package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

const (
	foreground = metav1.DeletePropagationForeground
	background = metav1.DeletePropagationBackground
	orphaning  = metav1.DeletePropagationOrphan
)

// The hub's garbage collector removes the finalizer that shows the policy at once.
func TestDeletionIsObserved(t *testing.T) {
	there := onWorker("one", "a")
	deleted := func(finalizers ...string) *batchv1.Job {
		job := there.DeepCopy()
		job.DeletionTimestamp, job.Finalizers = ptr.To(metav1.NewTime(noon)), finalizers
		return job
	}
	inForeground, orphaned := deleted(metav1.FinalizerDeleteDependents), deleted(metav1.FinalizerOrphanDependents)
	for name, row := range map[string]struct {
		seen []*batchv1.Job
		want metav1.DeletionPropagation
	}{
		"not deleted":                        {[]*batchv1.Job{there}, ""},
		"in the background":                  {[]*batchv1.Job{there, deleted()}, background},
		"in the foreground":                  {[]*batchv1.Job{there, inForeground, deleted()}, foreground},
		"orphaning":                          {[]*batchv1.Job{there, orphaned, deleted()}, orphaning},
		"orphaning, and again":               {[]*batchv1.Job{there, orphaned, deleted(), deleted()}, orphaning},
		"then in the foreground":             {[]*batchv1.Job{there, deleted(), inForeground, deleted()}, foreground},
		"nobody saw how":                     {[]*batchv1.Job{deleted()}, foreground},
		"nobody saw how, then in background": {[]*batchv1.Job{deleted(), deleted()}, foreground},
		"seen orphaning at first":            {[]*batchv1.Job{orphaned, deleted()}, orphaning},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(line.NewRuntimes())
			for _, job := range row.seen {
				s.observe(job, noon)
			}
			if got := s.open(keyOf(there)).read(noon).deletion; got != row.want {
				t.Errorf("deleted %q, want %q", got, row.want)
			}
		})
	}
}

// The first that is seen of a deletion is the answer to a write.
func TestDeletionIsNoEcho(t *testing.T) {
	s := newStore(line.NewRuntimes())
	job := onWorker("one", "a")
	s.observe(job, noon)
	job = job.DeepCopy()
	job.ResourceVersion, job.DeletionTimestamp, job.Finalizers = "12", ptr.To(metav1.NewTime(noon)), []string{"example.org/mine"}
	s.open(keyOf(job)).wrote(job, noon)
	if echo, _ := s.observe(job, noon); echo {
		t.Error("the deletion is taken for an echo")
	}
}

// The metrics count the Pods that run when their Job is deleted: nobody writes its account again.
func TestPodsOfADeletedJobCount(t *testing.T) {
	w := newWorld(t)
	runs(w)
	hubstate.Set(w.hub.jobs[jobKey], hubstate.Changes{hubstate.Usage: `[{"worker":"a","uid":"u","seconds":5,"pods":2,"since":1000,"at":1060}]`})
	used := func() float64 {
		return counted(t, "jobferry_usage_resource_seconds_total", jobKey.Namespace, "pods", "a")
	}
	before := used()
	w.deletes(background)
	w.deliver()
	w.step(time.Second)
	if got := used() - before; got != 120 {
		w.fail("%v Pod-seconds were counted, want 120", got)
	}
}

// In the foreground, the hub Job is there until its Pods are gone. Otherwise it goes with its
// mirror.
func TestMirrorIsDeletedAsItsJob(t *testing.T) {
	for policy, want := range map[metav1.DeletionPropagation]string{
		foreground: "a: delete", background: "a: delete Background", orphaning: "a: delete Orphan",
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			w.worker("a").idle = true // its Pods, and its garbage collector, take their time
			line := len(w.log)
			w.deletes(policy)
			w.deliver()
			w.step(time.Second)
			if got := w.since(line); len(got) == 0 || got[0] != want {
				w.fail("the manager did %q, want %q first", got, want)
			}
			if gone := w.hub.jobs[jobKey] == nil; gone != (policy == background) {
				w.fail("the hub Job is gone: %v", gone)
			}
			w.worker("a").idle = false
			w.step(time.Second)
			if w.hub.jobs[jobKey] != nil || w.worker("a").api.jobs[jobKey] != nil {
				w.fail("left: %s", w.state())
			}
		})
	}
}

// A finished Job waits for no worker. When the hub says that it's gone, its mirror is deleted in
// the same way, and nobody is asked whether it is.
func TestMirrorOfAFinishedJobIsDeletedAsItsJob(t *testing.T) {
	for policy, want := range map[metav1.DeletionPropagation]string{
		foreground: "a: delete", background: "a: delete Background", orphaning: "a: delete Orphan",
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			w.worker("a").completes(3)
			w.step(time.Second)
			if job := w.hub.jobs[jobKey]; job == nil || len(job.Finalizers) > 0 {
				w.fail("the Job has a finalizer: %v", job)
			}
			line := len(w.log)
			w.refuses = func(sent write) error {
				if sent.server == "hub" && sent.verb == "get" {
					w.fail("the manager asks the hub")
				}
				return nil
			}
			w.deletes(policy)
			w.deliver()
			w.step(time.Second)
			if got := w.since(line); !slices.Equal(got, []string{want}) {
				w.fail("the manager did %q, want %q", got, want)
			}
			if w.hub.jobs[jobKey] != nil || w.worker("a").api.jobs[jobKey] != nil {
				w.fail("left: %s", w.state())
			}
		})
	}
}

// A manager that starts while a Job is being deleted doesn't know how.
func TestDeletedWhileNoManagerRan(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.deletes(background)
	w.start()
	line := len(w.log)
	w.step(time.Second)
	if got := w.since(line); !slices.Contains(got, "a: delete") {
		w.fail("the manager did %q", got)
	}
}

// The cache shows a deletion before the watch's handler has seen how the Job is deleted: until
// then, nothing is done.
func TestDeletionInTheCacheOnly(t *testing.T) {
	w := newWorld(t)
	runs(w)
	before := w.seen[jobKey]
	w.deletes(orphaning)
	shown := w.hub.jobs[jobKey].DeepCopy()
	w.hub.collectGarbage()
	w.seen[jobKey] = w.hub.jobs[jobKey].DeepCopy()
	line := len(w.log)
	w.triggers.Enqueue(jobKey)
	w.run()
	if got := w.since(line); len(got) > 0 {
		w.fail("the manager did %q", got)
	}
	for _, after := range []*batchv1.Job{shown, w.seen[jobKey]} {
		w.triggers.jobEvents().Update(w.Context(), event.TypedUpdateEvent[*batchv1.Job]{ObjectOld: before, ObjectNew: after}, nil)
	}
	w.step(time.Second)
	if got := w.since(line); len(got) == 0 || got[0] != "a: delete Orphan" {
		w.fail("then the manager did %q", got)
	}
}

// A worker refuses to delete a mirror, until that has ended: then it goes with its end, which its
// Job doesn't show any more.
func TestAMirrorEndsBeforeItMayBeDeleted(t *testing.T) {
	w := newWorld(t)
	a := w.worker("a")
	runs(w)
	refused := true
	w.refuses = func(sent write) error {
		if refused && sent.server == "a" && sent.verb == "delete" {
			return apierrors.NewForbidden(jobsResource, "train", errors.New("a policy"))
		}
		return nil
	}
	w.deletes(background)
	w.step(time.Second)
	a.completes(3)
	w.step(10 * time.Second)
	refused = false
	w.step(20 * time.Second)
	if w.hub.jobs[jobKey] != nil || a.api.jobs[jobKey] != nil {
		w.fail("it's still there\n%s", w.state())
	}
}

// Somebody took our finalizer from a Job that is being deleted, and another's holds it: its mirror
// goes all the same.
func TestADeletedJobWithoutOurFinalizer(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.worker("a").disconnects()
	w.edits("has another finalizer", func(job *batchv1.Job) { job.Finalizers = append(job.Finalizers, "example.org/hold") })
	w.deletes(background)
	w.edits("loses ours", func(job *batchv1.Job) { job.Finalizers = []string{"example.org/hold"} })
	w.step(time.Second)
	w.worker("a").isBack()
	w.step(time.Minute)
	if w.worker("a").api.jobs[jobKey] != nil {
		w.fail("the mirror runs on\n%s", w.state())
	}
	w.edits("is let go", func(job *batchv1.Job) { job.Finalizers = nil })
	w.step(time.Minute)
	if len(w.store.records) > 0 {
		t.Errorf("%d records are left", len(w.store.records))
	}
}

// A Job that somebody made from an export of one of ours, but without managedBy, can be deleted.
func TestAnExportWithoutItsManagerIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train", func(job *batchv1.Job) {
		job.Spec.ManagedBy, job.Finalizers = nil, []string{v1alpha1.FinalizerMirror, "example.org/theirs"}
	}))
	w.step(time.Second)
	w.deletes(metav1.DeletePropagationBackground)
	w.step(time.Second)
	if job := w.hub.jobs[jobKey]; job == nil || !slices.Equal(job.Finalizers, []string{"example.org/theirs"}) {
		w.fail("%s", w.state())
	}
}

// A mirror that somebody deletes in the worker, such as with its namespace, isn't gone for long:
// the hub says what it waits for, suspends it with its Job, and goes elsewhere in the end.
func TestAMirrorThatIsDeletedForLong(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{"whole": aJob("train"), "divided": divisible(16, 12)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.submits(job)
			w.step(time.Second)
			w.mayRunTwice = true // it's kept for long
			w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = append(m.Finalizers, "example.org/theirs") })
			w.worker("a").loses()
			w.step(40 * time.Second)
			if !slices.ContainsFunc(w.events, func(e string) bool {
				return strings.Contains(e, "Worker a is still removing the Job: it has the finalizers example.org/theirs")
			}) {
				w.fail("the events are %q", w.events)
			}
			w.suspends()
			w.step(time.Second)
			if m := w.worker("a").api.jobs[jobKey]; !mirror.Suspended(m) {
				w.fail("it isn't suspended: %s", w.state())
			}
			w.resumes()
			w.step(2 * time.Minute)
			if shards.IsOn(w.hub.jobs[jobKey], "a") {
				w.fail("it stays: %s", w.state())
			}
		})
	}
}

// A hub Job that another's finalizer keeps shows no Pods when it has none, and what it had where
// they run on.
func TestADeletedJobThatAnothersFinalizerKeeps(t *testing.T) {
	for policy, active := range map[metav1.DeletionPropagation]int32{background: 0, foreground: 0, orphaning: 2} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			w.edits("keeps it", func(j *batchv1.Job) { j.Finalizers = append(j.Finalizers, "example.org/keeps") })
			w.step(time.Second)
			w.deletes(policy)
			w.deliver() // the garbage collector hides how
			w.step(time.Minute)
			job := w.hub.jobs[jobKey]
			if job == nil || slices.Contains(job.Finalizers, v1alpha1.FinalizerMirror) || job.Status.Active != active || ptr.Deref(job.Status.Ready, 0) != active {
				w.fail("ends as:\n%s", w.state())
			}
			if job.Status.Succeeded != 1 || w.worker("a").api.jobs[jobKey] != nil {
				w.fail("ends as:\n%s", w.state())
			}
		})
	}
}

// A worker doesn't answer whether it has a mirror that no watch shows: its Job, which is deleted,
// waits for as long as for a mirror that the worker keeps, and for no worker that it isn't placed
// on.
func TestADeletedJobWaitsForAnswersForABound(t *testing.T) {
	for name, row := range map[string]struct {
		given func(*world)
		asked string
		waits bool
		gets  int
		// queues is for how long it waits for a place.
		queues time.Duration
	}{
		"the worker fails": {given: func(*world) {}, asked: "a", waits: true, gets: 20},
		"all its places are taken": { // and who has them never gives them back
			given: func(w *world) { w.fills("a") }, asked: "a", waits: true, queues: maxPaused,
		},
		"one that had it before": {given: func(w *world) {
			w.store.open(jobKey).updateMirror("b", func(m *mirrorMemory) { m.created, m.takenBack = "uid", "why" })
		}, asked: "b", gets: 12}, // as Gone, less and less often
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			gets := 0
			w.refuses = func(sent write) error {
				if sent.server == row.asked && sent.verb == "get" {
					gets++
					return apierrors.NewTimeoutError("slow", 1)
				}
				return nil
			}
			delete(w.worker("a").api.jobs, jobKey)
			row.given(w)
			w.deletes(background)
			w.step(time.Second)
			if waits := w.hub.jobs[jobKey] != nil; waits != row.waits {
				w.fail("it waits: %v:\n%s", waits, w.state())
			}
			if w.step(row.queues); (w.hub.jobs[jobKey] != nil) != row.waits {
				w.fail("it waits no longer:\n%s", w.state())
			}
			w.step(2 * time.Minute)
			if w.hub.jobs[jobKey] != nil || gets > row.gets {
				w.fail("it's left, or its worker was asked %d times:\n%s", gets, w.state())
			}
			told := slices.ContainsFunc(w.events, func(e string) bool {
				return strings.Contains(e, "NotReleased: Worker a hasn't answered whether it has the Job team/train within 1m30s")
			})
			if told != row.waits {
				w.fail("events %q", w.events)
			}
		})
	}
}

// A deleted Job waits for a place of its worker for longer than the worker may take: then it asks
// the worker all the same, which isn't said to be late.
func TestNoWorkerIsLateForADeletedJobThatWaitsForAPlace(t *testing.T) {
	for name, marks := range map[string]func(*batchv1.Job){
		"the mirror is shown": func(*batchv1.Job) {},
		"it isn't":            func(m *batchv1.Job) { delete(m.Labels, v1alpha1.LabelOrigin) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			w.worker("a").api.change(jobKey, marks)
			w.fills("a")
			w.deletes(background)
			w.step(5 * time.Minute)
			if w.hub.jobs[jobKey] == nil || w.worker("a").api.jobs[jobKey] == nil {
				w.fail("it doesn't wait:\n%s", w.state())
			}
			w.limiter.release("a")
			w.step(time.Minute)
			if w.hub.jobs[jobKey] != nil || w.worker("a").api.jobs[jobKey] != nil {
				w.fail("it's left:\n%s", w.state())
			}
			if slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "hasn't") }) {
				w.fail("events %q", w.events)
			}
		})
	}
}

// All places are taken of a worker that a deleted Job isn't placed on, and from which a mirror is
// taken back: the Job doesn't wait for it, and the mirror is deleted once there's a place.
func TestAMirrorThatIsTakenBackFromABusyWorkerIsDeleted(t *testing.T) {
	w := newWorld(t)
	runs(w)
	b := w.worker("b")
	left := aJob("train", func(m *batchv1.Job) { m.Spec.Suspend = ptr.To(true) })
	if err := b.api.create(left); err != nil {
		t.Fatal(err)
	}
	w.store.open(jobKey).updateMirror("b", func(m *mirrorMemory) { m.created, m.takenBack = left.UID, "why" })
	w.fills("b")
	w.deletes(background)
	w.step(time.Minute)
	if w.hub.jobs[jobKey] != nil || b.api.jobs[jobKey] == nil {
		w.fail("it waits:\n%s", w.state())
	}
	for range w.options.WorkerConcurrency {
		w.limiter.release("b")
	}
	w.step(time.Minute)
	if b.api.jobs[jobKey] != nil || len(w.store.records) > 0 {
		w.fail("left with %d records:\n%s", len(w.store.records), w.state())
	}
}

// What a worker has that didn't answer is deleted as soon as it does, also if another's finalizer
// holds the Job until then, or for longer.
func TestAMirrorIsFoundThatItsWorkerDidntShow(t *testing.T) {
	for name, row := range map[string]struct{ isHeld, isLetGo bool }{
		"nothing holds it":             {},
		"another's finalizer holds it": {isHeld: true},
		"... for a while":              {isHeld: true, isLetGo: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			a := w.worker("a")
			a.api.change(jobKey, func(m *batchv1.Job) { delete(m.Labels, v1alpha1.LabelOrigin) })
			w.mayRunTwice = true
			w.refuses = func(sent write) error {
				if sent.server == "a" && sent.verb == "get" {
					return apierrors.NewTimeoutError("slow", 1)
				}
				return nil
			}
			if row.isHeld {
				w.edits("is held", func(job *batchv1.Job) { job.Finalizers = append(job.Finalizers, "example.org/hold") })
			}
			w.deletes(background)
			w.step(5 * time.Minute)
			job := w.hub.jobs[jobKey]
			if held := job != nil; held != row.isHeld || held && slices.Contains(job.Finalizers, v1alpha1.FinalizerMirror) || a.api.jobs[jobKey] == nil {
				w.fail("ends as:\n%s", w.state())
			}
			if len(w.store.unreleased()["a"]) == 0 {
				w.fail("nobody knows that the worker owes a mirror")
			}
			letGo := func() { w.edits("is let go", func(job *batchv1.Job) { job.Finalizers = nil }) }
			if row.isLetGo {
				letGo()
				w.step(time.Minute)
			}
			w.refuses = nil
			w.step(10 * time.Minute)
			if a.api.jobs[jobKey] != nil || len(w.store.unreleased()) > 0 {
				w.fail("left, or owed: %v:\n%s", w.store.unreleased(), w.state())
			}
			if row.isHeld && !row.isLetGo {
				letGo()
				w.step(time.Minute)
			}
			if len(w.store.records) > 0 {
				w.fail("left with %d records:\n%s", len(w.store.records), w.state())
			}
		})
	}
}
