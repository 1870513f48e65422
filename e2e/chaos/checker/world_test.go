package checker

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// world tells a checker what happens to one Job, "job", of four indexes. "fenced" and "open" are
// its workers.
type world struct {
	t        *testing.T
	checker  *Checker
	at       time.Duration
	status   batchv1.JobStatus
	assigned string
	shards   *shards.Placement // nil: the Job isn't divided
	// parallelism of the Job.
	parallelism int32
	selector    string // that the Job was placed by
	namespace   string
	version     int // the hub Job's resourceVersion
	questions   []Question
	number      int
	mirrors     map[string]int // how many a worker has had
}

func newWorld(t *testing.T, changes ...func(*story.Story)) *world {
	s := story.Story{
		Name: "job", Kind: "indexed", Job: &batchv1.Job{Spec: batchv1.JobSpec{Completions: ptr.To[int32](4)}},
		End: story.End{Condition: batchv1.JobComplete, All: true},
	}
	for _, change := range changes {
		change(&s)
	}
	o := Options{LostAfter: 30 * time.Second, Shown: func(namespace string) bool { return namespace == "shown" }, Workers: []Worker{{Name: "fenced", Fenced: true}, {Name: "open"}}}
	return &world{t: t, parallelism: 4, mirrors: map[string]int{}, checker: New(o, []story.Story{s})}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { w.at += d }

// hub shows the hub Job with a changed status.
func (w *world) hub(changes ...func(*batchv1.JobStatus)) {
	for _, change := range changes {
		change(&w.status)
	}
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "job", UID: "hub-job", ResourceVersion: strconv.Itoa(w.version)},
		Spec:       batchv1.JobSpec{Completions: ptr.To[int32](4), Parallelism: &w.parallelism},
		Status:     *w.status.DeepCopy(),
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: w.assigned, hubstate.PlacedFor: w.selector})
	if w.shards != nil {
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		hubstate.Set(j, w.shards.Kept())
	}
	w.see(Event{Where: schedule.Hub, Job: j})
}

// hubGone shows that the hub Job is gone.
func (w *world) hubGone() {
	w.see(Event{Where: schedule.Hub, Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "hub-job"}}, Gone: true})
}

// place shows the hub Job on a worker, with a mirror there.
func (w *world) place(worker string) {
	w.assigned = worker
	w.mirrors[worker]++
	w.hub()
	w.seeMirror(worker, "hub-job", nil)
}

// divide shows the hub Job in shards, such as "fenced=0-1", with a mirror in each worker that is
// new, and parts of two Pods.
func (w *world) divide(all ...string) {
	before := w.shards
	w.shards = &shards.Placement{}
	for _, text := range all {
		worker, indexes, _ := strings.Cut(text, "=")
		amount, err := shards.ParseAmount(indexes, true)
		if err != nil {
			w.t.Fatal(err)
		}
		w.shards.Shards = append(w.shards.Shards, shards.Shard{Worker: worker, Amount: amount, State: shards.State{Parallelism: 2}})
	}
	w.hub()
	for _, s := range w.shards.Shards {
		if before != nil {
			if _, had := before.In(s.Worker); had {
				continue
			}
		}
		w.mirrors[s.Worker]++
		w.seeMirror(s.Worker, "hub-job", nil)
	}
}

// mayDivide lets the Job run on several workers.
func mayDivide(s *story.Story) {
	s.Job.Annotations = map[string]string{v1alpha1.AnnotationMaxClusters: v1alpha1.MaxClustersAll}
}

// seeMirror shows the mirror of a hub Job.
func (w *world) seeMirror(worker string, of types.UID, deleted *metav1.Time, changes ...func(*batchv1.Job)) {
	m := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "job", UID: w.mirrorOn(worker), Annotations: map[string]string{v1alpha1.AnnotationHubUID: string(of)}, DeletionTimestamp: deleted,
	}}
	for _, change := range changes {
		change(m)
	}
	w.see(Event{Where: worker, Job: m})
}

// mirrorOn is the last mirror in a worker.
func (w *world) mirrorOn(worker string) types.UID {
	return types.UID(fmt.Sprintf("mirror-%d-on-%s", w.mirrors[worker], worker))
}

// run shows a new Pod that runs, and returns it.
func (w *world) run(worker string, index int) Event {
	w.number++
	name := fmt.Sprintf("pod-%d", w.number)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: name, UID: types.UID(name), Labels: map[string]string{batchv1.JobNameLabel: "job"},
		Annotations:     map[string]string{},
		Finalizers:      []string{batchv1.JobTrackingFinalizer},
		OwnerReferences: []metav1.OwnerReference{{UID: w.mirrorOn(worker), Controller: ptr.To(true)}},
	}}
	if index >= 0 {
		p.Annotations[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(index)
	}
	p.Status.Phase = corev1.PodRunning
	e := Event{Where: worker, Pod: p}
	w.see(e)
	return e
}

// runAll has the Pods of all indexes succeed in a worker.
func (w *world) runAll(worker string) {
	w.place(worker)
	for index := range 4 {
		w.succeed(w.run(worker, index))
	}
}

// succeed shows that a Pod has succeeded.
func (w *world) succeed(e Event) {
	e.Pod = e.Pod.DeepCopy()
	e.Pod.Status.Phase = corev1.PodSucceeded
	w.see(e)
}

// stop shows that a Pod is gone.
func (w *world) stop(e Event) {
	e.Gone = true
	w.see(e)
}

func (w *world) see(e Event) {
	e.At = w.at
	w.questions = append(w.questions, w.checker.Observe(e)...)
}

// fault is there from now on.
func (w *world) fault(worker string, kind schedule.Kind) (heal func()) {
	w.number++
	f := schedule.Fault{Number: w.number, Target: worker, Kind: kind}
	w.checker.Begin(w.at, f)
	return func() { w.checker.End(w.at, f) }
}

// allRun answers all questions so far with yes.
func (w *world) allRun() {
	for _, q := range w.questions {
		w.checker.Answer(w.at, q, AllRun)
	}
	w.questions = nil
}

// expect holds the rules that were violated.
func (w *world) expect(want ...Rule) {
	w.t.Helper()
	var got []Rule
	for _, v := range w.checker.Violations() {
		got = append(got, v.Rule)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("violated %v, want %v; the time line:\n%s", got, want, w.lines())
	}
}

func (w *world) lines() string {
	var text strings.Builder
	for _, l := range w.checker.Lines("job") {
		fmt.Fprintln(&text, l)
	}
	return text.String()
}

func completed(indexes string, n int32) func(*batchv1.JobStatus) {
	return func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = indexes, n }
}

func complete(s *batchv1.JobStatus) {
	completed("0-3", 4)(s)
	s.CompletionTime = ptr.To(metav1.Unix(1000, 0))
	s.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}
}
