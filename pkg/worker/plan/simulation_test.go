package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// controller does the least that keeps the order of writes which plan demands. Killing it loses all
// its fields.
type controller struct {
	w        *fakeCluster
	pending  Pending
	written  *batchv1.Job
	backoff  *Backoff
	problems []string

	generation int64
}

func start(w *fakeCluster) *controller {
	return &controller{w: w, pending: Pending{
		Adopted: map[types.UID]*corev1.Pod{}, Deleted: sets.New[types.UID](), Untracked: sets.New[types.UID](), Refused: sets.New[types.UID](),
	}}
}

func (c *controller) view() *batchv1.Job {
	if c.written != nil && versionOf(c.written) > versionOf(c.w.cachedJob) {
		return c.written
	}
	return c.w.cachedJob
}

func versionOf(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil {
		return 0 // not written yet
	}
	return n
}

// settlePending forgets what the cache shows by now.
func (c *controller) settlePending() {
	c.pending.Created = slices.DeleteFunc(c.pending.Created, func(p *corev1.Pod) bool {
		_, seen := c.w.cachedPods[p.UID]
		return seen || c.w.pods[p.UID] == nil // package worker asks the API server about overdue Pods
	})
	maps.DeleteFunc(c.pending.Adopted, func(uid types.UID, adopted *corev1.Pod) bool {
		cached := c.w.cachedPods[uid]
		return cached == nil || versionOf(cached) >= versionOf(adopted)
	})
}

func (c *controller) sync() error {
	job := c.view()
	if Finished(job) != nil {
		return nil
	}
	c.settlePending()
	if c.generation != job.Generation {
		c.generation = job.Generation
		clear(c.pending.Refused)
	}
	pods := slices.SortedFunc(maps.Values(c.w.cachedPods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	pods, err := c.adoptAndRelease(job, pods)
	if err != nil {
		return err
	}
	p := Compute(Snapshot{Job: job, Pods: pods, Pending: c.pending, Backoff: c.backoff, Fenced: v1alpha1.IsFenced(job), Now: c.w.now}, testOptions)
	out, err := c.carryOut(job, p)
	if err != nil {
		return err
	}
	a := p.Record(out)
	if job, err = c.write(job, a.StatusWrite); err != nil {
		return err
	}
	c.backoff = &p.Backoff
	untracked := sets.New[types.UID]()
	for _, r := range a.Untrack {
		if err := c.w.untrack(r.UID, ""); errors.Is(err, errRefused) {
			continue
		} else if err != nil {
			return err
		}
		c.pending.Untracked.Insert(r.UID)
		untracked.Insert(r.UID)
	}
	s := a.Settle(untracked)
	_, err = c.write(job, s.StatusWrite)
	return err
}

func (c *controller) adoptAndRelease(job *batchv1.Job, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	owned := OwnershipOf(job, SelectorOf(job), pods, c.pending, testOptions.TrackingFinalizer)
	for _, p := range owned.Adopt {
		adopted, err := c.w.adopt(p.UID, p.ResourceVersion)
		if err != nil {
			return nil, err
		}
		c.pending.Untracked.Delete(p.UID)
		c.pending.Adopted[p.UID] = adopted
		owned.Owned = append(owned.Owned, adopted)
	}
	for _, p := range owned.Release {
		if err := c.w.release(p.UID, p.ResourceVersion); err != nil {
			return nil, err
		}
	}
	return owned.Owned, nil
}

func (c *controller) carryOut(job *batchv1.Job, p *Plan) (Result, error) {
	out := Result{Deleted: sets.New[types.UID]()}
	for _, d := range p.Delete {
		if d.Untrack {
			err := c.w.untrack(d.Pod.UID, d.Pod.ResourceVersion)
			if errors.Is(err, errConflict) || errors.Is(err, errRefused) {
				continue
			} else if err != nil {
				return out, err
			}
			c.pending.Untracked.Insert(d.Pod.UID)
		}
		if err := c.w.delete(d.Pod.UID); errors.Is(err, errRefused) {
			if d.Untrack {
				c.pending.Refused.Insert(d.Pod.UID)
			}
			continue
		} else if err != nil {
			return out, err
		}
		c.pending.Deleted.Insert(d.Pod.UID)
		out.Deleted.Insert(d.Pod.UID)
	}
	for _, wanted := range p.Create {
		made, err := c.w.create(wanted())
		if err != nil {
			return out, err
		}
		c.pending.Created = append(c.pending.Created, made)
		out.Created++
		c.checkCreation(job, made)
	}
	return out, nil
}

// checkCreation holds what is promised whenever a Pod is created.
func (c *controller) checkCreation(job *batchv1.Job, made *corev1.Pod) {
	active, sameIndex := 0, 0
	for _, p := range c.w.pods {
		if runs(p) && len(p.OwnerReferences) > 0 && c.canKnow(p) {
			active++
			if IsIndexed(job) && CompletionIndex(p) == CompletionIndex(made) {
				sameIndex++
			}
		}
	}
	if active > int(*job.Spec.Parallelism) {
		c.problems = append(c.problems, fmt.Sprintf("%d active Pods with a parallelism of %d", active, *job.Spec.Parallelism))
	}
	if sameIndex > 1 {
		c.problems = append(c.problems, fmt.Sprintf("%d active Pods of index %d", sameIndex, CompletionIndex(made)))
	}
	if v1alpha1.IsFenced(job) {
		c.problems = append(c.problems, "a Pod was created for a fenced Job")
	}
	if IsShard(job) && !observed(c.w.job).Has(CompletionIndex(made)) {
		c.problems = append(c.problems, fmt.Sprintf("index %d was started before it was observed", CompletionIndex(made)))
	}
	if Finished(c.w.job) != nil {
		c.problems = append(c.problems, "a Pod was created for a finished Job")
	}
}

// canKnow is false of a Pod that somebody else has made and the cache doesn't show yet.
func (c *controller) canKnow(p *corev1.Pod) bool {
	return !strings.HasPrefix(p.Name, byHand) || c.w.cachedPods[p.UID] != nil
}

func (c *controller) write(job *batchv1.Job, w StatusWrite) (*batchv1.Job, error) {
	if !w.Changed {
		return job, nil
	}
	written, err := c.w.updateStatus(job.ResourceVersion, w)
	if err != nil {
		return nil, err
	}
	c.written = written
	return written, nil
}

// end is a kubelet reporting the end of a Pod.
func (w *fakeCluster) end(p *corev1.Pod, code int32) {
	if Ended(p) {
		return
	}
	exited(code, int(w.now.Sub(noon)/time.Second))(p)
	if code == 0 {
		w.succeeded.Insert(p.UID)
	} else {
		w.failed.Insert(p.UID)
	}
	w.logf("%s exits with %d", p.Name, code)
	w.storePod(p)
}

// check compares the counters with what really happened.
func (w *fakeCluster) check() error {
	s := &w.job.Status
	listed := ptr.Deref(s.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	if got := int(s.Succeeded) + len(listed.Succeeded); got > w.succeeded.Len() {
		return fmt.Errorf("%d Pods counted as succeeded, %d were", got, w.succeeded.Len())
	}
	if got := int(s.Failed) + len(listed.Failed); got > w.failed.Len() {
		return fmt.Errorf("%d Pods counted as failed, %d were", got, w.failed.Len())
	}
	return nil
}

// simulation is one random run.
type simulation struct {
	*fakeCluster
	c *controller
	t *rapid.T
}

func (s *simulation) anyPod(t *rapid.T, which func(*corev1.Pod) bool) *corev1.Pod {
	var fit []types.UID
	for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
		if which(s.pods[uid]) {
			fit = append(fit, uid)
		}
	}
	if len(fit) == 0 {
		t.Skip("no such Pod")
	}
	return s.pods[rapid.SampledFrom(fit).Draw(t, "pod")]
}

func alive(p *corev1.Pod) bool { return !Ended(p) }

func (s *simulation) sync(t *rapid.T) {
	err := s.c.sync()
	switch {
	case errors.Is(err, errCrash):
		s.logf("controller is killed and started again")
		s.writesLeft = -1
		s.relist()
		s.c = start(s.fakeCluster)
	case errors.Is(err, errConflict), errors.Is(err, errRefused):
		s.logf("controller meets: %v", err)
	case err != nil:
		t.Fatal(err, "\n", strings.Join(s.log, "\n"))
	}
	if len(s.c.problems) > 0 {
		t.Fatal(s.c.problems, "\n", strings.Join(s.log, "\n"))
	}
}

func (s *simulation) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"sync":   s.sync,
		"sync 2": s.sync,
		"deliver": func(t *rapid.T) {
			s.deliver(rapid.IntRange(0, 2).Draw(t, "jobs"), rapid.IntRange(0, 5).Draw(t, "pods"))
		},
		"crash": func(t *rapid.T) {
			s.writesLeft = rapid.IntRange(0, 8).Draw(t, "writes")
			s.sync(t)
			s.writesLeft = -1
		},
		"run": func(t *rapid.T) {
			p := s.anyPod(t, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil })
			isReady(int(s.now.Sub(noon) / time.Second))(p)
			s.storePod(p)
		},
		"end": func(t *rapid.T) {
			s.end(s.anyPod(t, alive), rapid.SampledFrom([]int32{0, 0, 0, 1, 2, 3}).Draw(t, "code"))
		},
		"end 2": func(t *rapid.T) { s.end(s.anyPod(t, alive), 0) },
		"delete by someone": func(t *rapid.T) {
			p := s.anyPod(t, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
			s.logf("someone deletes %s", p.Name)
			s.lose(p)
			s.markDeleted(p.UID)
		},
		"edit metadata": func(*rapid.T) { s.storeJob() },
		"suspend or resume": func(*rapid.T) {
			s.job.Spec.Suspend = ptr.To(!ptr.Deref(s.job.Spec.Suspend, false))
			s.logf("suspend=%v", *s.job.Spec.Suspend)
			s.storeEdit()
		},
		"fence or confirm": func(*rapid.T) {
			s.fence(!v1alpha1.IsFenced(s.job))
		},
		"parallelism": func(t *rapid.T) {
			s.job.Spec.Parallelism = ptr.To(rapid.Int32Range(0, 5).Draw(t, "parallelism"))
			s.logf("parallelism=%d", *s.job.Spec.Parallelism)
			s.storeEdit()
		},
		"scale an elastic Job": func(t *rapid.T) {
			if IsIndexed(s.job) && !perIndex(s.job) && Finished(s.job) == nil {
				n := rapid.Int32Range(1, 7).Draw(t, "completions")
				s.job.Spec.Parallelism, s.job.Spec.Completions = ptr.To(n), ptr.To(n)
				s.elastic = true
				s.logf("parallelism=completions=%d", n)
				s.storeEdit()
			}
		},
		"time": func(t *rapid.T) {
			s.now = s.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
		},
		"": func(t *rapid.T) {
			if err := s.check(); err != nil {
				t.Fatal(err, "\n", strings.Join(s.log, "\n"))
			}
		},
	}
}

// fence marks the Job as fenced, or takes the mark off.
func (w *fakeCluster) fence(closed bool) {
	delete(w.job.Annotations, v1alpha1.AnnotationFenced)
	if closed {
		metav1.SetMetaDataAnnotation(&w.job.ObjectMeta, v1alpha1.AnnotationFenced, w.now.Format(time.RFC3339))
	}
	w.logf("fenced=%v", closed)
	w.storeJob()
}

// lose records a Pod that is deleted while it runs: it counts as failed unless only Pods that are
// seen to have failed do.
func (w *fakeCluster) lose(p *corev1.Pod) {
	if !Ended(p) && !replacesOnlyFailed(w.job) {
		w.failed.Insert(p.UID)
	}
}

func anyJob(t *rapid.T) *batchv1.Job {
	kind := rapid.SampledFrom([]string{"plain", "queue", "indexed", "per index"}).Draw(t, "kind")
	parallelism, completions := rapid.Int32Range(0, 4).Draw(t, "parallelism"), rapid.Int32Range(0, 7).Draw(t, "completions")
	edits := map[string][]func(*batchv1.Job){
		"plain":     {sized(parallelism, completions)},
		"queue":     {workQueue(parallelism)},
		"indexed":   {sized(parallelism, completions), indexed},
		"per index": {sized(parallelism, completions), indexLimit(rapid.Int32Range(0, 2).Draw(t, "limit"))},
	}[kind]
	job := aJob(edits...)
	if kind != "per index" {
		job.Spec.BackoffLimit = ptr.To(rapid.Int32Range(0, 6).Draw(t, "backoffLimit"))
	} else if rapid.Bool().Draw(t, "limit failed indexes") {
		job.Spec.MaxFailedIndexes = ptr.To(rapid.Int32Range(0, 3).Draw(t, "maxFailedIndexes"))
	}
	if rapid.Bool().Draw(t, "only failed") {
		onlyFailedReplaced(job)
	}
	if rapid.IntRange(0, 2).Draw(t, "policy") == 0 {
		policy(onExit(batchv1.PodFailurePolicyActionIgnore, 2), onExit(batchv1.PodFailurePolicyActionFailJob, 3))(job)
		onlyFailedReplaced(job)
	}
	if kind == "indexed" && rapid.Bool().Draw(t, "success policy") {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: ptr.To(int32(2))}}}
	}
	if kind != "per index" && job.Spec.PodFailurePolicy == nil && rapid.IntRange(0, 3).Draw(t, "restarts") == 0 {
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	if rapid.Bool().Draw(t, "deadline") {
		job.Spec.ActiveDeadlineSeconds = ptr.To[int64](900)
	}
	job.CreationTimestamp = metav1.NewTime(noon)
	return job
}

// Whatever happens, and whenever the controller is killed, a Job is never run wider than it may be,
// no Pod is counted twice, and what the API server forbids is never written. Left alone, the Job
// ends, with every Pod counted.
func TestAnyRunEndsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newFakeCluster(anyJob(t))
		s := &simulation{fakeCluster: w, c: start(w), t: t}
		actions := s.actions()
		maps.Copy(actions, s.interference())
		t.Repeat(actions)
		s.leaveAlone(t)
	})
}

// leaveAlone lets every Pod end, without any other change.
func (s *simulation) leaveAlone(t *rapid.T) {
	s.job.Spec.Suspend = ptr.To(false)
	s.job.Spec.Parallelism = ptr.To[int32](3)
	s.refusesDeletions, s.refusesPatches = false, false
	s.storeEdit()
	s.fence(false)
	for range 400 {
		s.deliver(100, 1000)
		s.sync(t)
		if err := s.check(); err != nil {
			t.Fatal(err, "\n", strings.Join(s.log, "\n"))
		}
		for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
			if p := s.pods[uid]; p != nil {
				s.end(p, 0)
			}
		}
		s.now = s.now.Add(30 * time.Second)
		if Finished(s.job) != nil {
			s.checkEnd(t)
			return
		}
	}
	t.Fatal("the Job doesn't end:\n", strings.Join(s.log, "\n"))
}

func (s *simulation) checkEnd(t *rapid.T) {
	complete := trueCondition(s.job.Status.Conditions, batchv1.JobComplete)
	lost := s.succeeded.Difference(s.deleted).Len() - int(s.job.Status.Succeeded)
	if complete != nil && complete.Reason == batchv1.JobReasonCompletionsReached && !IsIndexed(s.job) && lost > 0 {
		t.Fatalf("%d Pods succeeded and were never counted\n%s", lost, strings.Join(s.log, "\n"))
	}
	for _, p := range s.pods {
		if IsTracked(p, testOptions.TrackingFinalizer) {
			t.Fatalf("%s is still tracked after the end\n%s", p.Name, strings.Join(s.log, "\n"))
		}
	}
}
