package job

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/capacity"
	"github.com/jobferry/jobferry/pkg/placement/change"
	"github.com/jobferry/jobferry/pkg/placement/waiting"
)

// waiter is a Job that asks for room, and may have to wait for it.
type waiter struct {
	waiting.Job
	// request has no Job while it waits: there may be many of them, of any size.
	request placement.Request
	// version is the Job's resourceVersion. A large one decides for itself, however it would fit.
	version string
	large   bool
	// altered: a RuntimeClass of the worker may alter what its Pods tolerate.
	altered bool
	class   priorityClass
	// chosen is the worker that a walk has found for it, and holds capacity in; nil: none yet.
	chosen *placement.Decision
	// reserved is the reservation that it had until then.
	reserved *waiting.Reservation
	// said is why it waits, as it was last reported.
	said string
	// asked is freed.count before it was last judged: until more happens, the answer is the same.
	asked uint64
}

// endGrace is how long after its deadline a Job's last Pod has ended, and its successor is let in.
const endGrace = 30 * time.Second

// newWaiter reads what the order needs of a Job.
func newWaiter(request placement.Request, class priorityClass) *waiter {
	job := request.Job
	large := job.Spec.Template.Size() > maxInLine
	altered := job.Spec.Template.Spec.RuntimeClassName != nil
	w := &waiter{request: request, class: class, version: job.ResourceVersion, large: large, altered: altered, Job: waiting.Job{
		Key: keyOf(job), UID: job.UID, Priority: class.value, Created: job.CreationTimestamp.Time,
		Shape: shapeInLine(&job.Spec.Template, large), Pods: placement.PodsWanted(job),
	}}
	if deadline := job.Spec.ActiveDeadlineSeconds; deadline != nil {
		w.Runtime = time.Duration(*deadline)*time.Second + endGrace
	}
	return w
}

// maxInLine is the size of a Pod template, in bytes of protobuf, up to which a Job that waits can get a
// reservation, and a walk chooses for it.
const maxInLine = 64 << 10

// shapeInLine is the shape of a Job's Pods; of a large Job what they request, and not which nodes they
// want.
func shapeInLine(template *corev1.PodTemplateSpec, large bool) *capacity.Shape {
	if !large {
		return capacity.ShapeOf(template)
	}
	requests := capacity.TemplateRequests(&template.Spec).List()
	delete(requests, corev1.ResourcePods)
	return capacity.ShapeOf(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
	}})
}

// turnLocked decides about a Job, without holding anything for it, and says whether it's the Job's turn:
// those that wait are looked at first when something was freed.
func (s *scheduler) turnLocked(ctx context.Context, w *waiter) (placement.Decision, bool) {
	decision := s.placeLocked(ctx, w, w.request, s.admits(w), func(worker string) bool { return s.line.Avoids(&w.Job, worker) })
	others := s.line.Len()
	if s.line.Get(w.Key) != nil {
		others--
	}
	return decision, w.Exempt || len(s.unjudged) == 0 && (others == 0 || !s.freed.is())
}

func (s *scheduler) admits(w *waiter) func(string) int64 {
	return func(worker string) int64 { return s.line.Admits(&w.Job, worker, s.clock.Now()) }
}

// placeLocked decides about a Job.
func (s *scheduler) placeLocked(
	ctx context.Context, w *waiter, request placement.Request, admits func(string) int64, avoid func(string) bool,
) placement.Decision {
	decision := place(request, s.candidatesLocked(ctx, w, request.Job, admits))
	if w.Exempt {
		return decision
	}
	for _, c := range decision.Candidates {
		if c.Step > decision.Candidates[0].Step {
			break // what the user prefers goes before what one behind it would like to have
		}
		if !avoid(c.Cluster) {
			decision.Cluster = c.Cluster
			break
		}
	}
	return decision
}

func (s *scheduler) candidatesLocked(ctx context.Context, w *waiter, job *batchv1.Job, admits func(string) int64) []placement.Cluster {
	all, out := s.workers.list(), s.stockouts.of(job)
	candidates := make([]placement.Cluster, 0, len(all))
	for _, v := range all {
		s.fillLocked(ctx, v)
		c := candidate(v, w.held(), job)
		c.Drops = s.keepers.drops(v)
		c.StockedOut = out.isOut(v.Name()) || w.request.RoomNow && out.isDoubtful(v.Name())
		c.Reserved = admits(v.Name()) < w.Least()
		candidates = append(candidates, c)
	}
	return candidates
}

// held is whose Pods and reservation count as free: those of a Job in several workers, and of no other
// Job of the namespace.
func (w *waiter) held() types.NamespacedName {
	if w.Divisible {
		return w.Key
	}
	return types.NamespacedName{Namespace: w.Key.Namespace}
}

// moreRoom is a change by what the manager holds for Jobs.
var moreRoom = change.Change{Kinds: change.Room}

// joinLocked lets a Job wait in line for the workers that may have room for it one day.
func (s *scheduler) joinLocked(w *waiter, decision placement.Decision) {
	s.leaveLocked(w.Key, w)
	s.setNeeds(w, decision)
	w.said, w.Untold = decision.Named(), len(decision.Candidates) > 0
	w.request.Job = nil
	s.waiters[w.Key] = w
	if s.line.Add(&w.Job) {
		s.freed.add(change.Change{})
	}
	if w.Exempt || w.Divisible {
		return
	}
	for _, c := range decision.Candidates { // it fits, and waits for its turn
		s.freed.add(moreRoom, c.Cluster)
	}
}

// leave takes a Job out of the line that waits no more, or goes.
func (s *scheduler) leave(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(key, nil)
}

// leaveLocked keeps the reservation if the Job joins again.
func (s *scheduler) leaveLocked(key types.NamespacedName, again *waiter) {
	w := s.waiters[key]
	if w == nil {
		return
	}
	delete(s.waiters, key)
	s.line.Remove(key)
	if w.chosen != nil {
		s.release(w.chosen.Cluster, key)
	}
	if again != nil && again.UID == w.UID {
		return
	}
	if r := s.line.Release(&w.Job); r != nil {
		s.freed.add(moreRoom, r.Worker)
	}
}

// takeChosenLocked returns what a walk has chosen for a Job; nil: nothing, or the Job is another by now.
func (s *scheduler) takeChosenLocked(request *placement.Request) *waiter {
	w := s.waiters[keyOf(request.Job)]
	if w == nil || w.chosen == nil || w.UID != request.Job.UID || w.version != request.Job.ResourceVersion {
		return nil
	}
	if v, ok := s.workers.get(w.chosen.Cluster); !ok || !candidate(v, types.NamespacedName{}, request.Job).Ready || request.PassedOver[w.chosen.Cluster] != "" {
		return nil
	}
	delete(s.waiters, w.Key)
	return w
}

// dropChosenLocked gives back what a walk has chosen for a Job that is another by now.
func (s *scheduler) dropChosenLocked(key types.NamespacedName) {
	if w := s.waiters[key]; w != nil && w.chosen != nil {
		s.leaveLocked(key, nil)
	}
}

// priorityClass is the PriorityClass of a Job's Pods on the hub. The zero value is that of Pods
// without one.
type priorityClass struct {
	name  string
	value int32
}

// priorityClassOf reads it from the cache. A class that doesn't exist on the hub counts as none.
func priorityClassOf(ctx context.Context, cache client.Reader, job *batchv1.Job) priorityClass {
	if name := job.Spec.Template.Spec.PriorityClassName; name != "" {
		var class schedulingv1.PriorityClass
		if err := cache.Get(ctx, types.NamespacedName{Name: name}, &class); err != nil {
			return priorityClass{}
		}
		return priorityClass{class.Name, class.Value}
	}
	var all schedulingv1.PriorityClassList
	if err := cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return priorityClass{}
	}
	standard := priorityClass{}
	for i := range all.Items { // of several defaults the API server takes the lowest
		c := &all.Items[i]
		if c.GlobalDefault && (standard.name == "" || c.Value < standard.value) {
			standard = priorityClass{c.Name, c.Value}
		}
	}
	return standard
}

// parallelismOf is how many Pods a shard runs at once.
func parallelismOf(job *batchv1.Job) int64 { return int64(ptr.Deref(job.Spec.Parallelism, 1)) }
