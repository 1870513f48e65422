package job

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Large answers of a worker, which its cache never shows, take a bounded part of the memory, and
// expire.
func TestLargeAnswersAreBounded(t *testing.T) {
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
		most  int
	}{
		"one text":                   {annotated("jobferry.dev/filling", strings.Repeat("x", 1<<20)), 50, 20},
		"few bytes that become many": {conditions(8000), 200, 200}, // few of them are held
		"14 KB that become many":     {conditions(800), 200, 200},
		"40 KB of each": {func(job *batchv1.Job) {
			metav1.SetMetaDataAnnotation(&job.ObjectMeta, "jobferry.dev/filling", strings.Repeat("x", 40<<10))
		}, 800, maxHeld / (40 << 10)},
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
			if held := w.store.largeBytes["a"]; held > maxHeld || took > maxHeld || remembered > row.most {
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

// A worker has answered so much that its watch doesn't show that there's no room for more: the next
// Job runs there all the same, as its mirror is shown.
func TestAnAnswerWithoutRoomIsReadAgain(t *testing.T) {
	w := newWorld(t)
	w.store.largeBytes["a"] = maxHeld
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
	if took := int64(heap().HeapAlloc) - int64(before); took > maxHeld || s.largeBytes["a"] > maxHeld/2 || s.largeBytes["a"] < maxHeld/4 { //nolint:gosec // no heap has 2^63 bytes
		t.Errorf("%d bytes are held, and counted as %d", took, s.largeBytes["a"])
	}
	if !s.hasRoomLocked("a", ownWrite{at: noon, large: maxHeld / 2}) {
		t.Error("there's no room for answers")
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
	if len(s.large)+len(s.largeBytes) > 0 {
		t.Errorf("counted as they're gone: %v", s.largeBytes)
	}
	runtime.KeepAlive(s)
}
