package job

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/change"
)

// near has a Job want to be near Pods that don't exist, which nothing but its judgement shows.
func near(job *batchv1.Job) {
	job.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: metav1.SetAsLabelSelector(map[string]string{"app": "none"}), TopologyKey: corev1.LabelHostname,
		}},
	}}
}

func ofTeam(namespace string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Namespace = namespace }
}

// A round of walks judges everybody, and then there is rest.
func TestRoundGoesOn(t *testing.T) {
	w := newFullWorld(t)
	for i := range 5 * maxInVain {
		w.submits(aJob(fmt.Sprintf("alone-%03d", i), near))
	}
	w.step(time.Second)
	w.queues(aJob("last", pods(1)))
	at := w.clock.Now()
	w.ends("small-1")
	w.step(time.Second)
	w.wantPlaced(map[string]string{"last": "a", "alone-000": "", "alone-049": ""})
	if start := w.hub.jobs[inTeam("last")].Status.StartTime; start == nil || start.Sub(at) > 3*time.Second {
		w.fail("it started at %v", start)
	}
	w.step(time.Minute)
	if w.clock.HasWaiters() {
		w.fail("there is no rest")
	}
}

// Jobs that are judged in vain at each change hold up nobody, however many a user makes of them, and however
// much happens meanwhile: the first walk looks at the others, and each of them has its turn in time.
func TestJobsInVainHoldUpNobody(t *testing.T) {
	for name, teams := range map[string]int{"of one namespace": 1, "of more namespaces than a walk can judge": 2 * maxTries / maxInVain} {
		t.Run(name, func(t *testing.T) {
			w := newFullWorld(t)
			for i := range 300 {
				w.submits(aJob(fmt.Sprintf("alone-%03d", i), near, ofTeam(fmt.Sprintf("mallory-%02d", i%teams))))
			}
			w.step(time.Minute)
			w.queues(aJob("last", pods(1)))
			w.worker("a").ledger.Release(inTeam("small-1"))
			walks := 0
			for ; w.scheduler.waiters[inTeam("last")].chosen == nil; walks++ {
				if walks > 2*teams*maxInVain/maxTries+2 {
					w.fail("it isn't chosen in %d walks", walks)
				}
				w.triggers.CapacityFreed("a", change.Change{Kinds: change.All}) // something happens all the time
				w.clock.Step(batchFreed + 301*batchFreedPerJob)
			}
			for i := range 300 {
				key := types.NamespacedName{Namespace: fmt.Sprintf("mallory-%02d", i%teams), Name: fmt.Sprintf("alone-%03d", i)}
				if waiter := w.scheduler.waiters[key]; waiter == nil || waiter.chosen != nil {
					w.fail("%s: %+v", key, waiter)
				}
			}
		})
	}
}

// Room that comes while a user's many Jobs are judged is for all others by the next walk, though these were
// judged in vain before.
func TestRoomComesWhileJobsAreJudged(t *testing.T) {
	const jobs = 300
	w := newFullWorld(t)
	for i := range jobs {
		w.submits(aJob(fmt.Sprintf("alone-%03d", i), near, ofTeam("mallory")))
	}
	w.step(time.Minute)
	w.queues(aJob("last", near))
	walk := func() { w.clock.Step(batchFreed + (jobs+1)*batchFreedPerJob) }
	last := w.scheduler.waiters[inTeam("last")]
	before := last.asked
	w.triggers.CapacityFreed("a", change.Change{Kinds: change.All})
	walk()
	first := last.asked
	w.triggers.CapacityFreed("a", change.Change{Kinds: change.All})
	walk()
	if second := last.asked; first == before || second == first || len(w.scheduler.behind) == 0 {
		w.fail("it was judged at %d, %d and %d; behind: %v", before, first, second, w.scheduler.behind)
	}
}

// Room that comes while the many Jobs of a namespace are judged is for those who go first, though these were judged
// in vain before.
func TestRoomComesForTheFirst(t *testing.T) {
	w := newFullWorld(t)
	for i := range 5 * maxInVain {
		w.submits(aJob(fmt.Sprintf("wide-%03d", i), pods(8)))
	}
	w.step(time.Minute)
	w.scheduler.workerChanged("b") // all are judged
	walk := func() { w.clock.Step(batchFreed + (5*maxInVain+1)*batchFreedPerJob) }
	walk()
	if len(w.scheduler.behind) == 0 {
		w.fail("the first walk has judged all")
	}
	for i := range 8 {
		w.worker("a").ledger.Release(inTeam(fmt.Sprintf("small-%d", i+1)))
	}
	w.triggers.CapacityFreed("a", moreRoom)
	walk()
	for key, waiter := range w.scheduler.waiters {
		if first := key.Name == "wide-000"; first != (waiter.chosen != nil) {
			w.fail("%s: chosen: %v", key.Name, waiter.chosen)
		}
	}
}

// What is freed before the last walk of a round is looked at for those who were judged before.
func TestRoomComesAtTheEndOfARound(t *testing.T) {
	looks := 0
	clock := newStepClock()
	f := &freed{clock: clock, waiting: func() int { return 0 }, look: func() { looks++ }}
	f.add(moreRoom, "a")
	clock.Step(batchFreed)
	f.take()
	f.resume() // the walk stops
	f.add(moreRoom, "b")
	clock.Step(batchFreed)
	f.take()
	f.done()
	clock.Step(batchFreed)
	if workers, _ := f.take(); looks != 3 || workers["b"] == nil {
		t.Errorf("%d looks, the last at %v", looks, workers)
	}
	f.done()
	if f.is() || clock.HasWaiters() {
		t.Error("there is no rest")
	}
}

// Those behind a Job in several workers wait until it has decided for itself, but not for all such Jobs of one
// namespace.
func TestDividedJobsInVainHoldUpNobody(t *testing.T) {
	w := newFullWorld(t)
	w.parallelism = 4
	for i := range 5 * maxInVain {
		w.submits(aJob(fmt.Sprintf("divided-%03d", i), near, ofTeam("mallory"), func(job *batchv1.Job) {
			job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		}, annotated(v1alpha1.AnnotationMaxClusters, "All")))
	}
	w.step(time.Minute)
	w.queues(aJob("last", pods(1)))
	w.worker("a").ledger.Release(inTeam("small-1"))
	walks := 0
	for ; w.placedOn("last") == ""; walks++ {
		if walks > maxInVain+2 {
			w.fail("it isn't placed after %d walks", walks)
		}
		w.triggers.CapacityFreed("a", change.Change{Kinds: change.All})
		w.clock.Step(batchFreed + (5*maxInVain+1)*batchFreedPerJob)
		w.run()
	}
	if walks < maxInVain/2 {
		w.fail("%d walks show little", walks)
	}
}

// While something happens all the time, the last of those that are judged in vain has its turn, too.
func TestEverybodyHasATurn(t *testing.T) {
	w := newFullWorld(t)
	for i := range 100 {
		w.submits(aJob(fmt.Sprintf("alone-%03d", i), near))
	}
	w.step(time.Minute)
	w.worker("a").ledger.Release(inTeam("small-1"))
	before := w.asked()
	for range 100/maxInVain + 1 {
		w.triggers.CapacityFreed("a", change.Change{Kinds: change.All})
		w.clock.Step(batchFreed + 101*batchFreedPerJob)
	}
	for name, asked := range w.asked() {
		if asked == before[name] {
			w.fail("%s was not judged", name)
		}
	}
}
