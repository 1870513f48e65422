package job

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
)

// onWorker is a Job on a worker that hasn't started; "" isn't placed.
func onWorker(name, worker string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name)}}
	if worker != "" {
		hubstate.Set(job, hubstate.Changes{hubstate.Cluster: worker})
	}
	return job
}

func finished(job *batchv1.Job) *batchv1.Job {
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue})
	return job
}

func running(job *batchv1.Job) *batchv1.Job {
	job.Status.StartTime = ptr.To(metav1.NewTime(noon))
	return job
}

func TestStoreIndexes(t *testing.T) {
	s := newStore(line.NewRuntimes())
	see := func(job *batchv1.Job) []string {
		_, changed := s.observe(job, noon)
		return changed
	}
	see(onWorker("one", ""))
	see(onWorker("two", "a"))
	see(running(onWorker("three", "a")))
	if changed := see(onWorker("one", "a")); !slices.Equal(changed, []string{"a"}) {
		t.Errorf("one was placed: %v changed", changed)
	}
	see(finished(onWorker("three", "a")))
	if changed := see(onWorker("two", "b")); !slices.Equal(changed, []string{"a", "b"}) {
		t.Errorf("two was moved: %v changed", changed)
	}

	want := map[status]int{{"a", jobview.Starting}: 1, {"a", jobview.Failed}: 1, {"b", jobview.Starting}: 1}
	if got := s.counted(); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if got := s.unfinished("a"); got != 1 {
		t.Errorf("%d unfinished on a, want 1", got)
	}
	if got := len(s.on("a")); got != 2 {
		t.Errorf("%d Jobs on a, want 2", got)
	}
	for _, name := range []string{"one", "two", "three", "three"} {
		job := onWorker(name, "")
		s.open(keyOf(job)).await(true)
		s.forget(keyOf(job), idOf(job))
		s.forget(keyOf(job), unseen)
	}
	if len(s.records)+len(s.counts)+len(s.onWorker)+len(s.waiting) != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// Forged placements take a bounded part of the memory, and keep no Job from the index of a worker
// that there is.
func TestForgedPlacementsTakeLittleMemory(t *testing.T) {
	s := newStore(line.NewRuntimes())
	s.isRegistered = func(worker string) bool { return worker == "real" }
	placedOn := func(namespace string, i int, key hubstate.Key, value string) *batchv1.Job {
		job := onWorker(fmt.Sprint("job-", i), "")
		job.Namespace = namespace
		hubstate.Set(job, hubstate.Changes{key: value})
		return job
	}
	before := heap().HeapAlloc
	for i := range 300 {
		workers := []string{"real"}
		for n := range 999 {
			workers = append(workers, fmt.Sprintf("w%d-%d", i, n))
		}
		s.observe(placedOn("mallory", i, hubstate.Shards, strings.Join(workers, ";")), noon)
	}
	for i := range 40 {
		s.observe(placedOn("mallory", 300+i, hubstate.Cluster, fmt.Sprint(i, strings.Repeat("a", 200_000))), noon)
	}
	s.observe(placedOn("team", 0, hubstate.Shards, "gone;real"), noon)
	took := int64(heap().HeapAlloc) - int64(before) //nolint:gosec // no heap has 2^63 bytes
	t.Logf("they take %d KiB, and count as %d KiB", took>>10, s.names["mallory"]>>10)
	if took > 2*maxNames {
		t.Errorf("they take %d bytes", took)
	}
	if on, gone := len(s.on("real")), len(s.on("gone")); on != 301 || gone != 1 {
		t.Errorf("%d Jobs on a worker that there is, %d on one that was removed", on, gone)
	}
	s.observe(placedOn("mallory", 299, hubstate.Cluster, "real"), noon)
	for key, r := range s.records {
		s.forget(key, r.id)
	}
	if len(s.names)+len(s.onWorker)+len(s.counts) > 0 {
		t.Errorf("left behind: %v", s.names)
	}
}

func TestForgedPlacementsMakeNoSeries(t *testing.T) {
	w := newWorld(t)
	w.store.observe(onWorker("forged", "nowhere"), noon)
	w.store.observe(onWorker("honest", "a"), noon)
	want := map[string]float64{"jobs  OutOfTouch": 1, "jobs a Starting": 1}
	if diff := cmp.Diff(want, w.collected()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What a Job waits for may change while it's reconciled: it's looked at again then if it waits on.
func TestWaitersThatAreReconciled(t *testing.T) {
	s := newStore(line.NewRuntimes())
	rec := s.open(jobKey)
	for _, waits := range []bool{true, false} {
		for _, why := range [][]leftOut{{ofWalk}, {ofChange}, {ofWalk, ofChange}, {ofChange, ofWalk}} {
			end := s.reconciles(jobKey)
			if rec.await(true); end() != ofNothing {
				t.Error("looked at again, though nothing has changed")
			}
			if keys := s.waiters(ofWalk); len(keys) != 1 {
				t.Errorf("%v wait that aren't reconciled", keys)
			}
			end = s.reconciles(jobKey)
			want := ofNothing
			for _, w := range why {
				if keys := s.waiters(w); len(keys) > 0 {
					t.Errorf("%v are enqueued while they are reconciled", keys)
				}
				if waits {
					want = max(want, w)
				}
			}
			rec.await(waits)
			if got := end(); got != want || len(s.reconciling) > 0 {
				t.Errorf("left out for %v, waits on: %t: looked at again for %v", why, waits, got)
			}
		}
	}
}

// A reconcile that is under way when its Job is forgotten brings nothing of the Job back, nor does
// the answer to a write that races with the deletion.
func TestForgottenStaysForgotten(t *testing.T) {
	s := newStore(line.NewRuntimes())
	job := onWorker("one", "a")
	s.observe(job, noon)
	rec := s.open(keyOf(job))
	if s.forget(keyOf(job), idOf(&batchv1.Job{})) != nil {
		t.Error("a Job is forgotten for another of its name")
	}
	if s.forget(keyOf(job), idOf(job)) != rec {
		t.Error("the record isn't forgotten")
	}
	rec.await(true)
	rec.passOver("a", obstacle{reason: "refused", until: noon.Add(time.Hour)})
	rec.updateMirror("a", func(m *mirrorMemory) { m.answer = "quota" })
	if changed := rec.wrote(running(job), noon); changed != nil {
		t.Errorf("a write's answer changed %v", changed)
	}
	if len(s.records)+len(s.counts)+len(s.onWorker)+len(s.waiting) != 0 {
		t.Errorf("came back: %+v", s)
	}
	if k := s.open(keyOf(job)).read(noon); k.passedOver != nil || k.mirrors != nil || k.lastWrite.job != nil {
		t.Errorf("the next Job of the name starts with %+v", k)
	}
}

func TestPassedOverExpires(t *testing.T) {
	rec := newStore(line.NewRuntimes()).open(types.NamespacedName{Name: "one"})
	rec.passOver("a", obstacle{reason: "name taken", until: noon.Add(time.Minute)})
	rec.passOver("b", obstacle{reason: "refused", until: noon.Add(time.Hour)})
	if got, want := rec.read(noon).passedOver, map[string]string{"a": "name taken", "b": "refused"}; !maps.Equal(got, want) {
		t.Errorf("at first: %v, want %v", got, want)
	}
	later := noon.Add(2 * time.Minute)
	if got, want := rec.read(later).passedOver, map[string]string{"b": "refused"}; !maps.Equal(got, want) {
		t.Errorf("later: %v, want %v", got, want)
	}
	if rec.beginLook(later); len(rec.passedOver) != 1 {
		t.Errorf("after a look, it has %v", rec.passedOver)
	}
	if rec.beginLook(noon.Add(2 * time.Hour)); rec.passedOver != nil {
		t.Errorf("after the last look, it has %v", rec.passedOver)
	}
}

func TestRecordObserves(t *testing.T) {
	s := newStore(line.NewRuntimes())
	job := onWorker("one", "a")
	job.CreationTimestamp = metav1.NewTime(noon)
	s.observe(job, noon.Add(900*time.Millisecond))
	known := s.open(keyOf(job)).read(noon)
	if got := known.age(job, noon.Add(time.Second)); got != 100*time.Millisecond {
		t.Errorf("a Job seen while new is %s old, want 100ms", got)
	}
}

func TestObservedMirrors(t *testing.T) {
	s := newStore(line.NewRuntimes())
	key, mirror := keyOf(state("m", "")), state("m", "10")
	rec := s.open(key)
	rec.updateMirror("a", func(m *mirrorMemory) { m.write = ownWrite{job: mirror, at: noon} })
	if !s.observeMirror("a", key, mirror, nil, noon) || !rec.read(noon).unshownSince.IsZero() {
		t.Error("what was written isn't taken for an echo")
	}
	if s.observeMirror("a", key, state("m", "11"), nil, noon) || rec.read(noon).unshownSince != noon {
		t.Error("a change isn't noted")
	}
	s.observeMirror("a", key, nil, nil, noon.Add(time.Hour))
	if got := rec.read(noon).unshownSince; got != noon {
		t.Errorf("waits since %s, want the first change", got)
	}
	s.forgetWorker("a")
	if len(rec.read(noon).mirrors) > 0 {
		t.Error("a worker that was removed is remembered")
	}
}

// Of a Job that has ended, with its mirror, only the name, the UID and the place are remembered:
// until something happens to it, and again after that.
func TestHardlyAnythingIsRememberedOfAFinishedJob(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	w.step(time.Second)
	w.worker("a").completes(4)
	w.step(2 * time.Minute)
	isNothing := func(when string) {
		t.Helper()
		r := w.store.records[jobKey]
		if r == nil || r.indexed.Value() != (placed{"a", jobview.Complete}) || r.memory != nothing || !reflect.ValueOf(*nothing).IsZero() {
			t.Errorf("%s: %+v is remembered, in %+v", when, r.memory, r)
		}
	}
	isNothing("after the end")
	w.edits("adds a label", func(job *batchv1.Job) { job.Labels = map[string]string{"seen": "yes"} })
	w.step(time.Second)
	isNothing("after an edit")
	w.deletes(metav1.DeletePropagationBackground)
	w.step(time.Minute)
	if len(w.store.records) > 0 || w.hub.jobs[jobKey] != nil || !reflect.ValueOf(*nothing).IsZero() {
		w.fail("the Job is left")
	}
}

// What is asked about a worker is answered from the Jobs that it concerns, whatever number of
// others the hub has.
func TestMirrorsAreFoundByWorker(t *testing.T) {
	s := newStore(line.NewRuntimes())
	names := func(keys []types.NamespacedName) (names []string) {
		for _, key := range keys {
			names = append(names, key.Name)
		}
		slices.Sort(names)
		return names
	}
	writes := func(name, worker string, bytes int) *record {
		r := s.open(types.NamespacedName{Name: name})
		r.updateMirror(worker, func(m *mirrorMemory) { m.write = ownWrite{job: state("m", "1"), at: noon, bytes: int64(bytes)} })
		return r
	}
	for _, name := range []string{"one", "two", "three", "four"} {
		writes(name, "a", smallHeld+1)
	}
	writes("one", "b", 0)
	if a, b := names(s.mirroredIn("a")), names(s.mirroredIn("b")); !slices.Equal(a, []string{"four", "one", "three", "two"}) || !slices.Equal(b, []string{"one"}) {
		t.Errorf("in a: %v, in b: %v", a, b)
	}
	writes("two", "a", 0)
	s.observeMirror("a", types.NamespacedName{Name: "three"}, nil, nil, noon)
	s.forget(types.NamespacedName{Name: "four"}, unseen)
	if bytes := s.heldBytes["a"]; bytes != smallHeld+1 || len(s.answered["a"]) != 1 || len(s.answered["b"]) != 0 {
		t.Errorf("%d bytes in %d answers", bytes, len(s.answered["a"]))
	}
	hasRoom := s.hasRoomLocked("a", maxHeld, maxHeld, noon.Add(2*ownWriteExpires))
	if !hasRoom || len(s.heldBytes) > 0 || s.open(types.NamespacedName{Name: "one"}).mirrors["a"].write.job != nil {
		t.Errorf("%d bytes of answers that have expired", s.heldBytes["a"])
	}
	three := s.open(types.NamespacedName{Name: "three"})
	three.update(func(*memory) { three.forgetMirrorsLocked() })
	if a := names(s.mirroredIn("a")); !slices.Equal(a, []string{"one", "two"}) {
		t.Errorf("in a: %v", a)
	}
	s.forgetWorker("a")
	s.forget(types.NamespacedName{Name: "one"}, unseen)
	if len(s.mirrored)+len(s.answered)+len(s.heldBytes) > 0 {
		t.Errorf("left behind: %v, %v, %v", s.mirrored, s.answered, s.heldBytes)
	}
}

// Which mirrors workers should have removed is answered from these mirrors, whatever number of Jobs
// the hub has.
func TestKeptMirrorsAreFoundByWorker(t *testing.T) {
	s := newStore(line.NewRuntimes())
	keeps := func(name, worker string, overdue bool) *record {
		r := s.open(types.NamespacedName{Namespace: "team", Name: name})
		r.release([]dispatch.Release{{Worker: worker, Overdue: overdue}}, noon)
		return r
	}
	want := func(when string, want map[string][]string) {
		t.Helper()
		got := map[string][]string{}
		for worker, keys := range s.unreleased() {
			for _, key := range keys {
				got[worker] = append(got[worker], key.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	for _, name := range []string{"three", "one", "two", "four"} {
		keeps(name, "a", true)
	}
	forgotten := keeps("five", "b", true)
	keeps("five", "a", false)
	want("b has released one", map[string][]string{"a": {"four", "one", "three", "two"}})
	keeps("five", "b", true)
	all := s.records
	s.records = nil
	want("no Job is looked at", map[string][]string{"a": {"four", "one", "three", "two"}, "b": {"five"}})
	s.records = all
	s.forgetAnswers("a")
	keeps("one", "a", false)
	want("a is restored, and releases one", map[string][]string{"a": {"four", "three", "two"}, "b": {"five"}})
	s.forgetWorker("a")
	s.forget(forgotten.key, unseen)
	forgotten.release([]dispatch.Release{{Worker: "b", Overdue: true}}, noon)
	want("worker and Job are gone", map[string][]string{})
	if len(s.kept) > 0 {
		t.Errorf("left behind: %v", s.kept)
	}
}

// A hub has 50,000 Jobs in one worker, and another worker changes, or gives a large answer.
func BenchmarkWorkerOfManyJobs(b *testing.B) {
	s := newStore(line.NewRuntimes())
	for i := range 50_000 {
		s.open(types.NamespacedName{Name: fmt.Sprint(i)}).updateMirror("a", func(m *mirrorMemory) {
			m.write = ownWrite{job: state("m", "1"), at: noon}
		})
	}
	b.Run("changes", func(b *testing.B) {
		for b.Loop() {
			s.mirroredIn("b")
		}
	})
	b.Run("answers", func(b *testing.B) {
		for b.Loop() {
			s.hasRoomLocked("a", maxHeld, maxHeld, noon)
		}
	})
	b.Run("keeps none", func(b *testing.B) {
		for b.Loop() {
			s.unreleased()
		}
	})
}

// A worker that says that it was restored has as much time left for what it owes as before.
func TestWhatARestoredWorkerOwesStays(t *testing.T) {
	s := newStore(line.NewRuntimes())
	r := s.open(types.NamespacedName{Name: "job"})
	r.updateMirror("a", func(m *mirrorMemory) {
		m.write, m.created, m.refusal = ownWrite{job: state("m", "9"), at: noon, bytes: smallHeld + 1}, "m", "no"
		m.release.run(false, noon)
		m.cleanups = m.cleanups.Next(noon)
	})
	s.forgetAnswers("a")
	m := r.read(noon).mirrors["a"]
	if m.write != (ownWrite{}) || m.created != "" || len(s.heldBytes)+len(s.answered) != 0 {
		t.Errorf("what it has answered is still known: %+v", m)
	}
	if m.release.since(noon) != noon || m.cleanups.Count != 1 || m.refusal != "no" {
		t.Errorf("what it owes is forgotten: %+v", m)
	}
}
