package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// job is all Jobs of one name: there may be Pods of one that is gone beside those of its successor.
type job struct {
	key types.NamespacedName
	// reservation is nil if the manager has made none.
	reservation *reservation
	groups      []*group // nearly always one
	// existing counts the Pods of all groups.
	existing int64
}

// group is one Job's Pods.
type group struct {
	id     objectnames.ID
	number uint64 // the oldest has the lowest
	job    *job
	// position is where it is among the groups of its job.
	position int
	pods     []*pod // often one
	// live counts the Pods that are live.
	live int
	// ran: at least one of its Pods ever ran, perhaps one that is gone.
	ran bool
}

// Work is what it takes to compare all nodes with a Shape, in plain comparisons.
func (l *Ledger) Work(shape *Shape) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.work(shape)
}

func (l *Ledger) work(shape *Shape) (work int) {
	for _, n := range l.sorted {
		work += shape.WorkOn(n.object)
	}
	return work
}

// Reserve holds capacity for a Job's Pods: for count of them, minus those that are bound to a node.
// Calling it again changes the count or the shape; the same values change nothing, and notify
// nobody: it reports whether something has changed. The key is the mirror's namespace and name.
func (l *Ledger) Reserve(key types.NamespacedName, shape *Shape, count int64) (changed bool) {
	l.update(func() {
		j := l.job(key)
		if j.reservation != nil && j.reservation.want == max(count, 0) && j.reservation.shape.key == shape.key {
			return
		}
		changed = true
		l.fewerAwaited(j)
		if j.reservation != nil && j.reservation.shape.key != shape.key {
			l.close(j)
		}
		if j.reservation == nil {
			l.open(j, shape)
		}
		j.reservation.want = max(count, 0)
		l.adjust(j.reservation, nil)
	})
	return changed
}

// open starts a reservation, which covers the Pods that the Job has.
func (l *Ledger) open(j *job, shape *Shape) {
	j.reservation = l.newReservation(j.key.Namespace, shape)
	if l.reserved[j.key.Namespace] == nil {
		l.reserved[j.key.Namespace] = map[*job]struct{}{}
	}
	l.reserved[j.key.Namespace][j] = struct{}{}
	for p := range j.pods {
		if p.own != nil {
			l.drop(p.own)
			p.own = nil
		}
		if p.node != nil && !p.leaving {
			j.reservation.bound.add(p.node, 1)
		}
	}
}

// close ends a reservation.
func (l *Ledger) close(j *job) {
	l.drop(j.reservation)
	j.reservation = nil
	if delete(l.reserved[j.key.Namespace], j); len(l.reserved[j.key.Namespace]) == 0 {
		delete(l.reserved, j.key.Namespace)
	}
}

// Release ends a Job's reservation. Its bound Pods still take capacity; those that wait for a node
// get a reservation each. Without a reservation, Release changes nothing and notifies nobody.
func (l *Ledger) Release(key types.NamespacedName) {
	l.update(func() {
		j, ok := l.jobs[key]
		if !ok || j.reservation == nil {
			return
		}
		l.fewerAwaited(j)
		l.close(j)
		for _, p := range slices.SortedFunc(j.pods, func(a, b *pod) int { return cmp.Compare(a.uid, b.uid) }) {
			l.reserveFor(p)
		}
		for _, g := range slices.Clone(j.groups) {
			l.forgetGroup(g)
		}
		l.forgetJob(j)
	})
}

// pods are the Pods of all Jobs of this name.
func (j *job) pods(yield func(*pod) bool) {
	for _, g := range j.groups {
		for _, p := range g.pods {
			if !yield(p) {
				return
			}
		}
	}
}

func (l *Ledger) job(key types.NamespacedName) *job {
	j, ok := l.jobs[key]
	if !ok {
		j = &job{key: key}
		l.jobs[key] = j
	}
	return j
}

// groupOf is where a Job's Pod belongs; nil for other Pods.
func (l *Ledger) groupOf(object *corev1.Pod) *group {
	owner, ok := OwnerJob(object)
	if !ok {
		return nil
	}
	id := objectnames.ID{Namespace: object.Namespace, UID: owner.UID}
	g, ok := l.groups[id]
	if !ok {
		j := l.job(types.NamespacedName{Namespace: object.Namespace, Name: owner.Name})
		l.nextNumber++
		g = &group{id: id, number: l.nextNumber, job: j}
		j.add(g)
		l.groups[id] = g
	}
	return g
}

// owns reports whether the Pod is of this group; a nil group has the Pods that no Job controls.
func (g *group) owns(object *corev1.Pod) bool {
	owner, ok := OwnerJob(object)
	if g == nil || !ok {
		return g == nil && !ok
	}
	return g.id == objectnames.ID{Namespace: object.Namespace, UID: owner.UID}
}

// add counts a group among the job's.
func (j *job) add(g *group) {
	g.position = len(j.groups)
	j.groups = append(j.groups, g)
}

// remove is the reverse of add. Another group gets its position.
func (j *job) remove(g *group) {
	last := len(j.groups) - 1
	j.groups[g.position], j.groups[last].position = j.groups[last], g.position
	j.groups[last] = nil
	j.groups = j.groups[:last]
}

// add counts a Pod among the group's.
func (g *group) add(p *pod) {
	p.position = len(g.pods)
	g.pods = append(g.pods, p)
	g.job.existing++
	if p.live {
		g.live++
	}
}

// remove is the reverse of add. Another Pod gets its position.
func (g *group) remove(p *pod) {
	last := len(g.pods) - 1
	g.pods[p.position], g.pods[last].position = g.pods[last], p.position
	g.pods[last] = nil
	g.pods = g.pods[:last]
	g.job.existing--
	if p.live {
		g.live--
	}
}

// OwnerJob is the Job that controls a Pod.
func OwnerJob(object *corev1.Pod) (*metav1.OwnerReference, bool) {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != "batch/v1" {
		return nil, false
	}
	return owner, true
}

// maxEmpty bounds the Jobs of one name that are remembered without Pods: there is one, and the one
// that it replaces. Anybody in the worker may make Pods that name others.
const maxEmpty = 8

// forgetGroup drops a Job without Pods, unless a reservation shows that more may come: then it
// still matters whether one ever ran, and another one is dropped if there are too many.
func (l *Ledger) forgetGroup(g *group) {
	if g == nil || len(g.pods) > 0 {
		return
	}
	if g.job.reservation != nil && g.ran {
		var empty []*group
		for i := 0; i < len(g.job.groups) && len(empty) < maxEmpty; i++ {
			if other := g.job.groups[i]; other != g && len(other.pods) == 0 {
				empty = append(empty, other)
			}
		}
		if len(empty) < maxEmpty {
			return
		}
		g = slices.MinFunc(empty, func(a, b *group) int { return cmp.Compare(a.number, b.number) })
	}
	delete(l.groups, g.id)
	g.job.remove(g)
	l.forgetJob(g.job)
}

func (l *Ledger) forgetJob(j *job) {
	if j.reservation == nil && len(j.groups) == 0 {
		delete(l.jobs, j.key)
	}
}
