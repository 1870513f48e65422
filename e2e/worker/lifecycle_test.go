package worker_test

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// A Job of no completions is complete at once, and a suspended one ends without having started.
func TestNoCompletions(t *testing.T) {
	for name, edits := range map[string][]edit{
		"plain":              {size(2, 0)},
		"indexed":            {indexed(2, 0)},
		"suspended":          {size(2, 0), rigtest.Suspended()},
		"indexed, suspended": {indexed(2, 0), rigtest.Suspended()},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			suspended := *s.start(edits...).Spec.Suspend
			job := s.until(rigtest.Complete)
			if c := has(job, batchv1.JobComplete); c.Reason != "CompletionsReached" || has(job, batchv1.JobSuspended) != nil {
				t.Errorf("conditions %+v", job.Status.Conditions)
			}
			if (job.Status.StartTime == nil) != suspended || job.Status.CompletionTime == nil || len(s.pods(every)) != 0 {
				t.Errorf("%d Pods, status %+v", len(s.pods(every)), job.Status)
			}
		})
	}
}

// A Job that has run may be edited while it's suspended: where its Pods go and what they may use.
func TestTemplateEditAfterAStart(t *testing.T) {
	s := begin(t)
	s.start(size(2, 2), unbound)
	before := s.running(2)
	s.patch(`{"suspend":true}`)
	s.until(all(rigtest.HasCondition(batchv1.JobSuspended), active(0)))
	s.patch(`{"template":{"metadata":{"labels":{"pool":"blue"}},"spec":{"nodeSelector":{"pool":"blue"},
		"tolerations":[{"key":"blue","operator":"Exists"}],"containers":[{"name":"main","image":"` + before[0].Spec.Containers[0].Image + `",
		"resources":{"requests":{"cpu":"3"}}}]}}}`)
	s.patch(`{"suspend":false}`)
	pods := s.running(2)
	for _, p := range pods {
		cpu := p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
		tolerated := false
		for _, toleration := range p.Spec.Tolerations {
			tolerated = tolerated || toleration.Key == "blue"
		}
		if p.Labels["pool"] != "blue" || p.Spec.NodeSelector["pool"] != "blue" || !tolerated || cpu.Cmp(resource.MustParse("3")) != 0 {
			t.Errorf("labels %v, spec %+v", p.Labels, p.Spec)
		}
	}
	s.exit(0, pods...)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 2 || job.Status.Failed != 0 {
		t.Errorf("status %+v", job.Status)
	}
}

// restartPolicy OnFailure: restarts of init containers count, too, while the Pod is pending.
func TestInitRestartsCountTowardsTheLimit(t *testing.T) {
	s := begin(t)
	s.start(rigtest.BackoffLimit(2), func(j *batchv1.Job) {
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.org/init"}}
	})
	pods := s.running(1)
	s.ok(s.RestartInit(s.Context(), pods[0], 1))
	s.podUntil(pods[0], func(p *corev1.Pod) bool {
		return p != nil && p.DeletionTimestamp == nil && len(p.Status.InitContainerStatuses) > 0
	})
	s.ok(s.RestartInit(s.Context(), pods[0], 2))
	s.terminateUntilGone(pods)
	s.failedFor("BackoffLimitExceeded")
}

// A Job that is deleted and created again under its name starts at once, and the old one's Pods,
// which still terminate, are none of its.
func TestRecreationWhileOldPodsTerminate(t *testing.T) {
	s := begin(t)
	s.start(size(2, 2))
	old := s.running(2)
	s.run(old...)
	s.ok(s.Client.BatchV1().Jobs(s.ns).Delete(s.Context(), "job", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	s.JobGone(s.cluster, s.ns, "job")
	s.start(size(2, 2))
	for _, p := range old {
		s.podUntil(p, func(p *corev1.Pod) bool { return p != nil && p.DeletionTimestamp != nil && !tracked(p) })
	}
	next := s.running(2)
	if job := s.until(active(2)); *job.Status.Terminating != 0 {
		t.Errorf("status %+v", job.Status)
	}
	s.exit(1, old[0])
	s.terminateUntilGone(old)
	s.exit(0, next...)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 2 || job.Status.Failed != 0 {
		t.Errorf("status %+v", job.Status)
	}
}

// While no controller runs, a Job is deleted whose Pods are tracked. The next controller untracks
// them, so that they can go.
func TestFinalizersLeftWhileNoControllerRan(t *testing.T) {
	for name, policy := range map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "orphan": metav1.DeletePropagationOrphan,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, "worker")
			job, controller, again := s.startApart(size(2, 2))
			pods := s.running(2)
			controller.Kill()
			s.exit(0, pods[0])
			s.ok(s.Client.BatchV1().Jobs(s.ns).Delete(s.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &policy}))
			s.JobGone(s.cluster, s.ns, job.Name)
			for _, p := range pods {
				s.podUntil(p, s.trackedApart)
			}
			again()
			if policy == metav1.DeletePropagationOrphan {
				for _, p := range pods {
					s.podUntil(p, func(p *corev1.Pod) bool { return p != nil && !s.trackedApart(p) && len(p.OwnerReferences) == 0 })
				}
				return
			}
			s.podUntil(pods[0], gone)
			s.terminateUntilGone(pods[1:])
		})
	}
}

// A Pod that somebody makes with the Job's owner reference, but without the finalizer, is the
// Job's: it takes a place, is tracked, and counts once.
func TestPodMadeByHand(t *testing.T) {
	t.Parallel()
	s := open(t, "worker")
	job, controller, again := s.startApart(size(2, 3))
	pods := s.running(2)
	controller.Kill()
	s.exit(0, pods[0])
	hand, err := s.Client.CoreV1().Pods(s.ns).Create(s.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "by-hand-", Labels: job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: job.Spec.Template.Spec,
	}, metav1.CreateOptions{})
	s.ok(err)
	again()
	s.podUntil(*hand, s.trackedApart)
	s.until(all(active(2), counted(1, 0)))
	s.exit(0, *hand, pods[1])
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 3 || len(s.pods(every)) != 3 {
		t.Errorf("%d Pods, status %+v", len(s.pods(every)), job.Status)
	}
}

// apart is the scene's own name of a Job controller, and of a finalizer: another controller would
// remove its own from the Pods of any Job that is gone.
func (s *scene) apart() string { return "example.com/" + s.ns }

func (s *scene) trackedApart(p *corev1.Pod) bool {
	return p != nil && slices.Contains(p.Finalizers, s.apart())
}

// startApart is start with a controller for this scene alone, and what starts another one.
func (s *scene) startApart(edits ...edit) (*batchv1.Job, *process.Process, func() *process.Process) {
	s.t.Helper()
	s.ok(workertest.AddNode(s.Context(), s.Client))
	controller := func() *process.Process {
		return s.controller(nil, "--managed-by="+s.apart(), "--tracking-finalizer="+s.apart(), "--sync-batch-period="+batch)
	}
	first := controller()
	return s.start(append(edits, rigtest.ManagedBy(s.apart()))...), first, controller
}
