package capacity

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// model is what a Ledger was given, kept in the simplest way, to hold the Ledger against after
// every step.
type model struct {
	*Ledger
	called  bool
	nodes   map[string]*corev1.Node
	pods    map[types.UID]*corev1.Pod
	want    map[types.NamespacedName]int64
	before  *Capacity
	counter int
}

// modelJobs differ in shape: plain, large, picky, tolerant, and one per node.
var modelJobs = []*JobBuilder{
	NewJob("plain").Requests("cpu", "1"),
	NewJob("large").Requests("cpu", "3", "nvidia.com/gpu", "1"),
	NewJob("picky").Requests("cpu", "1").NodeSelector("disk", "ssd"),
	NewJob("tolerant").Requests("cpu", "2").Tolerates("reserved"),
	NewJob("exclusive").Requests("cpu", "1").OnePerNode(),
}

func anyJob(t *rapid.T) *JobBuilder { return rapid.SampledFrom(modelJobs).Draw(t, "job") }

func anyNodeName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node")
}

func (m *model) setNode(t *rapid.T) {
	n := NewNode(anyNodeName(t)).Has("cpu", fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "cpu")), "pods", "5")
	switch rapid.IntRange(0, 6).Draw(t, "peculiarity") {
	case 0:
		n.Unschedulable()
	case 1:
		n.Taint("reserved", corev1.TaintEffectNoSchedule)
	case 2:
		n.Label("disk", "ssd")
	case 3:
		n.Has("nvidia.com/gpu", "2")
	}
	m.nodes[n.Obj().Name] = n.Obj()
	m.SetNode(n.Obj())
}

func (m *model) deleteNode(t *rapid.T) {
	name := anyNodeName(t)
	delete(m.nodes, name)
	m.DeleteNode(name)
}

func (m *model) createPod(t *rapid.T) {
	m.counter++
	pod := anyJob(t).Pod(fmt.Sprint("p", m.counter))
	if rapid.Bool().Draw(t, "of no Job") {
		pod.OwnerReferences = nil
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	m.setPod(pod)
}

func (m *model) setPod(pod *corev1.Pod) {
	m.pods[pod.UID] = pod
	m.SetPod(pod)
}

func (m *model) anyPod(t *rapid.T) *corev1.Pod {
	if len(m.pods) == 0 {
		t.Skip("no Pods")
	}
	return m.pods[rapid.SampledFrom(sortedKeys(m.pods)).Draw(t, "pod")]
}

func (m *model) changePod(t *rapid.T) {
	pod := m.anyPod(t)
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		if pod.Spec.NodeName == "" {
			m.setPod(Bind(pod, anyNodeName(t)))
		}
	case 1:
		m.setPod(In(pod, rapid.SampledFrom([]corev1.PodPhase{"Running", "Succeeded", "Failed"}).Draw(t, "phase")))
	case 2:
		m.setPod(leaving(pod))
	case 3:
		if pod.Spec.NodeName != "" {
			resized := pod.DeepCopy()
			resized.Spec.Containers[0].Resources.Requests = Quantities("cpu", fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "cpu")))
			m.setPod(resized)
		}
	}
}

func (m *model) deletePod(t *rapid.T) {
	pod := m.anyPod(t)
	delete(m.pods, pod.UID)
	m.DeletePod(pod.UID)
}

func (m *model) reserve(t *rapid.T) {
	j := anyJob(t)
	m.want[j.Key()] = rapid.Int64Range(0, 6).Draw(t, "count")
	m.Reserve(j.Key(), shape(j), m.want[j.Key()])
}

func (m *model) release(t *rapid.T) {
	j := anyJob(t)
	delete(m.want, j.Key())
	m.Release(j.Key())
}

func (m *model) forget(*rapid.T) {
	clear(m.nodes)
	clear(m.pods)
	m.Forget()
}

func TestLedgerAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, want: map[types.NamespacedName]int64{}}
		m.Ledger = New(func(change.Change) { m.called = true })
		m.before = m.Free(nobody)
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "set node": m.setNode, "delete node": m.deleteNode, "create pod": m.createPod,
			"change pod": m.changePod, "delete pod": m.deletePod, "reserve": m.reserve, "release": m.release,
			"forget": m.forget,
		})
	})
}

func (m *model) check(t *rapid.T) {
	m.checkNotified(t)
	m.checkBound(t)
	m.checkFreeFor(t)
	m.checkClaims(t)
	m.checkReservations(t)
	m.checkForgotten(t)
}

// checkNotified: whatever fits now and didn't fit before has been notified.
func (m *model) checkNotified(t *rapid.T) {
	called := m.called
	m.called = false
	now := m.Free(nobody)
	for _, j := range modelJobs {
		for _, count := range []int32{1, 3, 50} {
			job := j.Obj().DeepCopy()
			job.Spec.Parallelism, job.Spec.Completions = &count, &count
			if !fits(m.before, job) && fits(now, job) && !called {
				t.Fatalf("%d Pods of %s fit now: not notified", count, job.Name)
			}
		}
	}
	m.before = now
}

// fits decides as placement does: all Pods that are wanted fit now, or as many as the idle nodes
// hold.
func fits(c *Capacity, job *batchv1.Job) bool {
	s := ShapeOf(&job.Spec.Template)
	var now, idle int64
	for _, n := range c.Nodes() {
		if s.Suits(n.Object) {
			now += s.Room(&n.Free)
			idle += s.Room(&n.Idle)
		}
	}
	return now >= max(min(int64(*job.Spec.Parallelism), idle), 1)
}

// checkBound: the sums over bound Pods are as if added up anew.
func (m *model) checkBound(t *rapid.T) {
	bound, lasting := map[string]Resources{}, map[string]Resources{}
	for _, pod := range m.pods {
		name := pod.Spec.NodeName
		if name == "" || Ended(pod) {
			continue
		}
		bound[name] = bound[name].Add(PodRequests(pod), 1)
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			lasting[name] = lasting[name].Add(PodRequests(pod), 1)
		}
	}
	nodes := m.Free(nobody).Nodes()
	if len(nodes) != len(m.nodes) {
		t.Fatalf("%d nodes, want %d", len(nodes), len(m.nodes))
	}
	for _, n := range nodes {
		name := n.Object.Name
		allocatable := ResourcesOf(m.nodes[name].Status.Allocatable)
		held := Resources{}
		for c, count := range m.Ledger.nodes[name].holders {
			held = held.Add(c.shape.Unit(), count)
		}
		idle, free := allocatable.Add(lasting[name], -1), allocatable.Add(bound[name], -1).Add(held, -1)
		for other := range bound[name].Others {
			if _, has := allocatable.Others[other]; !has { // nobody asks for it
				delete(idle.Others, other)
				if _, isHeld := held.Others[other]; !isHeld {
					delete(free.Others, other)
				}
			}
		}
		if !n.Allocatable.Equal(allocatable) || !n.Idle.Equal(idle) || !n.Free.Equal(free) {
			t.Fatalf("%s: %+v\nbound %v, held %v", name, n, bound[name], held)
		}
		// Never over capacity: reservations only have what Pods leave of what they ask for.
		for resource := range held.List() {
			if held.Get(resource) > 0 && n.Free.Get(resource) < 0 {
				t.Fatalf("%s: reservations take more than there is: %v", name, n.Free)
			}
		}
	}
}

// checkFreeFor: a Job sees what is free, what is held for itself and what its Pods take, and
// nothing changes by that.
func (m *model) checkFreeFor(t *rapid.T) {
	common := m.Free(nobody)
	for _, j := range modelJobs {
		for i, n := range m.Free(j.Key()).Nodes() {
			want := common.Nodes()[i].Free
			if job := m.jobs[j.Key()]; job != nil && job.reservation != nil {
				on := m.Ledger.nodes[n.Object.Name]
				unit := job.reservation.shape.Unit()
				for other := range unit.Others {
					if _, has := want.Others[other]; !has {
						unit = Resources{MilliCPU: unit.MilliCPU, Memory: unit.Memory, EphemeralStorage: unit.EphemeralStorage, Pods: unit.Pods}
					}
				}
				want = want.Add(unit, job.reservation.held[on]+job.reservation.bound[on])
			}
			if !n.Free.Equal(want) {
				t.Fatalf("%s: free for %s: %v, want %v", n.Object.Name, j.Key().Name, n.Free, want)
			}
		}
	}
	if m.Free(nobody) != common {
		t.Fatal("a question changed the answer")
	}
}

// checkClaims: each holds what it's short of, where it fits, and waits only if it fits nowhere.
func (m *model) checkClaims(t *rapid.T) {
	for _, c := range m.reservations() {
		short := max(c.want-c.bound.sum(), 0)
		if c.held.sum()+c.unheld != short || c.unheld < 0 {
			t.Fatalf("%+v holds %d and waits for %d, short of %d", c, c.held.sum(), c.unheld, short)
		}
		if (c.waits != nil) != (c.unheld > 0) {
			t.Fatalf("%+v waits for %d", c, c.unheld)
		}
		if c.demanded != c.unheld {
			t.Fatalf("%+v waits for %d, and demands %d", c, c.unheld, c.demanded)
		}
		for n, count := range c.held {
			if count < 0 || n.holders[c] != count || n.object == nil || !c.shape.Suits(n.object) {
				t.Fatalf("%+v holds %d on %s", c, count, n.name)
			}
			if c.shape.OnePerNode() && count+c.bound[n] > 1 && count != 0 && c.bound[n] == 0 {
				t.Fatalf("%+v holds %d on %s, and may one", c, count, n.name)
			}
		}
		for _, n := range m.sorted {
			if c.unheld > 0 && c.fits(n) > 0 {
				t.Fatalf("%+v waits and fits on %s", c, n.name)
			}
		}
	}
}

func (m *model) reservations() []*reservation {
	var reservations []*reservation
	for _, j := range m.jobs {
		if j.reservation != nil {
			reservations = append(reservations, j.reservation)
		}
	}
	for _, p := range m.Ledger.pods {
		if p.own != nil {
			reservations = append(reservations, p.own)
		}
	}
	return reservations
}

// checkReservations: they want what was asked for and count the right Pods; the other Pods that
// wait have reservations of their own.
func (m *model) checkReservations(t *rapid.T) {
	bound := map[types.NamespacedName]int64{}
	for _, pod := range m.pods {
		owner, ok := OwnerJob(pod)
		key := types.NamespacedName{Namespace: pod.Namespace}
		if ok {
			key.Name = owner.Name
		}
		_, reserved := m.want[key]
		active := !Ended(pod) && pod.DeletionTimestamp == nil
		if active && pod.Spec.NodeName != "" && ok {
			bound[key]++
		}
		waits := active && pod.Spec.NodeName == "" && !reserved
		if reservations := m.Ledger.pods[pod.UID].own != nil; reservations != waits {
			t.Fatalf("%s has a reservation: %t, want %t", pod.Name, reservations, waits)
		}
	}
	for key, want := range m.want {
		c := m.jobs[key].reservation
		if c == nil || c.want != want || c.bound.sum() != bound[key] {
			t.Fatalf("%s: %+v, want %d, bound %d", key.Name, c, want, bound[key])
		}
	}
}

// checkForgotten: nothing is kept of what is gone.
func (m *model) checkForgotten(t *rapid.T) {
	reservations := map[*reservation]bool{}
	for _, c := range m.reservations() {
		reservations[c] = true
	}
	for ns := range m.queues.all {
		if ns.order.Len() == 0 {
			t.Fatalf("no queues for %s", ns.namespace)
		}
		for q := range ns.all {
			if q.reservations.Len() == 0 {
				t.Fatalf("an empty queue for %s", q.shape)
			}
			for e := q.reservations.Front(); e != nil; e = e.Next() {
				if !reservations[e.Value.(*reservation)] {
					t.Fatal("a reservation waits that no one has")
				}
			}
		}
	}
	reserved := 0
	for _, j := range m.jobs {
		var pods int64
		for range j.pods {
			pods++
		}
		_, is := m.reserved[j.key.Namespace][j]
		if j.reservation == nil && len(j.groups) == 0 || is != (j.reservation != nil) || pods != j.existing {
			t.Fatalf("%v is kept, counts as reserved: %v, with %d Pods, and has %d", j.key, is, j.existing, pods)
		}
		if is {
			reserved++
		}
	}
	for namespace, jobs := range m.reserved {
		if reserved -= len(jobs); len(jobs) == 0 {
			t.Fatalf("%s is kept", namespace)
		}
	}
	if reserved != 0 {
		t.Fatal("Jobs that are gone count as reserved")
	}
	for _, g := range m.groups {
		if len(g.pods) == 0 && g.job.reservation == nil {
			t.Fatalf("Pods of %s are kept", g.id)
		}
	}
	for _, n := range m.Ledger.nodes {
		if n.object == nil && n.pods == 0 {
			t.Fatalf("node %s is kept", n.name)
		}
	}
	if len(m.changed) > 0 {
		t.Fatal("not settled")
	}
}
