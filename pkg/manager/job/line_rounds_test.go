package job

import (
	"fmt"
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
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

// What the line promises: a walk judges at most maxTries Jobs, and at most maxInVain Jobs of one
// namespace in vain.
const (
	maxTries  = 100
	maxInVain = 10
)

// walks has one walk go through the line.
func (w *world) walks() {
	at, _ := w.clock.next()
	w.clock.SetTime(at)
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

// Jobs that are judged in vain at each change hold up nobody, however many a user makes of them,
// and however much happens meanwhile: the first walk looks at the others, and each of them has its
// turn in time.
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
			for ; maps.Collect(w.line.Waits())[inTeam("last")].InLine; walks++ {
				if walks > 2*teams*maxInVain/maxTries+2 {
					w.fail("it isn't chosen in %d walks", walks)
				}
				// something happens all the time
				w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.AnyChange})
				w.walks()
			}
			for i := range 300 {
				key := types.NamespacedName{Namespace: fmt.Sprintf("mallory-%02d", i%teams), Name: fmt.Sprintf("alone-%03d", i)}
				if wait := maps.Collect(w.line.Waits())[key]; !wait.InLine {
					w.fail("%s: %+v", key, wait)
				}
			}
		})
	}
}

// Room that comes while a user's many Jobs are judged is for all others by the next walk, though
// these were judged in vain before.
func TestRoomComesWhileJobsAreJudged(t *testing.T) {
	const jobs = 300
	w := newFullWorld(t)
	for i := range jobs {
		w.submits(aJob(fmt.Sprintf("alone-%03d", i), near, ofTeam("mallory")))
	}
	w.step(time.Minute)
	w.queues(aJob("last", near))
	judged := func() uint64 { return maps.Collect(w.line.Waits())[inTeam("last")].Judged }
	before := judged()
	w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.AnyChange})
	w.walks()
	first := judged()
	w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.AnyChange})
	w.walks()
	if second := judged(); first == before || second == first || w.line.IsAtRest() {
		w.fail("it was judged at %d, %d and %d; at rest: %v", before, first, second, w.line.IsAtRest())
	}
}

// Room that comes while the many Jobs of a namespace are judged is for those who go first, though
// these were judged in vain before.
func TestRoomComesForTheFirst(t *testing.T) {
	w := newFullWorld(t)
	for i := range 5 * maxInVain {
		w.submits(aJob(fmt.Sprintf("wide-%03d", i), pods(8)))
	}
	w.step(time.Minute)
	w.line.WorkerChanged("b") // all are judged
	w.walks()
	if w.line.IsAtRest() {
		w.fail("the first walk has judged all")
	}
	for i := range 8 {
		w.worker("a").ledger.Release(inTeam(fmt.Sprintf("small-%d", i+1)))
	}
	w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.RoomChange})
	w.walks()
	for key, wait := range w.line.Waits() {
		if first := key.Name == "wide-000"; first == wait.InLine {
			w.fail("%s: %+v", key.Name, wait)
		}
	}
}

// Those behind a Job in several workers wait until it has decided for itself, but not for a second
// such Job of its namespace.
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
		if walks > 2 {
			w.fail("it isn't placed after %d walks", walks)
		}
		w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.AnyChange})
		w.walks()
		w.run()
	}
	if walks < 2 {
		w.fail("it waits for no decision")
	}
}

// While something happens all the time, the last of those that are judged in vain has its turn,
// too.
func TestEverybodyHasATurn(t *testing.T) {
	w := newFullWorld(t)
	for i := range 100 {
		w.submits(aJob(fmt.Sprintf("alone-%03d", i), near))
	}
	w.step(time.Minute)
	w.worker("a").ledger.Release(inTeam("small-1"))
	before := w.asked()
	for range 100/maxInVain + 1 {
		w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.AnyChange})
		w.walks()
	}
	for name, asked := range w.asked() {
		if asked == before[name] {
			w.fail("%s was not judged", name)
		}
	}
}

// heavy has a Job take much work in a worker with very many nodes: it names nodes that don't exist.
func heavy(job *batchv1.Job) {
	near(job)
	terms := make([]corev1.NodeSelectorTerm, 150)
	for i := range terms {
		terms[i].MatchExpressions = []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"none"}},
		}
	}
	job.Spec.Template.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}
}

// Of Jobs that take much work, few are judged until the others were looked at, and as much room is
// for these as without them.
func TestHeavyJobsHoldUpNobody(t *testing.T) {
	w := newFullWorld(t)
	for i := range 1000 {
		name := fmt.Sprint("without-cpu-", i)
		w.worker("a").ledger.SetNode(placementtest.NewNode(name).Label(corev1.LabelHostname, name).Has("cpu", "0", "pods", "110").Obj())
	}
	for i := range 2 * maxInVain {
		w.submits(aJob(fmt.Sprintf("heavy-%02d", i), heavy, ofTeam("mallory")))
	}
	w.queues(aJob("last", pods(1)))
	before := w.asked()
	w.worker("a").ledger.Release(inTeam("small-1"))
	w.triggers.CapacityFreed("a", placement.Change{Kinds: placement.AnyChange})
	w.walks()
	if maps.Collect(w.line.Waits())[inTeam("last")].InLine {
		w.fail("it isn't chosen in the first walk")
	}
	var judged judgements
	judged.count(w, before)
	if judged.judged > 4 {
		w.fail("%d Jobs were judged", judged.judged)
	}
}
