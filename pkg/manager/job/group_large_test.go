package job

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/queue"
)

// Very many Jobs of one group cost no more for each than few.
func TestLargeGroupsAreCheap(t *testing.T) {
	cost := func(jobs int) float64 {
		s := newStore(line.NewRuntimes())
		looks := 0
		for i := range jobs {
			job := aJob(fmt.Sprint("job-", i), inGroup("pair"))
			job.UID = types.UID(job.Name)
			hubstate.Set(job, hubstate.Changes{hubstate.Cluster: "a"})
			s.observe(job, noon)
			keys, _ := s.concerned()
			looks += len(keys)
		}
		return float64(looks) / float64(jobs)
	}
	if few, many := cost(100), cost(3000); many > 2*few+1 {
		t.Errorf("%.1f looks for each of 100 Jobs, %.1f for each of 3,000", few, many)
	}
}

// One of very many Jobs of a group, of which the others are suspended, is placed, ends and goes, as
// a tenant may have it again and again: no other is looked at.
func TestJobsThatHeedTheirGroup(t *testing.T) {
	s := newStore(line.NewRuntimes())
	see := func(name string, state hubstate.Changes) *batchv1.Job {
		job := aJob(name, inGroup("pair"))
		job.UID = types.UID(name)
		hubstate.Set(job, state)
		s.observe(job, noon)
		return job
	}
	for i := range 3000 {
		see(fmt.Sprint("suspended-", i), nil)
	}
	waits := see("waits", nil)
	s.open(keyOf(waits)).await(true)
	see("runs", hubstate.Changes{hubstate.Cluster: "a"})
	if keys, _ := s.concerned(); len(keys) > 2 {
		t.Errorf("%d Jobs are looked at when one is placed", len(keys))
	}
	s.forget(types.NamespacedName{Namespace: "team", Name: "runs"}, jobID(digest.Of(types.UID("runs"))))
	if keys, _ := s.concerned(); len(keys) != 1 || keys[0].Name != "waits" {
		t.Errorf("%d Jobs are looked at when it's gone", len(keys))
	}
}

// Very many Jobs of a group wait, and one after another runs: few of them are looked at when one is
// placed, and when it ends.
func TestWaitingJobsOfALargeGroup(t *testing.T) {
	s := newStore(line.NewRuntimes())
	see := func(name, worker string, conditions ...batchv1.JobCondition) *batchv1.Job {
		job := aJob(name, inGroup("pair"))
		job.UID, job.Status.Conditions = types.UID(name), conditions
		if worker != "" {
			hubstate.Set(job, hubstate.Changes{hubstate.Cluster: worker})
		}
		s.observe(job, noon)
		return job
	}
	for i := range 3000 {
		s.open(keyOf(see(fmt.Sprint("waits-", i), ""))).await(true)
	}
	s.concerned()
	for i := range 3 {
		name := fmt.Sprint("waits-", i)
		see(name, "a")
		if keys, _ := s.concerned(); len(keys) == 0 || len(keys) > maxConcerned+2 {
			t.Errorf("%d Jobs are looked at when %s is placed", len(keys), name)
		}
		see(name, "a", batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
		if keys, _ := s.concerned(); len(keys) == 0 || len(keys) > maxConcerned+2 {
			t.Errorf("%d Jobs are looked at when %s is finished", len(keys), name)
		}
	}
}

// Of very many Jobs that something else concerns, most come after all others.
func TestRelatedJobsComeLast(t *testing.T) {
	w := newWorld(t)
	q := &byPriority{}
	w.triggers.queue = q
	keys := make([]types.NamespacedName, 3*maxRelated)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}
	}
	w.enqueueRelated(keys...)
	if q.count[0] != maxRelated || q.count[lowPriority] != len(keys)-maxRelated {
		t.Errorf("by priority: %v", q.count)
	}
}

// byPriority counts what is enqueued.
type byPriority struct {
	queue.Queue
	count map[int]int
}

func (q *byPriority) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	if q.count == nil {
		q.count = map[int]int{}
	}
	q.count[ptr.Deref(o.Priority, 0)] += len(requests)
}

// The one of very many Jobs that asks for all goes: one of them asks next, and the others stay as
// they are. When it has found a worker, all follow.
func TestAskerOfALargeGroupGoes(t *testing.T) {
	const jobs = 3000
	s := newStore(line.NewRuntimes())
	add := func(name, worker string) *batchv1.Job {
		job := aJob(name, inGroup("pair"))
		job.UID = types.UID(name)
		if worker != "" {
			hubstate.Set(job, hubstate.Changes{hubstate.Cluster: worker})
		}
		s.observe(job, noon)
		return job
	}
	asks := func() (asker *record) {
		for _, r := range s.records {
			if r.asks() {
				asker = r
			}
		}
		return asker
	}
	for i := range jobs {
		add(fmt.Sprint("job-", i), "")
	}
	asker := asks()
	s.concerned()
	s.forget(asker.key, idOf(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: types.UID(asker.key.Name)}}))
	if next, _ := s.concerned(); len(next) != 1 {
		t.Errorf("%d Jobs are looked at when the one that asks goes", len(next))
	}
	asker = asks()
	s.concerned()
	add(asker.key.Name, "a")
	if next, _ := s.concerned(); len(next) < jobs-2 {
		t.Errorf("%d Jobs follow the one that has found a worker", len(next))
	}
}

// labelledWorkers are workers of which only their labels are read, which is counted.
type labelledWorkers struct {
	workers
	read int
}

type labelledWorker struct {
	worker
	of   *labelledWorkers
	name string
}

func (l *labelledWorkers) list() (all []worker) {
	for i := range 100 {
		all = append(all, &labelledWorker{of: l, name: fmt.Sprint("w", i)})
	}
	return all
}

func (w *labelledWorker) Name() string { return w.name }

func (w *labelledWorker) View() clusters.View {
	w.of.read++
	view := clusters.View{}
	view.Labels = labels.Set{"name": w.name}
	return view
}

// The Jobs of a group may all have large selectors: few of them are compared with all workers, and
// each once.
func TestSelectorsOfALargeGroup(t *testing.T) {
	for name, row := range map[string]struct {
		selector func(i int) string
		ruledOut int
	}{
		"all alike":     {func(int) string { return "name!=w1" }, 1},
		"all different": {func(i int) string { return fmt.Sprint("name!=w", i) }, maxWants},
	} {
		all := &labelledWorkers{}
		r := &Reconciler{workers: all, store: newStore(line.NewRuntimes()), clock: newStepClock()}
		var kin []group.Kin
		for i := range maxKin {
			job := aJob(fmt.Sprint("job-", i), func(j *batchv1.Job) {
				j.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: row.selector(i)}
			})
			kin = append(kin, group.Kin{Job: job, Keys: []types.NamespacedName{keyOf(job)}})
		}
		passedOver := map[string]string{}
		if r.ruleOut(passedOver, kin); len(passedOver) != row.ruledOut || all.read > 100*row.ruledOut {
			t.Errorf("%s: %d workers are ruled out, want %d; their labels were read %d times", name, len(passedOver), row.ruledOut, all.read)
		}
	}
}

// All Jobs of a large group that wait follow it to another worker.
func TestALargeGroupThatWaitsMoves(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.submits(aJob("first", inGroup("pair"), wide))
	w.step(time.Minute)
	for i := range 3 * maxConcerned {
		w.submits(aJob(fmt.Sprint("job-", i), inGroup("pair"), func(j *batchv1.Job) { *j.Spec.Parallelism, *j.Spec.Completions = 1, 1 }))
	}
	w.step(time.Minute)
	w.addWorker("c", 300).connect()
	w.worker("a").drains(true)
	w.step(16 * time.Minute)
	if got := w.store.counted(); got[status{"", jobview.Pending}] > 0 {
		t.Errorf("where the Jobs are: %v", got)
	}
}

// A tenant has a JobSet of very many parts, and very many Workloads that name it as their owner:
// they're looked for once for all parts.
func TestAdmissionsOfALargeJobSet(t *testing.T) {
	var parts []string
	for i := range 1000 {
		parts = append(parts, fmt.Sprintf(`{"name":"part-%d","template":{"spec":{"parallelism":%d,"template":{}}}}`, i, i+1))
	}
	w := newWorld(t)
	w.jobSets = map[string]string{"pair": `{"metadata":{"namespace":"team","name":"pair","uid":"uid-of-pair"},"spec":{"replicatedJobs":[` +
		strings.Join(parts, ",") + `]}}`}
	w.submits(aJob("pair-part-0-0", ofJobSet))
	asked := 0
	w.kueue.asked = func() { asked++ }
	w.step(time.Second)
	if asked == 0 || asked > 20 {
		t.Errorf("Workloads are looked for %d times", asked)
	}
}

// A tenant writes much into the status of the Jobs of a group. Of a worker that one of them leaves,
// only the name is remembered, and not all that the hub has answered beside it.
func TestLittleIsKeptOfWhatAGroupLeaves(t *testing.T) {
	const jobs, large = 50, 1 << 20
	s := newStore(line.NewRuntimes())
	before := heap().HeapAlloc
	for i := range jobs {
		job := aJob(fmt.Sprint("job-", i), inGroup("pair"))
		job.UID = types.UID(job.Name)
		s.observe(job, noon)
		answer := job.DeepCopy()
		hubstate.Set(answer, hubstate.Changes{hubstate.Cluster: "a", hubstate.MovedFrom: "b", hubstate.Usage: strings.Repeat("x", large)})
		seen := answer.DeepCopy()
		packed.MakeStub(seen)
		s.open(keyOf(job)).wrote(answer, noon)
		s.observe(seen, noon)
	}
	if took := int64(heap().HeapAlloc) - int64(before); took > jobs*large/10 { //nolint:gosec // no heap has 2^63 bytes
		t.Errorf("%d KiB are held of each Job", took/jobs>>10)
	}
	if on := s.placesOf(group.ID{Namespace: "team", Name: "pair"}); len(on) != 1 || on[0].Worker != "a" {
		t.Errorf("the group is in %v", on)
	}
}
