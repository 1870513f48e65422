package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

func (c *cluster) count(verb string) int {
	n := 0
	for _, w := range c.writes {
		if strings.HasPrefix(w, verb+" ") {
			n++
		}
	}
	return n
}

// At the floor of writes: one CREATE and one finalizer PATCH per Pod, and few status writes.
func TestWritesPerPod(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](50), ptr.To[int32](50) }))
	c.mustSync()
	for _, p := range c.pods() {
		c.end(&p, 0)
	}
	c.mustSync()
	if finished(c.job()) != batchv1.JobComplete {
		t.Fatalf("status %+v", c.job().Status)
	}
	if c.count("create") != 50 || c.count("patch") != 50 || c.count("status") != 3 || c.count("delete") != 0 {
		t.Errorf("%d creates, %d patches, %d status writes, %d deletes", c.count("create"), c.count("patch"), c.count("status"), c.count("delete"))
	}
}

// A sync that fails is tried again later and later, but what is due in between isn't forgotten.
func TestADeadlineIsKeptWhilePodsAreRefused(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](40) }))
	q := &delays{}
	c.jobs.queue = q
	c.refuse = func(verb string, _ client.Object) error {
		if verb == "create" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "job-x", errors.New("exceeded quota"))
		}
		return nil
	}
	if _, err := c.sync(); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if want := []time.Duration{40 * time.Second}; !slices.Equal(q.added, want) {
		t.Errorf("requeued after %v, want %v", q.added, want)
	}
}

// In a namespace that is being deleted no Pod can be created: the creation isn't retried.
func TestNoRetryInATerminatingNamespace(t *testing.T) {
	c := newCluster(t, Options{Options: plan.Options{MaxPodCreateDeletePerSync: 2}}, aJob(func(j *batchv1.Job) {
		j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](9), ptr.To[int32](9)
	}))
	c.refuse = func(verb string, _ client.Object) error {
		if verb != "create" {
			return nil
		}
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "job-x", errors.New("namespace ns is being terminated"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return err
	}
	if after := c.mustSync().RequeueAfter; after != 0 {
		t.Errorf("requeued after %v", after)
	}
	c.refuse = nil
	if after := c.mustSync().RequeueAfter; after != wake.AtOnce {
		t.Errorf("requeued after %v, want at once", after)
	}
}

// A refusal stops the creation at the end of its batch; an event reports it, and the status counts
// the Pods that exist.
func TestCreationStopsAtARefusal(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](100), ptr.To[int32](100) }))
	created := 0
	c.refuse = func(verb string, _ client.Object) error {
		if verb == "create" {
			if created++; created > 5 {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "job-x", errors.New("exceeded quota"))
			}
		}
		return nil
	}
	if _, err := c.sync(); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if created != 7 { // 1 + 2 + 4, of which two are refused
		t.Errorf("%d requests", created)
	}
	if c.job().Status.Active != 5 || c.eventCount("FailedCreate") != 2 || c.eventCount("SuccessfulCreate") != 5 {
		t.Errorf("active %d, events: %d failed, %d created", c.job().Status.Active, c.eventCount("FailedCreate"), c.eventCount("SuccessfulCreate"))
	}
}

// A namespace that is going is no error: no later attempt would fare better.
func TestCreationInAnEndingNamespace(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	c.refuse = func(verb string, _ client.Object) error {
		if verb != "create" {
			return nil
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
		}}
	}
	c.mustSync()
	if c.count("create") != 0 || c.eventCount("FailedCreate") != 0 {
		t.Errorf("writes %v", c.writes)
	}
}

// The cache shows nothing of what was written: no Pod is created twice, none counted twice.
func TestStaleCache(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	frozen := c.job()
	stale := interceptor.NewClient(c.jobs.client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			frozen.DeepCopyInto(obj.(*batchv1.Job))
			return nil
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	c.jobs.client, c.jobs.pods.client = stale, stale
	for range 3 {
		c.mustSync()
	}
	if c.count("create") != 2 || c.job().Status.Active != 2 {
		t.Errorf("%d Pods created, %d active", c.count("create"), c.job().Status.Active)
	}
}

// Created Pods that the cache never shows are asked for together, and replaced when they're gone.
func TestPodThatVanishedUnseen(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	asked := c.countLive()
	inner := c.jobs.client
	c.jobs.client = interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	if wake := c.mustSync().RequeueAfter; wake != cacheLag {
		t.Errorf("requeued after %v", wake)
	}
	for _, p := range c.pods() {
		p.Finalizers = nil
		if err := c.api.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		if err := c.api.Delete(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	c.mustSync()
	if c.count("create") != 2 {
		t.Fatal("replaced before anybody could know")
	}
	c.clock.Step(cacheLag)
	c.mustSync()
	if c.count("create") != 4 || *asked != 1 {
		t.Errorf("%d Pods created, %d requests", c.count("create"), *asked)
	}
}

// A Pod whose event of deletion came before a sync saw it, or even before the answer to its
// creation, is replaced at once.
func TestPodThatCameAndWent(t *testing.T) {
	for name, early := range map[string]bool{"before the next sync": false, "before the answer": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }))
			events := podEvents{memory: c.jobs.memory, options: c.jobs.options, metrics: c.jobs.metrics}
			vanish := func(p *corev1.Pod) {
				p = p.DeepCopy()
				p.Finalizers = nil
				for _, err := range []error{c.api.Update(t.Context(), p), c.api.Delete(t.Context(), p)} {
					if err != nil {
						t.Error(err)
					}
				}
				events.Delete(t.Context(), event.DeleteEvent{Object: p}, &delays{})
			}
			if early {
				c.written = func() {
					c.written = func() {}
					vanish(&c.pods()[0])
				}
			}
			c.mustSync()
			if !early {
				vanish(&c.pods()[0])
			}
			c.mustSync()
			if s := c.job().Status; c.count("create") != 2 || s.Active != 1 || ptr.Deref(s.Terminating, 0) != 0 {
				t.Errorf("%d Pods created, status %+v", c.count("create"), s)
			}
		})
	}
}

// Surplus Pods are given up only as they were seen: one that has ended meanwhile is counted.
func TestSurplusPodThatHasJustSucceeded(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), aPod("a"))
	c.refuse = func(verb string, obj client.Object) error {
		if verb == "patch" && obj.GetName() == "a" {
			c.refuse = nil
			p := c.pods()[0]
			c.end(&p, 0) // in between the read and the write
		}
		return nil
	}
	if result := c.mustSync(); result.RequeueAfter == 0 {
		t.Error("isn't requeued")
	}
	c.mustSync()
	if s := c.job().Status; s.Succeeded != 1 || c.count("delete") != 0 {
		t.Errorf("status %+v, writes %v", s, c.writes)
	}
}

// One that has only changed is given up all the same.
func TestSurplusPodThatHasChanged(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), aPod("a"))
	c.refuse = func(verb string, obj client.Object) error {
		if verb == "patch" && obj.GetName() == "a" {
			c.refuse = nil
			p := c.pods()[0]
			p.Labels["more"] = "yes"
			if err := c.api.Update(t.Context(), &p); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	c.mustSync()
	if len(c.pods()) != 0 || c.job().Status.Failed != 0 {
		t.Errorf("%d Pods are left, writes %v", len(c.pods()), c.writes)
	}
}

func TestJobsThatAreLeftAlone(t *testing.T) {
	for name, edit := range map[string]func(*batchv1.Job){
		"managed by another":      func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/other") },
		"managed by the built-in": func(j *batchv1.Job) { j.Spec.ManagedBy = nil },
		"finished": func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		},
		"of an unknown mode": func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.CompletionMode("Later")) },
	} {
		c := newCluster(t, Options{}, aJob(edit))
		c.mustSync()
		if len(c.writes) != 0 {
			t.Errorf("%s: writes %v", name, c.writes)
		}
	}
}

// A Job that comes back under its name, but isn't ours any more, is forgotten.
func TestJobRecreatedForAnother(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	c.mustSync()
	if err := c.api.Delete(t.Context(), c.job()); err != nil {
		t.Fatal(err)
	}
	if err := c.api.Create(t.Context(), aJob(func(j *batchv1.Job) { j.UID, j.Spec.ManagedBy = "new", ptr.To("example.com/other") })); err != nil {
		t.Fatal(err)
	}
	before := len(c.writes)
	c.mustSync()
	if len(c.writes) != before || len(c.jobs.memory.jobs) != 0 {
		t.Errorf("writes %v, remembered %d", c.writes[before:], len(c.jobs.memory.jobs))
	}
}

func TestMemoryIsFreed(t *testing.T) {
	c := newCluster(t, Options{}, aJob())
	c.mustSync()
	if err := c.api.Delete(t.Context(), c.job()); err != nil {
		t.Fatal(err)
	}
	c.mustSync()
	if len(c.jobs.memory.jobs) != 0 {
		t.Error("a deleted Job is remembered")
	}
}

func TestAdoption(t *testing.T) {
	orphan := func(p *corev1.Pod) { p.OwnerReferences, p.Finalizers = nil, nil }
	c := newCluster(t, Options{}, aJob(), aPod("a", orphan), aPod("b", orphan, func(p *corev1.Pod) { p.Labels = nil }))
	c.mustSync()
	for _, p := range c.pods() {
		if p.Name == "a" && (!metav1.IsControlledBy(&p, c.job()) || !slices.Contains(p.Finalizers, v1alpha1.FinalizerJobTracking)) {
			t.Errorf("a wasn't adopted: %+v", p.ObjectMeta)
		}
		if p.Name == "b" && len(p.OwnerReferences) != 0 {
			t.Error("b was adopted")
		}
	}
	if c.job().Status.Active != 2 || c.count("create") != 1 {
		t.Errorf("active %d, created %d", c.job().Status.Active, c.count("create"))
	}
}

func TestWakeUpForTheBackoff(t *testing.T) {
	c := newCluster(t, Options{}, aJob(), aPod("a", func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(noon)},
		}}}
	}))
	if got := c.mustSync().RequeueAfter; got != 10*time.Second {
		t.Errorf("requeued after %v", got)
	}
}

// While Pods run, what has ended is counted by the next sync's first write: one status write for
// each sync, not two.
func TestCountingWaitsForTheNextWrite(t *testing.T) {
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](4), ptr.To[int32](4) }))
	c.mustSync()
	for i := range 3 {
		p := c.pods()[i]
		c.end(&p, 0)
		before := c.count("status")
		if wake := c.mustSync().RequeueAfter; wake == 0 || wake > time.Second {
			t.Errorf("requeued after %v", wake)
		}
		if got := c.count("status") - before; got != 1 {
			t.Errorf("%d status writes in sync %d", got, i)
		}
		if s := c.job().Status; int(s.Succeeded) != i || len(s.UncountedTerminatedPods.Succeeded) != 1 {
			t.Errorf("sync %d: succeeded %d, listed %d", i, s.Succeeded, len(s.UncountedTerminatedPods.Succeeded))
		}
	}
	c.mustSync() // nothing happens: it's counted all the same
	if s := c.job().Status; s.Succeeded != 3 || len(s.UncountedTerminatedPods.Succeeded) != 0 {
		t.Errorf("succeeded %d, listed %d", s.Succeeded, len(s.UncountedTerminatedPods.Succeeded))
	}
	p := c.pods()[3]
	c.end(&p, 0)
	c.mustSync()
	if finished(c.job()) != batchv1.JobComplete || c.job().Status.Succeeded != 4 {
		t.Errorf("status %+v", c.job().Status)
	}
}
