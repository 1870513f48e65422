package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

var planOptions = plan.Options{
	TrackingFinalizer: "example.com/tracking",
	PodFailureBackoff: 10 * time.Second, MaxPodFailureBackoff: 6 * time.Minute,
	SyncBatchPeriod: time.Second, MaxUncountedPods: 500, MaxPodCreateDeletePerSync: 500,
}

// podCluster is the Job controller of a cluster, played by package plan, with the Pods of one Job
// and their kubelets.
type podCluster struct {
	*oneRun
	api   *apiServer
	clock clock.PassiveClock
	grace time.Duration // what a deleted Pod takes to end
	logf  func(format string, args ...any)

	owner   types.UID
	pods    map[podUID]*onePod
	made    int
	backoff *plan.Backoff
	wake    time.Time
	// seen is the version of the Job after the last sync; changed: its Pods have changed since.
	seen    string
	changed bool
}

type podUID = types.UID

type onePod struct {
	*corev1.Pod
	completion int
	exit       int32
	ends       time.Time
}

func (c *podCluster) sorted() []*onePod {
	return slices.SortedFunc(maps.Values(c.pods), func(a, b *onePod) int { return strings.Compare(a.Name, b.Name) })
}

// work is what the controllers of the cluster do, until there is nothing left to do.
func (c *podCluster) work() {
	job := c.api.jobs[jobKey]
	if job == nil || job.UID != c.owner {
		for _, p := range c.sorted() {
			p.Finalizers = nil
			c.delete(p)
		}
		c.backoff, c.wake = nil, time.Time{}
	}
	if job == nil {
		return
	}
	c.owner = job.UID
	if job.DeletionTimestamp != nil {
		for _, p := range c.sorted() {
			c.delete(p)
		}
	}
	if c.seen != job.ResourceVersion || c.changed || !c.wake.IsZero() && !c.wake.After(c.clock.Now()) {
		c.syncs(job.DeepCopy())
	}
	if job = c.api.jobs[jobKey]; job.DeletionTimestamp != nil && len(c.pods) == 0 {
		c.api.collectGarbage()
	}
}

// syncs syncs until the Job controller comes to rest.
func (c *podCluster) syncs(job *batchv1.Job) {
	for range 100 {
		if !c.sync(job) {
			c.api.replace(job)
			c.seen, c.changed = c.api.jobs[jobKey].ResourceVersion, false
			return
		}
	}
	panic("the Job controller doesn't come to rest")
}

// sync is one sync of the Job controller, all of whose writes succeed. It reports whether there was
// anything to do. The built-in one knows nothing of shards.
func (c *podCluster) sync(job *batchv1.Job) (changed bool) {
	if plan.Finished(job) != nil {
		return false
	}
	view := *job
	if job.Spec.ManagedBy == nil {
		view.Annotations = nil
	}
	var pods []*corev1.Pod
	for _, p := range c.sorted() {
		pods = append(pods, ptr.To(*p.Pod))
	}
	now := c.clock.Now()
	p := plan.Compute(plan.Snapshot{Job: &view, Pods: pods, Backoff: c.backoff, Now: now}, planOptions)
	record := p.Record(c.carryOut(p))
	c.write(job, &record.StatusWrite)
	c.backoff, c.wake = &p.Backoff, time.Time{}
	if p.Wake > 0 {
		c.wake = now.Add(p.Wake)
	}
	untracked := sets.New[types.UID]()
	for _, pod := range record.Untrack {
		c.untrack(c.pods[pod.UID])
		untracked.Insert(pod.UID)
	}
	settled := record.Settle(untracked)
	c.write(job, &settled.StatusWrite)
	return record.Changed || settled.Changed || len(p.Delete)+len(p.Create)+len(untracked) > 0
}

func (c *podCluster) write(job *batchv1.Job, w *plan.StatusWrite) {
	if w.Changed {
		job.Status = *w.Status.DeepCopy()
	}
	if w.Observed != nil {
		job.Annotations[v1alpha1.AnnotationIndexesObserved] = *w.Observed
	}
}

func (c *podCluster) carryOut(p *plan.Plan) plan.Result {
	result := plan.Result{Deleted: sets.New[types.UID](), Created: len(p.Create)}
	for _, d := range p.Delete {
		pod := c.pods[d.Pod.UID]
		if d.Untrack {
			pod.Finalizers = nil
		}
		c.delete(pod)
		result.Deleted.Insert(d.Pod.UID)
	}
	for _, pod := range p.Create {
		p := pod()
		c.made++
		p.UID = types.UID(fmt.Sprintf("%s-%03d", c.api.name, c.made))
		p.Name, p.CreationTimestamp = p.GenerateName+string(p.UID), metav1.NewTime(c.clock.Now())
		p.Spec.NodeName, p.Status.Phase = "node", corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: p.CreationTimestamp}}
		pod := &onePod{Pod: p, completion: c.take(plan.CompletionIndex(p))}
		exit, takes := c.next(pod.completion)
		pod.exit, pod.ends = exit, c.clock.Now().Add(takes)
		c.pods[p.UID] = pod
		c.logf("starts %s for completion %d", p.Name, pod.completion)
	}
	return result
}

func (c *podCluster) untrack(p *onePod) {
	p.Finalizers = nil
	c.collect(p)
}

// delete is a DELETE of a Pod: it ends when its grace period is over.
func (c *podCluster) delete(p *onePod) {
	if p.DeletionTimestamp == nil && !plan.Ended(p.Pod) {
		c.logf("deletes %s", p.Name)
		c.kill(p.completion, len(p.Finalizers) > 0)
		p.exit, p.ends = exitKilled, c.clock.Now().Add(c.grace)
	}
	if plan.Ended(p.Pod) && len(p.Finalizers) > 0 {
		c.forget(p.completion)
	}
	if p.DeletionTimestamp == nil {
		p.DeletionTimestamp, c.changed = ptr.To(metav1.NewTime(c.clock.Now())), true
	}
	c.collect(p)
}

func (c *podCluster) collect(p *onePod) {
	if p.DeletionTimestamp != nil && plan.Ended(p.Pod) && len(p.Finalizers) == 0 {
		delete(c.pods, p.UID)
	}
}

// endPods has the Pods end that are due.
func (c *podCluster) endPods() {
	for _, p := range c.sorted() {
		if plan.Ended(p.Pod) || p.ends.After(c.clock.Now()) {
			continue
		}
		if p.exit != exitKilled {
			c.end(p.completion, p.exit)
		}
		c.logf("%s exits with %d", p.Name, p.exit)
		p.Status.Phase, p.Status.Conditions, c.changed = corev1.PodFailed, nil, true
		if p.exit == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: p.exit, FinishedAt: metav1.NewTime(c.clock.Now())},
		}}}
		c.collect(p)
	}
}

// due is when something happens next here; zero: nothing does.
func (c *podCluster) due() time.Time {
	at := c.wake
	if !at.After(c.clock.Now()) {
		at = time.Time{} // it is idle
	}
	for _, p := range c.pods {
		if !plan.Ended(p.Pod) && (at.IsZero() || p.ends.Before(at)) {
			at = p.ends
		}
	}
	return at
}

// live counts the Pods that run, and those that are being deleted.
func (c *podCluster) live() (active, terminating int) {
	for _, p := range c.pods {
		switch {
		case plan.Ended(p.Pod):
		case p.DeletionTimestamp != nil:
			terminating++
		default:
			active++
		}
	}
	return active, terminating
}
