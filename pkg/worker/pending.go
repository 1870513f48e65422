package worker

import (
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"

	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// memory is what the controller knows of its Jobs beyond the cache, see "Reading its own writes" in
// doc.go.
type memory struct {
	lock sync.Mutex
	jobs map[types.NamespacedName]*pending
	// byUID are the Jobs whose Pods have the Job's UID in a label, and manual the others, whose users
	// wrote their selectors, by namespace.
	byUID  map[types.UID]types.NamespacedName
	manual map[string]sets.Set[types.NamespacedName]
	// bare counts the Pods without a controller by namespace, which a sync of each of manual looks at.
	bare map[string]int
}

func newMemory() *memory {
	return &memory{
		jobs: map[types.NamespacedName]*pending{}, byUID: map[types.UID]types.NamespacedName{},
		manual: map[string]sets.Set[types.NamespacedName]{}, bare: map[string]int{},
	}
}

// addLocked takes in a Job, in place of an earlier one of its name.
func (m *memory) addLocked(key types.NamespacedName, p *pending) {
	m.removeLocked(key)
	m.jobs[key] = p
	if p.selector.Value(batchv1.ControllerUidLabel) == string(p.uid) {
		m.byUID[p.uid] = key
		return
	}
	if p.selector.IsNone() {
		return // no Pod is offered to it
	}
	if m.manual[key.Namespace] == nil {
		m.manual[key.Namespace] = sets.New[types.NamespacedName]()
	}
	m.manual[key.Namespace].Insert(key)
}

func (m *memory) removeLocked(key types.NamespacedName) {
	p := m.jobs[key]
	if p == nil {
		return
	}
	delete(m.jobs, key)
	m.offerNoneLocked(key, p)
}

// offerNoneLocked has no Pod offered to a Job any more.
func (m *memory) offerNoneLocked(key types.NamespacedName, p *pending) {
	delete(m.byUID, p.uid)
	if manual := m.manual[key.Namespace].Delete(key); len(manual) == 0 {
		delete(m.manual, key.Namespace)
	}
}

// of returns what is known of this Job. It forgets an earlier Job of the same name.
func (m *memory) of(job *batchv1.Job) *pending {
	m.lock.Lock()
	defer m.lock.Unlock()
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	p := m.jobs[key]
	if p == nil || p.uid != job.UID {
		p = &pending{
			uid: job.UID, selector: heldSelector(job), created: map[types.UID]createdPod{}, adopted: map[types.UID]*corev1.Pod{},
			deleted: sets.New[types.UID](), untracked: sets.New[types.UID](), gone: sets.New[types.UID](), refused: sets.New[types.UID](),
		}
		m.addLocked(key, p)
	}
	if job.DeletionTimestamp != nil {
		m.offerNoneLocked(key, p) // it adopts none
	}
	if p.generation != job.Generation {
		p.generation = job.Generation
		clear(p.refused)
	}
	return p
}

// maxHeldSelector is how many keys and values a selector may have that is held of a Job.
const maxHeldSelector = 64

// heldSelector is a Job's selector; none, if it's large.
func heldSelector(job *batchv1.Job) plan.Selector {
	if of := job.Spec.Selector; of != nil {
		n := len(of.MatchLabels)
		for i := range of.MatchExpressions {
			n += 1 + len(of.MatchExpressions[i].Values)
		}
		if n > maxHeldSelector {
			return plan.Selector{}
		}
	}
	return plan.SelectorOf(job)
}

// selectorOf is the selector of the Job, also a large one, which is read anew in each sync.
func (p *pending) selectorOf(job *batchv1.Job) plan.Selector {
	if p.selector.IsNone() {
		return plan.SelectorOf(job)
	}
	return p.selector
}

// podEnded counts a Pod of the Job that has ended, and reports whether that fills the batch.
func (m *memory) podEnded(key types.NamespacedName, uid types.UID) bool {
	p := m.find(key, uid)
	return p != nil && p.batch.add()
}

// podGone takes note that the cache no longer shows a Pod of the Job.
func (m *memory) podGone(key types.NamespacedName, uid, pod types.UID) {
	if p := m.find(key, uid); p != nil {
		p.note(p.gone, pod)
	}
}

// find returns what is known of the Job with this UID, nil if nothing is.
func (m *memory) find(key types.NamespacedName, uid types.UID) *pending {
	m.lock.Lock()
	defer m.lock.Unlock()
	if p := m.jobs[key]; p != nil && p.uid == uid {
		return p
	}
	return nil
}

const (
	// maxAdopters bounds the Jobs that are offered one Pod, which one of them can adopt: a tenant may
	// make thousands with the same selector.
	maxAdopters = 100
	// maxAdoptersLooks bounds how many labels are looked at for that, all under the one lock.
	maxAdoptersLooks = 5000
	// maxBareLooks bounds how many Pods without a controller the syncs of these Jobs look at together,
	// unless one of them alone looks at more.
	maxBareLooks = 50_000
)

// countBare adds to the number of Pods without a controller, if the Pod is one.
func (m *memory) countBare(p *corev1.Pod, by int) {
	if p == nil || metav1.GetControllerOfNoCopy(p) != nil {
		return
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.bare[p.Namespace] += by; m.bare[p.Namespace] <= 0 {
		delete(m.bare, p.Namespace)
	}
}

// adopters are Jobs that may adopt the Pod. Others, one that was never synced, and one with a large
// selector find it in their next sync.
func (m *memory) adopters(p *corev1.Pod) (jobs []types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(p.Labels) == 0 {
		return nil
	}
	key, is := m.byUID[types.UID(p.Labels[batchv1.ControllerUidLabel])]
	if is && key.Namespace == p.Namespace && m.jobs[key].selector.Matches(p.Labels) {
		jobs = append(jobs, key)
	}
	most := max(1, min(maxAdopters, maxBareLooks/max(1, m.bare[p.Namespace])))
	looks := 0
	for key := range m.manual[p.Namespace] {
		if len(jobs) >= most || looks >= maxAdoptersLooks {
			break
		}
		matches, looked := m.jobs[key].selector.Look(p.Labels)
		if looks += looked + 1; matches {
			jobs = append(jobs, key)
		}
	}
	return jobs
}

// forgetWritten drops a large Job as it was written: the next sync reads it from the API server.
func (m *memory) forgetWritten(key types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if p := m.jobs[key]; p != nil {
		p.written = nil
	}
}

func (m *memory) forget(key types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.removeLocked(key)
}

// pending are the writes about one Job that the API server has accepted and the cache may not show
// yet. One goroutine at a time syncs a Job; the lock is for the parallel requests of one sync, and
// for gone. The event handlers use only that, what never changes, and batch.
type pending struct {
	// These never change. A large selector isn't held.
	uid      types.UID
	selector plan.Selector

	lock      sync.Mutex
	written   *batchv1.Job // as the last status write returned it
	created   map[types.UID]createdPod
	adopted   map[types.UID]*corev1.Pod // as of their adoption
	deleted   sets.Set[types.UID]
	untracked sets.Set[types.UID]
	// refused are Pods whose deletion was refused, in this generation of the Job: another may want
	// them.
	refused    sets.Set[types.UID]
	generation int64
	// gone are the Pods whose deletion the cache has shown since the last sync. The cache need not
	// have shown them to any sync before.
	gone    sets.Set[types.UID]
	backoff *plan.Backoff
	// unanswered: a request to create a Pod got no answer, so that there may be a Pod that neither
	// created nor the cache has; see unanswered.go.
	unanswered bool
	shard      shardMemory
	// grouped is the generation of the Job that its PodGroup is up to date with; see podgroup.go.
	grouped int64

	batch batch
}

type createdPod struct {
	*corev1.Pod
	at time.Time
}

// latest returns the newer of the cached and the written Job.
func (p *pending) latest(cached *batchv1.Job) *batchv1.Job {
	if p.written == nil {
		return cached
	}
	if !ownwrite.Newer(p.written, cached) {
		p.written = nil
		return cached
	}
	return p.written
}

// observe forgets what the cache shows by now, and what it showed since the last sync and no longer
// does.
func (p *pending) observe(cached []*corev1.Pod) {
	p.lock.Lock()
	for uid := range p.gone {
		delete(p.created, uid)
	}
	clear(p.gone)
	p.lock.Unlock()
	existing := make(sets.Set[types.UID], len(cached)+len(p.created))
	for _, pod := range cached {
		existing.Insert(pod.UID)
		delete(p.created, pod.UID)
		if adopted := p.adopted[pod.UID]; adopted != nil && !ownwrite.Newer(adopted, pod) {
			delete(p.adopted, pod.UID)
		}
	}
	for uid := range p.created {
		existing.Insert(uid)
	}
	maps.DeleteFunc(p.adopted, func(uid types.UID, _ *corev1.Pod) bool { return !existing.Has(uid) })
	p.deleted = p.deleted.Intersection(existing)
	p.untracked = p.untracked.Intersection(existing)
	p.refused = p.refused.Intersection(existing)
}

// isOverdue reports whether the cache should show a created Pod by now. It may have been deleted
// before it could.
func (p *pending) isOverdue(now time.Time) bool {
	for _, c := range p.created {
		if now.Sub(c.at) >= cacheLag {
			return true
		}
	}
	return false
}

func (p *pending) writes() plan.Pending {
	out := plan.Pending{Adopted: p.adopted, Deleted: p.deleted, Untracked: p.untracked, Refused: p.refused}
	for _, c := range p.created {
		out.Created = append(out.Created, c.Pod)
	}
	return out
}

// noteCreated takes a Pod as the API server has it. One that another kind of controller owns by now
// isn't the Job's.
func (r *reconciler) noteCreated(known *pending, p *corev1.Pod) {
	object, _ := slimming{r.options}.pod(p)
	slim := asPod(object)
	if slim == nil {
		return
	}
	known.lock.Lock()
	defer known.lock.Unlock()
	known.created[slim.UID] = createdPod{slim, r.clock.Now()}
}

// noteAdopted takes a Pod that an earlier process, or sync, may have untracked.
func (p *pending) noteAdopted(pod *corev1.Pod) {
	p.adopted[pod.UID] = pod
	p.untracked.Delete(pod.UID)
}

// note adds the UID of a Pod to one of the sets.
func (p *pending) note(of sets.Set[types.UID], pod types.UID) {
	p.lock.Lock()
	defer p.lock.Unlock()
	of.Insert(pod)
}
