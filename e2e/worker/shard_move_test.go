package worker_test

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// part is a worker of a Job that runs in two: a cluster with its own controller.
type part struct {
	*scene
	has     intervals.Set
	restart func() // kills the controller and starts it again
}

const sharedIndexes = 40

// openPart starts a part of the Job. Every third index ends at once, the others when late is
// closed.
func openPart(t *testing.T, cluster string, has intervals.Set, late <-chan struct{}) *part {
	t.Helper()
	s := open(t, cluster)
	s.ok(workertest.AddNode(s.Context(), s.Client))
	name := "example.com/" + s.ns
	args := []string{"--managed-by=" + name, "--sync-batch-period=" + batch, "--pod-failure-backoff=1ms"}
	controller := s.controller(nil, args...)
	s.start(rigtest.ManagedBy(name), indexed(4, sharedIndexes), shard(has.String()))
	go s.Serve(s.Context(), func(p corev1.Pod) (int32, bool) {
		select {
		case <-late:
			return 0, true
		default:
			return 0, workertest.Index(p)%3 == 0
		}
	}, func(err error) { t.Error(err) })
	return &part{scene: s, has: has, restart: func() {
		controller.Kill()
		controller = s.controller(nil, args...)
	}}
}

func setOf(text string) intervals.Set { return intervals.ParseLenient(text, sharedIndexes) }

func observedOf(j *batchv1.Job) intervals.Set {
	return setOf(j.Annotations[v1alpha1.AnnotationIndexesObserved])
}

// giveBack asks for indexes, and returns those that the worker hasn't started, by its own word. The
// last one must be among them: it shows that the worker has heard.
func (p *part) giveBack(asked intervals.Set) intervals.Set {
	p.t.Helper()
	p.assign(p.has.Minus(asked).String())
	last := asked.First(asked.Len())[asked.Len()-1]
	job := p.until(func(j *batchv1.Job) bool {
		return setOf(j.Annotations[v1alpha1.AnnotationIndexes]).Intersect(asked).Len() == 0 && !observedOf(j).Has(last)
	})
	free := asked.Minus(observedOf(job)).Minus(setOf(job.Status.CompletedIndexes))
	p.has = p.has.Minus(free)
	return free
}

// take adds indexes. What the worker has been asked to give back, and has kept, is its again.
func (p *part) take(more intervals.Set) {
	p.t.Helper()
	p.has = p.has.Union(more)
	p.assign(p.has.String())
}

func (p *part) started(which func(corev1.Pod) bool) intervals.Set {
	p.t.Helper()
	var indexes []int
	for _, pod := range p.pods(which) {
		indexes = append(indexes, workertest.Index(pod))
	}
	return intervals.Of(indexes...)
}

// Two controllers, in two clusters, run one Job: its indexes go back and forth while they run, and
// the controllers are killed on the way. Each index is started in one cluster only, and completes
// once.
func TestTwoWorkersShareAJob(t *testing.T) {
	t.Parallel()
	late := make(chan struct{})
	half := intervals.Range(0, sharedIndexes/2)
	east := openPart(t, "worker", half, late)
	west := openPart(t, "older", intervals.Range(0, sharedIndexes).Minus(half), late)
	from, to := east, west
	moved, kept := 0, 0
	for round := range 8 {
		from.until(active(4)) // as many Pods as may run: the highest indexes have none
		left := from.has.Minus(from.started(every))
		if left.Len() < 4 {
			break
		}
		asked := left.Minus(intervals.Of(left.First(left.Len() / 2)...)).Union(from.started(workertest.Active))
		if round%2 == 0 {
			from.restart()
		}
		free := from.giveBack(asked)
		moved, kept = moved+free.Len(), kept+asked.Minus(free).Len()
		to.take(free)
		from.take(nil)
		if round%3 == 0 {
			to.restart()
		}
		if twice := east.started(every).Intersect(west.started(every)); len(twice) > 0 {
			t.Fatalf("round %d: indexes %s were started in both", round, twice)
		}
		from, to = to, from
	}
	close(late)
	if moved < 5 || kept < 5 {
		t.Errorf("%d indexes were moved, and %d asked for too late: the test shows too little", moved, kept)
	}
	t.Logf("%d indexes were moved, %d had been started", moved, kept)
	ended := func(p *part) intervals.Set {
		return setOf(p.until(func(j *batchv1.Job) bool { return p.has.SubsetOf(setOf(j.Status.CompletedIndexes)) }).Status.CompletedIndexes)
	}
	inEast, inWest := ended(east), ended(west)
	if all := inEast.Union(inWest).String(); all != fmt.Sprintf("0-%d", sharedIndexes-1) || len(inEast.Intersect(inWest)) > 0 {
		t.Errorf("completed: %s in one, %s in the other", inEast, inWest)
	}
	if pods := slices.Concat(east.pods(every), west.pods(every)); len(pods) != sharedIndexes {
		t.Errorf("%d Pods for %d indexes", len(pods), sharedIndexes)
	}
	for _, p := range []*part{east, west} {
		if job, err := p.Client.BatchV1().Jobs(p.ns).Get(p.Context(), "job", metav1.GetOptions{}); err != nil || has(job, batchv1.JobComplete) != nil {
			t.Errorf("%v, status %+v", err, job.Status)
		}
	}
}
