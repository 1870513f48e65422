package job

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Answers of a worker, which its cache never shows, take a bounded part of the memory, and expire.
// Those of which all is large are not remembered, of others what isn't.
func TestAnswersAreBounded(t *testing.T) {
	conditions := func(n int) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Status.Conditions = make([]batchv1.JobCondition, n) }
	}
	marked := func(m *batchv1.Job) {
		metav1.SetMetaDataLabel(&m.ObjectMeta, v1alpha1.LabelOrigin, "hub-1")
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationHubUID, "uid")
	}
	for name, row := range map[string]struct {
		large func(*batchv1.Job)
		sent  int
		least int
		most  int
	}{
		"one text":                   {annotated("example.org/filling", strings.Repeat("x", 1<<20)), 50, 50, 50},
		"one text that we keep":      {annotated("jobferry.dev/filling", strings.Repeat("x", 300<<10)), 200, 10, 60},
		"few bytes that become many": {conditions(8000), 200, 10, 200}, // few of them are held
		"14 KB that become many":     {conditions(800), 200, 10, 200},
		"40 KB of each":              {annotated("example.org/filling", strings.Repeat("x", 40<<10)), 800, 800, 800},
		"2 KB of each":               {func(job *batchv1.Job) { job.Status.CompletedIndexes = strings.Repeat("1,", 1<<10) }, 10_000, 1000, maxHeld / (2 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			answer := func(i int) error {
				key := types.NamespacedName{Namespace: "team", Name: fmt.Sprint("job-", i)}
				return w.wroteMirror(w.store.open(key), w.worker("a"), aJob(key.Name, row.large, marked))
			}
			before, remembered := heap().HeapAlloc, 0
			for i := range row.sent {
				if err := answer(i); err == nil {
					remembered++
				}
			}
			took := int64(heap().HeapAlloc) - int64(before) //nolint:gosec // no heap has 2^63 bytes
			if held := w.store.heldBytes["a"]; held > maxHeld || took > maxHeld || remembered < row.least || remembered > row.most {
				t.Errorf("%d bytes are held, and counted as %d; %d answers are remembered", took, held, remembered)
			}
			w.clock.Step(2 * ownWriteExpires)
			if err := answer(0); err != nil {
				t.Errorf("answers don't expire: %v", err)
			}
			r := w.store.open(types.NamespacedName{Namespace: "team", Name: "job-1"})
			if r.beginLook(w.clock.Now()); r.mirrors["a"].write.job != nil {
				t.Error("an answer that has expired is still held")
			}
		})
	}
}

// An answer takes the place of the last one about the same mirror, however large both are.
func TestAnAnswerReplacesTheLastOne(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		answer := aJob("train", annotated(v1alpha1.AnnotationHubUID, "uid"))
		answer.Status.CompletedIndexes = strings.Repeat("x", 9<<20)
		answer.Labels, answer.ResourceVersion = map[string]string{v1alpha1.LabelOrigin: "hub-1"}, fmt.Sprint(i)
		if err := w.wroteMirror(w.store.open(jobKey), w.worker("a"), answer); err != nil {
			t.Fatal(err)
		}
		if held := w.store.open(jobKey).mirrors["a"].write.job; mirror.Light(held) || held.ResourceVersion != fmt.Sprint(i) {
			t.Errorf("of answer %d, %v is remembered", i, held)
		}
	}
}

// There's no room for a whole answer, which the worker's watch doesn't show for a while: the next
// decisions rest on it all the same. If there's no room for anything, the patch counts.
func TestAnAnswerWithoutRoomIsRemembered(t *testing.T) {
	for name, row := range map[string]struct {
		held        int64
		isSuspended bool
	}{
		"not for the whole": {maxWithAnswer, true},
		"for nothing":       {maxHeld, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			w.store.heldBytes["a"] = row.held
			seen, a := w.look(t.Context(), jobKey), w.worker("a")
			_, err := w.suspendMirror(t.Context(), seen, a, dispatch.SuspendMirror{At: dispatch.At{Name: "a", Mirror: seen.Assigned.Mirror}, Exactly: true})
			if (err == nil) != row.isSuspended || !row.isSuspended && !errors.Is(err, errUnshown) {
				t.Errorf("suspended with %v", err)
			}
			if err != nil { // there may be very many such Jobs
				if result, err := w.afterError(t.Context(), seen, 0, err); err != nil || result.RequeueAfter < time.Minute {
					t.Errorf("the next look comes after %s (%v)", result.RequeueAfter, err)
				}
			}
			next := w.look(t.Context(), jobKey)
			if mirror.Suspended(next.Assigned.Mirror) != row.isSuspended || next.known.mirrors["a"].patches.Count != 1 {
				t.Errorf("next, %d patches are known, and %v", next.known.mirrors["a"].patches.Count, next.Assigned.Mirror)
			}
		})
	}
}

// A worker has answered so much that its watch doesn't show that there's no room for more: the next
// Job runs there all the same, as its mirror is shown.
func TestAnAnswerWithoutRoomIsReadAgain(t *testing.T) {
	w := newWorld(t)
	w.store.heldBytes["a"] = maxHeld
	w.worker("a").api.takes = annotated("jobferry.dev/filling", strings.Repeat("x", 40<<10))
	w.submits(aJob("train"))
	w.step(time.Minute)
	if !w.running("a") || w.store.open(jobKey).mirrors["a"].write.job != nil {
		w.fail("ends as:\n%s", w.state())
	}
}

// Large mirrors that a worker lets vanish take a bounded part of the memory, and leave room for its
// answers. What the hub reads of them is remembered all the same.
func TestLastStatesAreBounded(t *testing.T) {
	const jobs = 1000
	s, before := newStore(line.NewRuntimes()), heap().HeapAlloc
	for i := range jobs {
		name := fmt.Sprint("job-", i)
		s.observe(onWorker(name, "a"), noon)
		m := aJob(name, annotated("jobferry.dev/filling", strings.Repeat("x", 40<<10)), annotated(v1alpha1.AnnotationHubUID, "uid-"+name))
		m.Labels, m.Status.Succeeded = map[string]string{v1alpha1.LabelOrigin: "hub-1"}, 1
		s.observeMirror("a", keyOf(m), m, nil, noon)
		s.observeMirror("a", keyOf(m), nil, m, noon)
		last := s.open(keyOf(m)).mirrors["a"].last
		if last == nil || mirror.Owns("hub-1", types.UID("uid-"+name), last) != mirror.Ours || last.Status.Succeeded != 1 {
			t.Fatalf("of mirror %d, %v is remembered", i, last)
		}
	}
	if took := int64(heap().HeapAlloc) - int64(before); took > maxHeld || s.heldBytes["a"] > maxWithOutline || s.heldBytes["a"] < maxWithLastState/2 { //nolint:gosec // no heap has 2^63 bytes
		t.Errorf("%d bytes are held, and counted as %d", took, s.heldBytes["a"])
	}
	if !s.hasRoomLocked("a", maxHeld-maxWithOutline, maxHeld, noon) {
		t.Error("there's no room for answers")
	}
	for i := range 20_000 { // small ones
		m := aJob(fmt.Sprint("small-", i), annotated(v1alpha1.AnnotationHubUID, fmt.Sprint("uid-small-", i)))
		m.Labels, m.Status.CompletedIndexes = map[string]string{v1alpha1.LabelOrigin: "hub-1"}, strings.Repeat("1,", 1<<10)
		s.observe(onWorker(m.Name, "a"), noon)
		s.observeMirror("a", keyOf(m), nil, m, noon)
	}
	if held := s.heldBytes["a"]; held > maxWithOutline || held < maxWithOutline-smallHeld {
		t.Errorf("%d bytes of small ones are held", held)
	}
	again := s.open(types.NamespacedName{Namespace: "team", Name: "small-0"}).mirrors["a"]
	later := again.last.DeepCopy()
	later.ResourceVersion = "later"
	if s.observeMirror("a", keyOf(later), nil, later, noon); again.last.ResourceVersion != "later" {
		t.Error("a last state doesn't take the place of the one before")
	}
	long := aJob("long", annotated(v1alpha1.AnnotationHubUID, "uid-long"))
	s.observe(onWorker("long", "a"), noon)
	long.Labels, long.Status.CompletedIndexes = map[string]string{v1alpha1.LabelOrigin: "hub-1"}, strings.Repeat("1,", 20<<10)
	if s.observeMirror("a", keyOf(long), nil, long, noon); s.open(keyOf(long)).mirrors["a"].last != nil {
		t.Error("a status is remembered for which there's no room")
	}
	for _, r := range s.records {
		r.update(func(*memory) { r.forgetLastsLocked() })
	}
	if len(s.heldBytes) > 0 {
		t.Errorf("counted as they're gone: %v", s.heldBytes)
	}
	runtime.KeepAlive(s)
}
