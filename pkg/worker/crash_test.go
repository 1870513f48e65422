package worker

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// scenario is a Job and how its Pods end.
type scenario struct {
	name string
	job  *batchv1.Job
	// exitCode of a Pod, by its index (or -1) and how often that index failed.
	exitCode func(index, failures int) int32
	midway   func(*batchv1.Job) // an edit by the user once two Pods have ended
}

func scenarios() []scenario {
	indexed := func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }
	perIndex := func(j *batchv1.Job) {
		indexed(j)
		j.Spec.BackoffLimitPerIndex = ptr.To[int32](1)
	}
	succeed := func(int, int) int32 { return 0 }
	gangOf3 := func(j *batchv1.Job) {
		indexed(j)
		j.Spec.Parallelism = ptr.To[int32](3)
		gang(0)(j)
	}
	return []scenario{
		{"all succeed", aJob(), succeed, nil},
		{"all succeed, indexed", aJob(indexed), succeed, nil},
		{"a gang succeeds", aJob(gangOf3), succeed, nil},
		{"index 1 fails for good", aJob(perIndex), func(index, _ int) int32 { return int32(index % 2) }, nil},
		{"index 1 fails once", aJob(perIndex), func(index, failures int) int32 {
			if index == 1 && failures == 0 {
				return 1
			}
			return 0
		}, nil},
		{"too many failures", aJob(func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](0) }), func(int, int) int32 { return 1 }, nil},
		{"suspended and resumed", aJob(indexed, func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](5) }), succeed,
			func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }},
		{"scaled up", aJob(indexed), succeed, func(j *batchv1.Job) { j.Spec.Completions, j.Spec.Parallelism = ptr.To[int32](6), ptr.To[int32](6) }},
	}
}

// Whichever write of the controller is its last one, the next process brings the Job to the same
// end.
func TestKilledAfterAnyWrite(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			want := s.run(t, -1, 0)
			for writes := range len(want.writes) {
				s.run(t, writes, 0).compare(t, want, writes)
			}
		})
	}
}

// compare checks the end of a Job whose controller was killed after that many writes.
func (c *cluster) compare(t *testing.T, want *cluster, writes int) {
	t.Helper()
	if diff := cmp.Diff(want.job().Status, c.job().Status, cmpopts.IgnoreTypes(metav1.Time{}, &metav1.Time{})); diff != "" {
		t.Errorf("killed after %d writes (-want +got):\n%s\n%v", writes, diff, c.writes)
	}
	for _, p := range c.pods() {
		if plan.IsTracked(&p, v1alpha1.FinalizerJobTracking) {
			t.Errorf("killed after %d writes: %s is still tracked", writes, p.Name)
		}
	}
}

// run runs the scenario to its end, killing the controller after that many writes; -1 is never. Its
// cache is behind by some writes.
func (s scenario) run(t *testing.T, writes, behind int) *cluster {
	t.Helper()
	c := newCluster(t, Options{}, s.job.DeepCopy())
	c.writesLeft = writes
	late := c.beLate(behind)
	ended := 0
	for range 200 {
		late.advance()
		if _, err := c.sync(); errors.Is(err, errKilled) {
			c.writesLeft = -1
			c.start(Options{})
			late.takeOver()
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		c.clock.Step(time.Minute)
		if finished(c.job()) != "" {
			c.cleanUp()
			return c
		}
		ended += s.kubelet(c)
		if s.midway != nil && ended >= 2 {
			s.edit(c)
		}
	}
	t.Fatalf("the Job doesn't end: %+v\n%v", c.job().Status, c.writes)
	return nil
}

// kubelet ends the first Pod that runs, and those being deleted.
func (s scenario) kubelet(c *cluster) (ended int) {
	for _, p := range c.pods() {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		failures, err := strconv.Atoi(p.Annotations[batchv1.JobIndexFailureCountAnnotation])
		if err != nil {
			failures = 0 // no backoffLimitPerIndex
		}
		c.end(&p, s.exitCode(plan.CompletionIndex(&p), failures))
		return 1
	}
	return 0
}

// edit applies the user's change, or resumes a Job that has been suspended.
func (s scenario) edit(c *cluster) {
	job := c.job()
	before := job.DeepCopy()
	if ptr.Deref(job.Spec.Suspend, false) {
		job.Spec.Suspend = ptr.To(job.Status.Conditions == nil)
	} else if job.Status.Conditions == nil {
		s.midway(job)
	}
	if equality.Semantic.DeepEqual(before, job) {
		return
	}
	if err := c.api.Update(c.t.Context(), job); err != nil {
		c.t.Fatal(err)
	}
	c.written()
}

// cleanUp reconciles the orphans.
func (c *cluster) cleanUp() {
	for _, p := range c.pods() {
		if _, err := c.orphans.Reconcile(c.t.Context(), requestFor(&p)); err != nil {
			c.t.Fatal(err)
		}
	}
}
