package line

import (
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// entry is a Job that asks for room, and may have to wait for it.
type entry struct {
	waiting.Job
	// request has no Job while it waits, and of PassedOver what isn't known of the Job itself; and
	// nothing but RoomNow if no walk judges the Job.
	request placement.Request
	// exact is the Shape by which capacity is reserved, also of a large Job, and kin those of its Kin
	// that are judged; nil while it waits.
	exact *placement.Shape
	kin   []*placement.Shape
	// version is what the Job asks for. The manager's own writes leave it as it is.
	version mirror.Version
	// large: the Job has much in it, or takes much work to find nodes for. It gets no reservation.
	large bool
	// heavy: it takes much work to judge the Job. No walk judges a large or heavy one, and nobody does
	// so under the lock.
	heavy bool
	// isNext: a walk has left the Job to its own reconcile.
	isNext bool
	// lateAt is when a walk last waited for its decision in vain; zero: none did.
	lateAt time.Time
	// reads are what it's judged by besides.
	reads placement.Reads
	// out is where no node came for its Pods.
	out *jobStockouts
	// fitsNowhere: no worker can take it, whatever ends there.
	fitsNowhere bool
	// altered: a RuntimeClass of the worker may alter what its Pods tolerate.
	altered bool
	// group is that of the Job. Room is reserved for the others of it, too.
	group group.ID
	// forGroup: the Job asks for all of its group.
	forGroup bool
	// class is the name of its PriorityClass.
	class string
	// chosen is the worker that a walk has found for it, with capacity reserved there; nil: none yet.
	chosen *placement.Decision
	// reserved is the reservation that it had until then.
	reserved *waiting.Reservation
	// began is when it began to decide for itself; zero: that isn't known.
	began time.Time
	// said is why it waits, as it was last reported.
	said string
	// asked is freed.count before it was last judged: until more happens, the answer is the same.
	asked uint64
	// tries is how many Jobs it counts for: it's more than one if it took much work to judge it, or to
	// find out what it lacks.
	tries int
}

// endGrace is how long after its deadline a Job's last Pod has ended, and its successor is let in.
const endGrace = 30 * time.Second

// Question is a Job that asks for room.
type Question struct {
	placement.Request
	Class PriorityClass
	// Exempt: Kueue has decided that the Job goes. It waits for nobody.
	Exempt bool
	// Group is that of the Job; zero: it's in none. Kin are the Jobs of it that are to go to the same
	// worker, and that have no room there yet.
	Group group.ID
	Kin   []group.Kin
	// Leave is the worker that the Job leaves; empty: it isn't placed.
	Leave string
	// Began is when the work for the question began.
	Began time.Time
}

// PriorityClass is the PriorityClass of a Job's Pods on the hub. The zero value is that of Pods
// without one.
type PriorityClass struct {
	Name  string
	Value int32
}

// newEntry makes the entry of a question.
func (l *Line) newEntry(q Question) *entry {
	job := q.Job
	altered := job.Spec.Template.Spec.RuntimeClassName != nil
	exact := placement.ShapeOf(&job.Spec.Template)
	large := job.Size() > maxInLine || placement.IsHeavy(&job.Spec.Template.Spec) || exact.Bytes() > maxKeptShape
	w := &entry{
		Job: waiting.Job{
			Key: keyOf(job), UID: job.UID, Priority: q.Class.Value, Created: job.CreationTimestamp.Time,
			Shape: shapeInLine(exact, &job.Spec.Template, large), Pods: placement.PodsWanted(job),
			Exempt: q.Exempt, Usual: l.runtimes.Usual(job.Namespace),
		},
		tries:    1,
		request:  q.Request,
		exact:    exact,
		group:    q.Group,
		forGroup: len(q.Mates) > 0,
		class:    q.Class.Name,
		version:  mirror.VersionOf(job),
		large:    large,
		heavy:    large || selectors.Size(q.Selector)+q.Preference.Size() > maxKept,
		altered:  altered,
		began:    q.Began,
	}
	w.reads, w.out = placement.ReadsOf(&job.Spec.Template.Spec), l.stockouts.of(job) // without the lock: it takes a while
	for _, mate := range q.Mates {                                                   // they need as much as so many Pods of its own
		lost := waiting.Loss(w.Shape, placement.ShapeOf(&mate.Job.Spec.Template))
		w.Pods = min(w.Pods+lost*min(mate.Pods, math.MaxInt32), math.MaxInt32) // a product may be 2^62
	}
	if w.forGroup {
		for _, kin := range q.Kin[:min(len(q.Kin), placement.MaxMates)] { // those that were judged
			w.kin = append(w.kin, placement.ShapeOf(&kin.Job.Spec.Template))
		}
	}
	if deadline := job.Spec.ActiveDeadlineSeconds; deadline != nil {
		w.Runtime = time.Duration(*deadline)*time.Second + endGrace
	}
	return w
}

const (
	// maxInLine is the size of a Job, in bytes of protobuf, up to which it can get a reservation while
	// it waits, and a walk unpacks it and chooses for it.
	maxInLine = 64 << 10
	// maxKeptShape is up to how many bytes what Pods want of nodes is kept while their Job waits: it's
	// about 150 names of nodes. maxKept is that for what the Job wants of workers. They may take many
	// times their text.
	maxKeptShape = 8 << 10
	maxKept      = 4 << 10
)

// shapeInLine is the shape of a Job's Pods; of a large Job what they request, and not which nodes
// they want.
func shapeInLine(exact *placement.Shape, template *corev1.PodTemplateSpec, large bool) *placement.Shape {
	if !large {
		return exact
	}
	light := placement.ByResources(template)
	return placement.ShapeOf(&light)
}

// isTurnLocked reports whether it's a Job's turn: those that wait are looked at first when
// something was freed.
func (l *Line) isTurnLocked(w *entry) bool {
	others := l.order.Len()
	if l.order.Get(w.Key) != nil {
		others--
	}
	return w.Exempt || len(l.unjudged) == 0 && (others == 0 || w.isNext || !l.freed.isPending())
}

func (l *Line) admits(w *entry) func(string) int64 {
	return func(worker string) int64 { return l.order.Admits(&w.Job, worker, l.clock.Now()) }
}

// held is whose Pods and reservation count as free: those of a Job in several workers, or of one of
// a group, for which room may be held, and of no other Job of the namespace.
func (w *entry) held() types.NamespacedName {
	if w.Divisible || w.group != (group.ID{}) {
		return w.Key
	}
	return types.NamespacedName{Namespace: w.Key.Namespace}
}

// moreRoom is a change by what the manager holds for Jobs.
var moreRoom = placement.Change{Kinds: placement.RoomChange}

// joinLocked lets a Job wait in line for the workers that may have room for it one day.
func (l *Line) joinLocked(w *entry, decision placement.Decision) {
	l.withdrawLocked(w.Key, w)
	l.setNeeds(w, decision)
	w.said, w.Untold = decision.Named(), len(decision.Candidates) > 0
	w.isNext = false
	request := w.request
	if w.forgetRead(); w.isJudgedInWalks() {
		request.Job, request.Mates, request.PassedOver = nil, nil, l.passedOverBesides(w.Key, request.PassedOver)
		w.request = request
	}
	l.waiters[w.Key] = w
	if l.order.Add(&w.Job) {
		l.freed.add(placement.Change{})
	}
	if w.Exempt || w.Divisible {
		return
	}
	for _, c := range decision.Candidates { // it fits, and waits for its turn
		l.freed.add(moreRoom, c.Cluster)
	}
}

// passedOverBesides is what a map has beside what is known of a Job itself. That isn't kept twice:
// each worker may have refused very many Jobs. A walk reads it again.
func (l *Line) passedOverBesides(key types.NamespacedName, passedOver map[string]string) map[string]string {
	if len(passedOver) == 0 {
		return nil
	}
	var besides map[string]string
	known := l.jobs.PassedOver(key)
	for worker, why := range passedOver {
		if known[worker] == why {
			continue
		}
		if besides == nil {
			besides = map[string]string{}
		}
		besides[worker] = why
	}
	return besides
}

// awaitLocked lets a Job wait that isn't judged yet: any change has it looked at.
func (l *Line) awaitLocked(w *entry, candidates []placement.Cluster) {
	l.withdrawLocked(w.Key, w)
	waits := w.unjudged(candidates, waiting.Need{Lacks: waiting.Other})
	l.waiters[w.Key] = waits
	l.order.Add(&waits.Job)
}

// unjudged is what waits of a Job while it's judged: it may need something in any worker.
func (w *entry) unjudged(candidates []placement.Cluster, need waiting.Need) *entry {
	waits := *w
	waits.Needs = waiting.Needs{}
	waits.forgetRead()
	for i := range candidates {
		waits.Needs.Set(candidates[i].Name, need)
	}
	return &waits
}

// forgetRead drops what is read while the Job is judged: many may wait, of any size.
func (w *entry) forgetRead() {
	w.request = placement.Request{RoomNow: w.request.RoomNow}
	w.exact, w.kin = nil, nil
}

// isJudgedInWalks reports whether walks judge the Job while it waits. Others are judged in their
// own reconciles.
func (w *entry) isJudgedInWalks() bool {
	return !w.Exempt && !w.Divisible && !w.heavy && w.group == (group.ID{})
}

// Withdraw takes a Job out of the line that waits no more, or goes.
func (l *Line) Withdraw(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withdrawLocked(key, nil)
}

// withdrawLocked keeps the reservation if the Job joins again.
func (l *Line) withdrawLocked(key types.NamespacedName, again *entry) {
	w := l.waiters[key]
	if w == nil {
		return
	}
	delete(l.waiters, key)
	l.order.Remove(key)
	if w.chosen != nil {
		l.Release(w.chosen.Cluster, key)
	}
	if again != nil && again.UID == w.UID {
		again.lateAt = w.lateAt
		return
	}
	if r := l.order.Release(&w.Job); r != nil {
		l.freed.add(moreRoom, r.Worker)
	}
}

// takeChosenLocked returns what a walk has chosen for a Job; nil: nothing, or the Job is another by
// now.
func (l *Line) takeChosenLocked(request *placement.Request) *entry {
	w := l.waiters[keyOf(request.Job)]
	if w == nil || w.chosen == nil || w.UID != request.Job.UID || w.version != mirror.VersionOf(request.Job) {
		return nil
	}
	v, ok := l.workers.Worker(w.chosen.Cluster)
	if !ok || request.PassedOver[w.chosen.Cluster] != "" {
		return nil
	}
	if ready, _ := readiness(v.View()); !ready {
		return nil
	}
	delete(l.waiters, w.Key)
	return w
}

// dropChosenLocked gives back what a walk has chosen for a Job that is another by now.
func (l *Line) dropChosenLocked(key types.NamespacedName) {
	if w := l.waiters[key]; w != nil && w.chosen != nil {
		l.withdrawLocked(key, nil)
	}
}

// parallelismOf is how many Pods a shard runs at once.
func parallelismOf(job *batchv1.Job) int64 { return int64(ptr.Deref(job.Spec.Parallelism, 1)) }
