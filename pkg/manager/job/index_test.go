package job

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// onWorker is a Job on a worker that hasn't started; "" isn't placed.
func onWorker(name, worker string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	if worker != "" {
		job.Annotations = map[string]string{v1alpha1.AnnotationCluster: worker}
	}
	return job
}

func finished(job *batchv1.Job) *batchv1.Job {
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	return job
}

func running(job *batchv1.Job) *batchv1.Job {
	job.Status.StartTime = ptr.To(metav1.NewTime(noon))
	return job
}

func TestPlacements(t *testing.T) {
	p := newPlacements()
	p.Set(onWorker("one", ""))
	p.Set(onWorker("two", "a"))
	p.Set(running(onWorker("three", "a")))
	if before, after := p.Set(onWorker("one", "a")); before != (place{"", PhasePending}) || after != (place{"a", PhasePlaced}) {
		t.Errorf("one went from %v to %v", before, after)
	}
	p.Set(finished(onWorker("three", "a")))
	p.Set(onWorker("two", "b"))

	want := map[place]int{{"a", PhasePlaced}: 1, {"a", PhaseFinished}: 1, {"b", PhasePlaced}: 1}
	if got := p.Counts(); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if got := p.Unfinished("a"); got != 1 {
		t.Errorf("%d unfinished on a, want 1", got)
	}
	if got := len(p.On("a")); got != 2 {
		t.Errorf("%d Jobs on a, want 2", got)
	}
	for _, name := range []string{"one", "two", "three", "three"} {
		p.Remove(keyOf(onWorker(name, "")))
	}
	if len(p.Counts())+len(p.jobs)+len(p.on) != 0 {
		t.Errorf("left behind: %v %v %v", p.count, p.jobs, p.on)
	}
}

func TestLanesParkWhatFindsNoPlace(t *testing.T) {
	var resumed []types.NamespacedName
	l := newLanes(2, func(keys ...types.NamespacedName) { resumed = append(resumed, keys...) })
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

	for _, name := range []string{"one", "two"} {
		if !l.Enter("slow", key(name)) {
			t.Fatalf("no place for %s in an empty lane", name)
		}
	}
	if l.Enter("slow", key("three")) || l.Enter("slow", key("four")) {
		t.Fatal("a full lane took a Job")
	}
	if !l.Enter("quick", key("five")) {
		t.Fatal("a full lane kept a Job from another")
	}
	l.Leave("slow")
	l.Leave("slow")
	if want := []types.NamespacedName{key("three"), key("four")}; !slices.Equal(resumed, want) {
		t.Errorf("resumed %v, want %v", resumed, want)
	}
	l.Leave("quick")
	if len(l.lanes) != 0 {
		t.Errorf("left behind: %v", l.lanes)
	}
}

// Jobs come in any order, are parked more than once, and find nothing to do when they come back:
// all of them have to have their turn.
func TestLanesForgetNobody(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var turns []types.NamespacedName
		l := newLanes(1+random.IntN(3), func(keys ...types.NamespacedName) { turns = append(turns, keys...) })
		waiting := map[types.NamespacedName]bool{}
		inside := 0
		for range 200 {
			if random.IntN(2) == 0 { // of ten names, some come again while they're parked
				turns = append(turns, types.NamespacedName{Name: strconv.Itoa(random.IntN(10))})
			}
			switch {
			case len(turns) > 0 && random.IntN(2) == 0:
				key := turns[0]
				turns = turns[1:]
				delete(waiting, key)
				if random.IntN(4) == 0 {
					break // nothing to do for it
				}
				if l.Enter("worker", key) {
					inside++
				} else {
					waiting[key] = true
				}
			case inside > 0:
				inside--
				l.Leave("worker")
			}
		}
		for ; inside > 0; inside-- {
			l.Leave("worker")
		}
		for _, key := range turns {
			delete(waiting, key)
		}
		if len(waiting) > 0 || len(l.lanes) > 0 {
			t.Fatalf("seed %d: forgotten %v, left behind %v", seed, waiting, l.lanes)
		}
	}
}

func TestPassedOverExpires(t *testing.T) {
	p := newPassedOver()
	p.Add("uid", "a", "name taken", noon.Add(time.Minute))
	p.Add("uid", "b", "refused", noon.Add(time.Hour))
	if got, want := p.For("uid", noon), map[string]string{"a": "name taken", "b": "refused"}; !maps.Equal(got, want) {
		t.Errorf("at first: %v, want %v", got, want)
	}
	if got, want := p.For("uid", noon.Add(2*time.Minute)), map[string]string{"b": "refused"}; !maps.Equal(got, want) {
		t.Errorf("later: %v, want %v", got, want)
	}
	p.Forget("uid")
	if got := p.For("uid", noon); got != nil {
		t.Errorf("forgotten: %v", got)
	}
}

func TestMemory(t *testing.T) {
	m := newMemory()
	job := onWorker("one", "a")
	job.UID = "uid"
	job.CreationTimestamp = metav1.NewTime(noon)

	m.Watch(job, noon.Add(900*time.Millisecond))
	if got := m.age(job, noon.Add(time.Second)); got != 100*time.Millisecond {
		t.Errorf("a Job seen while new is %s old, want 100ms", got)
	}
	m.Unmet(job, mirror.Patch{}, []mirror.Note{{Field: "spec.parallelism"}}, noon)
	if got := m.Of("uid").unmetSince(noon.Add(-time.Minute)); len(got.Notes) != 1 {
		t.Errorf("unmet %v, want one", got)
	}
	if got := m.Of("uid").unmetSince(noon.Add(time.Minute)); got.Notes != nil {
		t.Errorf("unmet %v after its time, want none", got)
	}
	m.Waiting("uid", "mirror", true, noon)
	if got := m.Waiting("uid", "mirror", true, noon.Add(time.Hour)); got != noon {
		t.Errorf("waits since %s, want %s", got, noon)
	}
	m.Waiting("uid", "mirror", false, noon)
	if got := m.Waiting("uid", "another", true, noon.Add(time.Hour)); got != noon.Add(time.Hour) {
		t.Errorf("another mirror waits since %s", got)
	}
	job.DeletionTimestamp, job.Finalizers = ptr.To(metav1.NewTime(noon)), []string{metav1.FinalizerOrphanDependents}
	m.Watch(job, noon)
	job.Finalizers = nil
	m.Watch(job, noon)
	if !m.Of("uid").orphan {
		t.Error("the policy Orphan is forgotten when its finalizer goes")
	}
	m.Forget("uid")
	if len(m.jobs) != 0 {
		t.Error("left behind")
	}
}
