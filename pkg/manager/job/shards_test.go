package job

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// divisible is an Indexed Job that may run in all workers.
func divisible(completions, parallelism int32, changes ...func(*batchv1.Job)) *batchv1.Job {
	return aJob("train", append([]func(*batchv1.Job){func(job *batchv1.Job) {
		job.Annotations = map[string]string{v1alpha1.AnnotationMaxClusters: v1alpha1.MaxClustersAll}
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		job.Spec.Completions, job.Spec.Parallelism = ptr.To(completions), ptr.To(parallelism)
	}}, changes...)...)
}

func (w *world) isEmbedded(names ...string) {
	for _, name := range names {
		w.worker(name).view.Spec.JobController = v1alpha1.JobControllerEmbedded
	}
}

// finishAll has all Pods succeed until the Job ends.
func (w *world) finishAll() {
	w.Helper()
	for range 200 {
		if job := w.hub.jobs[jobKey]; mirror.Finished(job) {
			return
		}
		for _, v := range w.registered() {
			if !v.isAway() && len(v.running) > 0 {
				v.finishes(v.running.Len())
			}
		}
		w.step(5 * time.Second)
	}
	w.fail("the Job doesn't end: %s", w.state())
}

func (w *world) expectComplete(indexes string) {
	w.Helper()
	job := w.hub.jobs[jobKey]
	if mirror.OutcomeOf(job) != mirror.Succeeds || !mirror.Finished(job) || job.Status.CompletedIndexes != indexes {
		w.fail("the Job hasn't completed: %+v", job.Status)
	}
}

func TestDivided(t *testing.T) {
	for _, embedded := range [][]string{nil, {"a"}, {"a", "b"}} {
		w := newWorld(t)
		w.isEmbedded(embedded...)
		w.submits(divisible(40, 16))
		w.step(10 * time.Second)
		placement, err := shards.Read(w.hub.jobs[jobKey])
		if err != nil || len(placement.Shards) != 2 {
			w.fail("not divided: %v, %+v", err, placement)
		}
		if w.worker("a").running.Len()+w.worker("b").running.Len() != 16 {
			w.fail("%s and %s run", w.worker("a").running, w.worker("b").running)
		}
		w.finishAll()
		w.expectComplete("0-39")
	}
}

// A Job with little room gets many small portions. They follow one another at once: what the
// manager itself changes of a shard isn't taken for somebody in the worker changing it back.
func TestPortionsFollowOneAnother(t *testing.T) {
	for _, embedded := range [][]string{nil, {"a", "b"}} {
		w := newWorld(t)
		w.isEmbedded(embedded...)
		w.submits(divisible(120, 60))
		w.step(time.Second)
		portions := map[string]bool{}
		for range 60 {
			portions[hubstate.Get(w.hub.jobs[jobKey], hubstate.Shards)] = true
			for _, v := range w.registered() {
				v.finishes(4)
			}
			w.step(time.Second)
		}
		w.expectComplete("0-119")
		if len(portions) < 6 {
			w.fail("divided %d times only: %v", len(portions), portions)
		}
		for _, e := range w.events {
			if strings.HasPrefix(e, v1alpha1.EventDrift) || strings.HasPrefix(e, v1alpha1.EventMirrorRecreated) {
				w.fail("%s", e)
			}
		}
	}
}

// A shard whose worker is busy, or fails, delays no other: what is left to do for that is done at
// once, and tried again if it fails, too.
func TestShardWhoseWorkerFails(t *testing.T) {
	slow := apierrors.NewTimeoutError("slow", 1)
	isBusy := func(w *world) {
		for w.limiter.acquire("a", types.NamespacedName{Namespace: "team", Name: "others"}) {
		}
	}
	for name, row := range map[string]struct {
		given  func(*world)
		within time.Duration
	}{
		"busy":                           {isBusy, 0},
		"busy, and the other fails once": {func(w *world) { isBusy(w); w.refusesOnce("b create", slow) }, minRetry},
		"both fail for long, then one": {func(w *world) {
			began := w.clock.Now()
			w.refuses = func(sent write) error {
				if sent.server == "a" || sent.server == "b" && w.clock.Since(began) < time.Minute {
					return slow
				}
				return nil
			}
		}, time.Minute + maxRetry},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.given(w)
			w.submits(divisible(16, 16))
			w.step(row.within)
			if w.running("a") || !w.running("b") {
				w.fail("b doesn't run its shard:\n%s", w.state())
			}
		})
	}
}

// isDivided has a Job of 16 indexes run in both workers, 8 Pods in a and 4 in b.
func isDivided(w *world) {
	w.submits(divisible(16, 12))
	w.step(time.Second)
}

// TestDividedAtRandom plays random stories of divided Jobs: workers are lost, drained and come
// back, the manager is killed, users suspend and scale. No index runs or completes twice, never do
// more Pods run than the Job may have, and all indexes complete.
func TestDividedAtRandom(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playAtRandom(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func playAtRandom(t *testing.T, random *rand.Rand) {
	w := newWorld(t)
	w.addWorker("c", 4)
	w.worker("c").connect()
	for _, name := range []string{"a", "b", "c"} {
		if random.IntN(2) == 0 {
			w.isEmbedded(name)
		}
		w.worker(name).fenced = true
	}
	n := int32(1 + random.IntN(60))
	w.submits(divisible(n, 1+int32(random.IntN(20))))
	for range 30 {
		v := w.worker([]string{"a", "b", "c"}[random.IntN(3)])
		switch what := random.IntN(20); {
		case what < 9:
			if !v.isAway() {
				v.finishes(1 + random.IntN(4))
			}
		case what < 11:
			w.suspends()
		case what < 14:
			w.resumes()
		case what == 14:
			v.drains(!v.view.Spec.Drain)
		case what == 15 && !v.isAway():
			v.disconnects()
		case what == 16 && v.isAway():
			v.isBack()
		case what == 17:
			p := 1 + int32(random.IntN(20))
			w.edits(fmt.Sprintf("sets parallelism %d", p), func(job *batchv1.Job) { job.Spec.Parallelism = &p })
		case what == 18:
			w.killed = true
		case what == 19:
			w.step(lostAfter + time.Minute)
		}
		w.step(time.Duration(random.IntN(20)) * time.Second)
		w.checkParallelism()
	}
	for _, v := range w.registered() {
		if v.isAway() {
			v.isBack()
		}
		v.drains(false)
	}
	w.resumes()
	w.step(time.Minute)
	w.finishAll()
	w.expectComplete(intervals.Range(0, int(n)).String())
}

// The completions of an elastic Job are changed while it runs: what has completed stays, and
// nothing runs twice.
func TestDividedElastic(t *testing.T) {
	for _, embedded := range [][]string{nil, {"a", "b"}} {
		for _, completions := range []int32{14, 10} {
			w := newWorld(t)
			w.isEmbedded(embedded...)
			w.submits(divisible(12, 12))
			w.step(10 * time.Second)
			w.worker("b").finishes(2)
			w.step(10 * time.Second)
			w.edits("scales the Job", func(job *batchv1.Job) {
				job.Spec.Completions, job.Spec.Parallelism = &completions, &completions
			})
			w.step(time.Minute)
			w.checkParallelism()
			w.finishAll()
			w.expectComplete(intervals.Range(0, int(completions)).String())
		}
	}
}

// What no shard can judge alone, the hub judges, and ends all of them.
func TestDividedEnds(t *testing.T) {
	failing := func(indexes string) func(*batchv1.Job) {
		return func(m *batchv1.Job) {
			m.Status.FailedIndexes, m.Status.Failed = ptr.To(indexes), m.Status.Failed+1
		}
	}
	for name, row := range map[string]struct {
		change func(*batchv1.Job)
		then   func(*world)
		reason string
	}{
		"success policy": {
			func(job *batchv1.Job) {
				job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr.To[int32](3)}}}
			},
			func(w *world) {
				w.worker("a").finishes(2)
				w.worker("b").finishes(1)
			}, batchv1.JobReasonSuccessPolicy,
		},
		"max failed indexes": {
			func(job *batchv1.Job) {
				job.Spec.BackoffLimitPerIndex, job.Spec.MaxFailedIndexes = ptr.To[int32](0), ptr.To[int32](1)
			},
			func(w *world) {
				w.worker("a").api.change(jobKey, failing("0"))
				w.worker("b").api.change(jobKey, failing("12"))
			}, batchv1.JobReasonMaxFailedIndexesExceeded,
		},
		"backoff limit over the sum": {
			func(job *batchv1.Job) { job.Spec.BackoffLimit = ptr.To[int32](3) },
			func(w *world) {
				w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Status.Failed += 2 })
				w.worker("b").api.change(jobKey, func(m *batchv1.Job) { m.Status.Failed += 2 })
			}, batchv1.JobReasonBackoffLimitExceeded,
		},
		"a shard fails by its policy": {
			func(*batchv1.Job) {},
			func(w *world) {
				w.worker("b").api.change(jobKey, func(m *batchv1.Job) {
					m.Status.Conditions = append(m.Status.Conditions, batchv1.JobCondition{
						Type: batchv1.JobFailureTarget, Status: "True", Reason: batchv1.JobReasonPodFailurePolicy,
						LastTransitionTime: metav1.NewTime(w.clock.Now()),
					})
				})
			}, batchv1.JobReasonPodFailurePolicy,
		},
		"deadline from the first start": {
			func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) },
			func(w *world) { w.step(time.Minute) }, batchv1.JobReasonDeadlineExceeded,
		},
	} {
		for _, embedded := range [][]string{nil, {"a", "b"}} {
			t.Run(fmt.Sprint(name, embedded), func(t *testing.T) {
				w := newWorld(t)
				w.isEmbedded(embedded...)
				w.submits(divisible(16, 12, row.change))
				w.step(time.Second)
				row.then(w)
				w.step(10 * time.Second)
				job := w.hub.jobs[jobKey]
				if ending := shards.Ending(job); !mirror.Finished(job) || ending.Reason != row.reason {
					w.fail("the Job hasn't ended with %s: %+v", row.reason, job.Status)
				}
				for _, v := range w.registered() {
					if m := v.api.jobs[jobKey]; !mirror.Finished(m) || len(v.running) > 0 {
						w.fail("the shard in %s hasn't ended", v.Name())
					}
				}
			})
		}
	}
}

// A divided Job is deleted when its mirrors are gone; one that is lost isn't waited for.
func TestDividedIsDeleted(t *testing.T) {
	w := newWorld(t)
	isDivided(w)
	line := len(w.log)
	w.deletes(metav1.DeletePropagationBackground)
	w.step(time.Second)
	if w.hub.jobs[jobKey] != nil || len(w.worker("a").api.jobs)+len(w.worker("b").api.jobs) > 0 {
		w.fail("left: %s", w.state())
	}
	if got, want := w.since(line), []string{"a: delete Background", "b: delete Background", "hub: patch finalizers=[]"}; !slices.Equal(got, want) {
		w.fail("the manager did %q, want %q", got, want)
	}
}

// Each shard, rule and step of a reconcile reads what the hub's status and the mirrors' say of very
// many indexes: each text is read once.
func TestIndexesOfADividedJobAreReadOnce(t *testing.T) {
	w := newWorld(t)
	workers := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for _, name := range workers[2:] {
		w.addWorker(name, 8)
		w.worker(name).connect()
	}
	w.isEmbedded(workers...)
	const completions = 40_000
	w.submits(divisible(completions, 80))
	w.step(10 * time.Second)
	var even []int
	for i := 0; i < completions; i += 2 {
		even = append(even, i)
	}
	placement, err := shards.Read(w.hub.jobs[jobKey])
	for _, s := range placement.Shards {
		done := s.Indexes.Intersect(intervals.Of(even...))
		w.worker(s.Worker).idle = true
		w.worker(s.Worker).api.change(jobKey, func(m *batchv1.Job) {
			m.Status.CompletedIndexes, m.Status.Succeeded = done.String(), int32(done.Len())
		})
	}
	w.step(10 * time.Second)
	if shown := w.hub.jobs[jobKey].Status.Succeeded; err != nil || len(placement.Shards) != len(workers) || shown != int32(len(even)) {
		w.fail("%d shards, %d indexes are shown, %v", len(placement.Shards), shown, err)
	}
	cost := costtest.Of(func() {
		if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: jobKey}); err != nil {
			t.Error(err)
		}
	})
	if cost > 34<<20 {
		t.Errorf("a reconcile allocates %d KiB", cost>>10)
	}
}

// A shard that lies changes nothing outside of it.
func TestDividedWithALiar(t *testing.T) {
	w := newWorld(t)
	w.isEmbedded("b")
	isDivided(w)
	w.worker("b").idle = true
	w.worker("b").api.change(jobKey, func(m *batchv1.Job) {
		m.Status.CompletedIndexes, m.Status.Succeeded = "0-11", 12
		m.Annotations[v1alpha1.AnnotationIndexes], m.Annotations[v1alpha1.AnnotationIndexesObserved] = "0-15", ""
	})
	w.step(10 * time.Second)
	placement, err := shards.Read(w.hub.jobs[jobKey])
	a, _ := placement.In("a")
	completed := intervals.ParseLenient(w.hub.jobs[jobKey].Status.CompletedIndexes, 16)
	if err != nil || len(completed) == 0 || len(completed.Intersect(a.Indexes)) > 0 || a.Len() < 10 {
		w.fail("completed: %s; worker a has %s: %v", completed, a, err)
	}
}

// The mirror of a shard that ends before its shard has is replaced by one that goes on.
func TestAShardThatEndsEarly(t *testing.T) {
	w := newWorld(t)
	w.isEmbedded("a", "b")
	isDivided(w)
	w.worker("b").finishes(2)
	w.step(time.Second)
	was := w.worker("b").api.jobs[jobKey].UID
	w.worker("b").api.change(jobKey, func(m *batchv1.Job) {
		m.Status.Active, m.Status.Ready = 0, nil
		for _, is := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			m.Status.Conditions = append(m.Status.Conditions, batchv1.JobCondition{Type: is, Status: "True", Reason: batchv1.JobReasonCompletionsReached})
		}
		m.Status.CompletionTime = ptr.To(metav1.NewTime(w.clock.Now()))
	})
	w.step(time.Second)
	if is := w.worker("b").api.jobs[jobKey]; is == nil || is.UID == was {
		w.fail("the mirror stays: %s", w.state())
	}
	w.finishAll()
	w.expectComplete("0-15")
}

// A Job that is placed by another selector leaves the workers that it doesn't allow, when it can.
func TestDividedIsReselected(t *testing.T) {
	w := newWorld(t)
	w.addWorker("c", 4)
	w.worker("c").connect()
	w.worker("b").view.Labels, w.worker("c").view.Labels = map[string]string{"zone": "x"}, map[string]string{"zone": "x"}
	isDivided(w)
	w.edits("wants zone x", annotated(v1alpha1.AnnotationClusterSelector, "zone=x"))
	w.step(10 * time.Second)
	w.finishAll()
	if workers := shards.WorkersOf(w.hub.jobs[jobKey]); slices.Contains(workers, "a") {
		w.fail("it is in %v", workers)
	}
	w.expectComplete("0-15")
}

// A Job without completions has nothing to divide, and one without parallelism waits.
func TestNothingToDivide(t *testing.T) {
	w := newWorld(t)
	w.submits(divisible(0, 4))
	w.step(10 * time.Second)
	if !mirror.Finished(w.hub.jobs[jobKey]) {
		w.fail("the Job hasn't completed: %s", w.state())
	}
	w = newWorld(t)
	w.submits(divisible(4, 0))
	w.step(10 * time.Second)
	w.edits("wants Pods", func(job *batchv1.Job) { job.Spec.Parallelism = ptr.To[int32](4) })
	w.step(10 * time.Second)
	w.finishAll()
	w.expectComplete("0-3")
}

// A worker that is lost while the Job's end is on its way doesn't hold that up for longer.
func TestDividedEndsWithoutALostWorker(t *testing.T) {
	w := newWorld(t)
	isDivided(w)
	w.worker("b").idle = true
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) {
		m.Status.Conditions = append(m.Status.Conditions, batchv1.JobCondition{
			Type: batchv1.JobFailureTarget, Status: "True", Reason: batchv1.JobReasonPodFailurePolicy,
			LastTransitionTime: metav1.NewTime(w.clock.Now()),
		})
	})
	w.step(10 * time.Second)
	if mirror.Finished(w.hub.jobs[jobKey]) {
		w.fail("the Job has ended, and worker b has Pods of it")
	}
	w.worker("b").isLost()
	if !mirror.Finished(w.hub.jobs[jobKey]) {
		w.fail("the Job hasn't ended: %+v", w.hub.jobs[jobKey].Status)
	}
}

// What was placed of a Job has ended, and no worker has room for the rest: an event says so, as of
// a Job that is placed nowhere.
func TestTheRestWaitsForRoom(t *testing.T) {
	w := newWorld(t)
	for _, v := range w.registered() {
		v.cpus = 1
	}
	w.start()
	w.submits(divisible(8, 4))
	w.step(time.Second)
	before := len(w.events)
	for _, v := range w.registered() {
		v.view.Spec.Cordoned = true
		w.triggers.WorkerChanged(v.Name())
	}
	for range 8 {
		for _, v := range w.registered() {
			v.finishes(1)
		}
		w.step(time.Second)
	}
	if got := reasons(w.events[before:]); !slices.Contains(got, v1alpha1.EventPending) {
		w.fail("events %q\n%s", w.events[before:], w.state())
	}
}
