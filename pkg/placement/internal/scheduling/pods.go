package scheduling

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// Pods are those of one worker that are bound to nodes. Its methods may be called from any
// goroutine. A change costs its own size, and the next Snapshot the size of the nodes that changed.
type Pods struct {
	onChange func(change.Change)

	lock  sync.Mutex
	pods  map[types.UID]*boundPod
	nodes map[string]*node
	// jobs counts the Pods of each Job.
	jobs map[types.NamespacedName]int
	// kinds of the Pods.
	kinds *kindTable
	// last Snapshot, of the Capacity that it was made for; nil after a change.
	last *Snapshot
	of   *capacity.Capacity
	// topologies of the nodes of the last Snapshot, whatever ran there.
	topologies *topologies
	// awaited: there was a Snapshot since the last call of onChange.
	awaited bool
}

// boundPod is a Pod with its node, and the Job that controls it.
type boundPod struct {
	*Pod
	node string
	job  types.NamespacedName
}

// node has the Pods of a node, whether there is such a node or not.
type node struct {
	pods map[types.UID]*boundPod
	// view is nil after a change.
	view *podsOn
}

// NewPods makes the store of a worker without Pods. The callback is called without locks held, and
// must not block: after the first change that follows a Snapshot. Pods that come can make room for
// a Job, too: it wants to be near them, or spreads over the same domains.
func NewPods(onChange func(change.Change)) *Pods {
	return &Pods{
		onChange: onChange,
		pods:     map[types.UID]*boundPod{},
		nodes:    map[string]*node{},
		jobs:     map[types.NamespacedName]int{},
		kinds:    newKindTable(),
	}
}

// Set adds or updates a Pod. One that has no node, or has ended, isn't kept.
func (p *Pods) Set(object *corev1.Pod) {
	var next *boundPod
	if object.Spec.NodeName != "" && !capacity.Ended(object) {
		next = &boundPod{Pod: PodOf(object), node: object.Spec.NodeName, job: jobOfPod(object)}
	}
	p.update(object.UID, next)
}

// Remove removes a Pod.
func (p *Pods) Remove(uid types.UID) { p.update(uid, nil) }

// Keys are the UIDs of all Pods.
func (p *Pods) Keys() []types.UID {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Collect(maps.Keys(p.pods))
}

// Owner is the Job that controls a Pod; the zero name if there is none. Lasts: the Pod doesn't end
// by itself.
func (p *Pods) Owner(uid types.UID) (job types.NamespacedName, lasts bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if pod := p.pods[uid]; pod != nil {
		return pod.job, pod.Lasts
	}
	return types.NamespacedName{}, false
}

// Has reports whether Pods of a Job are there. No Job has a key without a name.
func (p *Pods) Has(job types.NamespacedName) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return job.Name != "" && p.jobs[job] > 0
}

// Forget removes all Pods, before they're listed again.
func (p *Pods) Forget() {
	p.lock.Lock()
	defer p.lock.Unlock()
	clear(p.pods)
	clear(p.nodes)
	clear(p.jobs)
	p.kinds = newKindTable()
	p.last = nil
}

func (p *Pods) update(uid types.UID, next *boundPod) {
	if p.exchange(uid, next) {
		p.onChange(change.Change{Kinds: change.Pods})
	}
}

// exchange reports whether somebody awaits this change.
func (p *Pods) exchange(uid types.UID, next *boundPod) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	before := p.pods[uid]
	if before == nil && next == nil || before != nil && next != nil && before.alike(next) {
		return false
	}
	if before != nil {
		p.remove(uid, before)
	}
	if next != nil {
		p.add(uid, next)
	}
	p.last = nil
	awaited := p.awaited
	p.awaited = false
	return awaited
}

func (p *Pods) add(uid types.UID, pod *boundPod) {
	p.pods[uid] = pod
	p.jobs[pod.job]++
	p.kinds.add(pod.kind)
	n := p.nodes[pod.node]
	if n == nil {
		n = &node{pods: map[types.UID]*boundPod{}}
		p.nodes[pod.node] = n
	}
	n.pods[uid] = pod
	n.view = nil
}

func (p *Pods) remove(uid types.UID, pod *boundPod) {
	delete(p.pods, uid)
	p.kinds.remove(pod.kind)
	if p.jobs[pod.job]--; p.jobs[pod.job] == 0 {
		delete(p.jobs, pod.job)
	}
	n := p.nodes[pod.node]
	delete(n.pods, uid)
	n.view = nil
	if len(n.pods) == 0 {
		delete(p.nodes, pod.node)
	}
}

// alike reports whether two states of one Pod are the same for others: a Pod's ports, affinity and
// restart policy don't change.
func (b *boundPod) alike(o *boundPod) bool {
	return b.node == o.node && b.job == o.job && b.kind == o.kind && b.own == o.own && b.Leaving == o.Leaving && b.Requests.Equal(o.Requests)
}

// jobOfPod is the Job that controls a Pod; the zero name if there is none.
func jobOfPod(object *corev1.Pod) types.NamespacedName {
	owner, is := capacity.OwnerJob(object)
	if !is {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: object.Namespace, Name: owner.Name}
}

// Snapshot joins the Pods with the nodes and what is free there. It leaves out the Pods of one Job,
// which doesn't compete with itself. No Job has the zero name.
func (p *Pods) Snapshot(c *capacity.Capacity, without types.NamespacedName) *Snapshot {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.awaited = true
	if without.Name != "" && p.jobs[without] > 0 {
		return p.join(c, without)
	}
	if p.last == nil || p.of != c {
		p.last, p.of = p.join(c, types.NamespacedName{}), c
	}
	return p.last
}

func (p *Pods) join(c *capacity.Capacity, without types.NamespacedName) *Snapshot {
	there := c.Nodes()
	nodes := make([]Node, len(there))
	s := &Snapshot{Nodes: make([]*Node, len(there)), kinds: p.kinds.list(), sums: &sums{}}
	for i, n := range there {
		nodes[i] = Node{Node: n, podsOn: p.on(n.Object.Name, without)}
		s.Nodes[i] = &nodes[i]
	}
	if objects := s.objects(); p.topologies == nil || !slices.Equal(p.topologies.nodes, objects) {
		p.topologies = topologiesOf(objects)
	}
	s.topologies = p.topologies
	s.findGuards()
	return s
}

// on is what runs on a node.
func (p *Pods) on(name string, without types.NamespacedName) *podsOn {
	n := p.nodes[name]
	if n == nil {
		return noPods
	}
	if n.view == nil {
		n.view = p.kinds.look(n.some())
	}
	if own := n.of(without); len(own) > 0 {
		return n.view.but(own)
	}
	return n.view
}

// noPods is shared by all nodes without Pods.
var noPods = &podsOn{}

// of a Job are its Pods there. None has the zero name.
func (n *node) of(job types.NamespacedName) (own sets.Set[*Pod]) {
	if job.Name == "" {
		return nil
	}
	for _, b := range n.pods {
		if b.job == job {
			if own == nil {
				own = sets.Set[*Pod]{}
			}
			own.Insert(b.Pod)
		}
	}
	return own
}

// maxOnNode is how many Pods of a node other Pods notice: several times as many as a kubelet runs.
// They are looked at again after each change of one of them.
const maxOnNode = 2_000

// some are the Pods that are noticed.
func (n *node) some() []*Pod {
	pods := make([]*Pod, 0, min(len(n.pods), maxOnNode))
	for _, b := range n.pods {
		if len(pods) == maxOnNode {
			break
		}
		pods = append(pods, b.Pod)
	}
	return pods
}
