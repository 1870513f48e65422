package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// hub divides the indexes of one Job over some workers, and moves them at random, as the handshake
// of the annotations allows. What it keeps is written down, so its death is no more than a delay
// between two of its writes.
type hub struct {
	t          *rapid.T
	indexes    intervals.Set
	shards     []*shardWorker
	unassigned intervals.Set
	stopped    bool // some worker was suspended or fenced: counts of failures may be lost
}

// shardWorker is one worker, with its own lag and its own crashes, and what the hub knows of it.
type shardWorker struct {
	*simulation
	name      string
	has       intervals.Set // the shard
	returning intervals.Set // of has, those that the worker is asked to give back
	seen      *batchv1.Job  // the mirror, as the hub has last seen it
	told      int           // the version that the hub has last written
}

func (w *shardWorker) wanted() string { return w.has.Minus(w.returning).String() }

func observed(job *batchv1.Job) intervals.Set {
	return intervals.ParseLenient(job.Annotations[v1alpha1.AnnotationIndexesObserved], intervals.NoLimit)
}

func settled(job *batchv1.Job) intervals.Set {
	return intervals.ParseLenient(job.Status.CompletedIndexes, intervals.NoLimit).
		Union(intervals.ParseLenient(ptr.Deref(job.Status.FailedIndexes, ""), intervals.NoLimit))
}

func newHub(t *rapid.T, workers int) *hub {
	job := anyShardedJob(t)
	h := &hub{t: t, indexes: intervals.Range(0, int(*job.Spec.Completions))}
	left := h.indexes
	for i := range workers {
		part := anySubset(t, left)
		if i == workers-1 {
			part = left
		}
		left = left.Minus(part)
		mirror := job.DeepCopy()
		annotated(part.String(), part.String())(mirror)
		c := newFakeCluster(mirror)
		h.shards = append(h.shards, &shardWorker{
			simulation: &simulation{fakeCluster: c, c: start(c), t: t},
			name:       fmt.Sprintf("w%d", i), has: part, seen: mirror,
		})
	}
	return h
}

func anyShardedJob(t *rapid.T) *batchv1.Job {
	job := aJob(sized(rapid.Int32Range(0, 4).Draw(t, "parallelism"), rapid.Int32Range(1, 8).Draw(t, "completions")), indexed)
	if rapid.Bool().Draw(t, "per index") {
		indexLimit(rapid.Int32Range(0, 2).Draw(t, "limit"))(job)
	}
	job.Spec.BackoffLimit = ptr.To[int32](1 << 30)
	if rapid.Bool().Draw(t, "only failed") {
		onlyFailedReplaced(job)
	}
	if rapid.IntRange(0, 2).Draw(t, "policy") == 0 {
		policy(onExit(batchv1.PodFailurePolicyActionIgnore, 2))(job)
		onlyFailedReplaced(job)
	}
	return job
}

func anySubset(t *rapid.T, of intervals.Set) intervals.Set {
	var some []int
	for _, index := range of.First(of.Len()) {
		if rapid.Bool().Draw(t, "index") {
			some = append(some, index)
		}
	}
	return intervals.Of(some...)
}

// look is an event of the worker's watch on the hub.
func (h *hub) look(w *shardWorker) { w.seen = w.job.DeepCopy() }

// askBack takes indexes out of what the mirror is to run.
func (h *hub) askBack(w *shardWorker, some intervals.Set) { w.returning = w.returning.Union(some) }

// takeBack ends a request: what the worker doesn't have any more is unassigned, the rest stays.
func (h *hub) takeBack(w *shardWorker) {
	// The text alone isn't enough: the worker may have been told something else since, and then
	// have started what an older version of the mirror doesn't have.
	if versionOf(w.seen) < w.told || w.seen.Annotations[v1alpha1.AnnotationIndexes] != w.wanted() {
		return
	}
	free := w.returning.Minus(observed(w.seen)).Minus(settled(w.seen))
	w.has, w.returning = w.has.Minus(free), w.returning.Minus(free)
	h.unassigned = h.unassigned.Union(free)
}

// assign gives unassigned indexes to a worker.
func (h *hub) assign(w *shardWorker, some intervals.Set) {
	w.has, h.unassigned = w.has.Union(some), h.unassigned.Minus(some)
}

// project writes the annotation of the mirror.
func (h *hub) project(w *shardWorker) {
	if w.job.Annotations[v1alpha1.AnnotationIndexes] != w.wanted() {
		w.job.Annotations[v1alpha1.AnnotationIndexes] = w.wanted()
		w.logf("the hub assigns %q", w.wanted())
		w.storeJob()
		w.told = versionOf(w.job)
	}
}

func (h *hub) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){"": h.check}
	for _, w := range h.shards {
		for name, do := range w.actions() {
			if name != "" && name != "scale an elastic Job" {
				actions[w.name+" "+name] = do
			}
		}
		for _, name := range []string{"suspend or resume", "fence or confirm"} {
			do := actions[w.name+" "+name]
			actions[w.name+" "+name] = func(t *rapid.T) { h.stopped = true; do(t) }
		}
		for i := range 8 {
			actions[fmt.Sprintf("%s gives and takes %d", w.name, i)] = func(t *rapid.T) { h.move(t, w) }
		}
		actions[w.name+" damaged"] = func(t *rapid.T) {
			w.job.Annotations[v1alpha1.AnnotationIndexes] = rapid.SampledFrom([]string{"x", "2,1", "99999999999"}).Draw(t, "text")
			w.storeJob()
		}
	}
	return actions
}

// move takes some of the steps in which indexes change their worker: any may be left out, and is
// made up for, or not, by a later move.
func (h *hub) move(t *rapid.T, from *shardWorker) {
	to := rapid.SampledFrom(h.shards).Draw(t, "to")
	hear := func(w *shardWorker) func() {
		return func() {
			w.deliver(rapid.IntRange(0, 3).Draw(t, "jobs"), rapid.IntRange(0, 5).Draw(t, "pods"))
			w.sync(t)
		}
	}
	for _, step := range []func(){
		func() { from.returning = from.returning.Minus(anySubset(t, from.returning)) },
		func() { h.askBack(from, anySubset(t, from.has)) },
		func() { h.project(from) },
		hear(from),
		func() { h.look(from) },
		func() { h.takeBack(from) },
		func() { h.assign(to, anySubset(t, h.unassigned)) },
		func() { h.project(to) },
		hear(to), hear(to),
	} {
		if rapid.IntRange(0, 5).Draw(t, "left out") > 0 {
			step()
		}
	}
}

// check holds what must be true at any moment.
func (h *hub) check(t *rapid.T) {
	live, done, failures := map[int]string{}, map[int]string{}, map[int]int{}
	for _, w := range h.shards {
		if err := w.check(); err != nil {
			h.fatal(t, err.Error())
		}
		for _, p := range w.pods {
			index := CompletionIndex(p)
			if w.failed.Has(p.UID) && rule(w.job.Spec.PodFailurePolicy, p).counts() {
				failures[index]++
			}
			if Ended(p) {
				continue
			}
			if other := live[index]; other != "" && other != w.name {
				h.fatal(t, fmt.Sprintf("index %d has a live Pod in %s and in %s", index, other, w.name))
			}
			live[index] = w.name
		}
		for _, index := range settled(w.job).First(len(h.indexes) + 100) {
			if other := done[index]; other != "" {
				h.fatal(t, fmt.Sprintf("index %d is settled in %s and in %s", index, other, w.name))
			}
			done[index] = w.name
		}
	}
	limit := h.shards[0].job.Spec.BackoffLimitPerIndex
	for index, n := range failures {
		if limit != nil && !h.stopped && n > int(*limit)+1 {
			h.fatal(t, fmt.Sprintf("index %d has failed %d times, its limit is %d", index, n, *limit))
		}
	}
}

func (h *hub) fatal(t *rapid.T, problem string) {
	var log []string
	for _, w := range h.shards {
		log = append(append(log, w.name+":"), w.log...)
	}
	t.Fatal(problem, "\n", strings.Join(log, "\n"))
}

// Two controllers, with their own caches and their own crashes, share the indexes of one Job, which
// a hub moves between them at random: no index ever runs in both at once, none is settled twice,
// and in the end all are settled. Then the controllers do nothing until the hub ends the Job.
func TestAnIndexIsNeverInTwoShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHub(t, rapid.IntRange(2, 3).Draw(t, "workers"))
		t.Repeat(h.actions())
		h.leaveAlone(t)
	})
}

func (h *hub) leaveAlone(t *rapid.T) {
	for _, w := range h.shards {
		w.job.Spec.Suspend, w.job.Spec.Parallelism = ptr.To(false), ptr.To[int32](3)
		w.fence(false)
	}
	for range 200 {
		var all intervals.Set
		for i, w := range h.shards {
			h.round(t, w)
			if i == 0 {
				h.assign(w, h.unassigned)
			}
			all = all.Union(settled(w.job))
		}
		h.check(t)
		if h.indexes.SubsetOf(all) {
			h.end(t)
			return
		}
	}
	h.fatal(t, "not all indexes are settled")
}

// round lets the worker, its Pods and the hub go on, all without lag.
func (h *hub) round(t *rapid.T, w *shardWorker) {
	h.look(w)
	h.takeBack(w)
	h.project(w)
	w.deliver(1000, 1000)
	w.sync(t)
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[uid]; p != nil {
			w.end(p, 0)
		}
	}
	w.now = w.now.Add(30 * time.Second)
}

// end has the hub end the Job, which has had nothing to do for a while.
func (h *hub) end(t *rapid.T) {
	for _, w := range h.shards {
		for range 5 {
			h.round(t, w)
		}
		version := w.job.ResourceVersion
		h.round(t, w)
		if w.job.ResourceVersion != version || Finished(w.job) != nil {
			h.fatal(t, "a shard without work doesn't idle")
		}
		withCondition(batchv1.JobSuccessCriteriaMet, "AllDone")(w.job)
		w.storeJob()
		for range 3 {
			h.round(t, w)
		}
		if end := trueCondition(w.job.Status.Conditions, batchv1.JobComplete); end == nil || end.Reason != "AllDone" || end.Message != "because" {
			h.fatal(t, fmt.Sprintf("the end of %s is %+v", w.name, end))
		}
		for _, p := range w.pods {
			if IsTracked(p, testOptions.TrackingFinalizer) || p.Status.Phase == corev1.PodPending {
				h.fatal(t, fmt.Sprintf("%s is left", p.Name))
			}
		}
	}
}
