package worker_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

var onlyJob = metav1.ListOptions{FieldSelector: "metadata.name=job"}

// orphanLike creates a Pod with the labels and annotations of another, without a controller.
func (s *scene) orphanLike(p corev1.Pod) corev1.Pod {
	s.t.Helper()
	made, err := s.Client.CoreV1().Pods(s.ns).Create(s.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-", Labels: p.Labels, Annotations: p.Annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, NodeName: p.Spec.NodeName,
			Containers: []corev1.Container{{Name: container, Image: "example.org/main"}},
		},
	}, metav1.CreateOptions{})
	s.ok(err)
	return *made
}

func TestMatchingOrphanIsAdopted(t *testing.T) {
	s := begin(t)
	job := s.start(size(2, 4), func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](2) })
	pods := s.running(2)
	orphan := s.orphanLike(pods[0])
	s.podUntil(orphan, func(p *corev1.Pod) bool {
		return p == nil || tracked(p) && metav1.IsControlledBy(p, job)
	})
}

func TestAdoptedPodCounts(t *testing.T) {
	s := begin(t)
	s.start(size(0, 1), manual)
	s.until(active(0))
	orphan := s.orphanLike(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "mine"}}, Spec: corev1.PodSpec{NodeName: workertest.Node}})
	s.exit(0, orphan)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 1 {
		t.Errorf("status %+v", job.Status)
	}
}

// manual is a Job with a selector of the user's own.
func manual(j *batchv1.Job) {
	j.Spec.ManualSelector = ptr.To(true)
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mine"}}
	j.Spec.Template.Labels = map[string]string{"app": "mine", "batch.kubernetes.io/job-name": "job"}
}

func TestManualSelector(t *testing.T) {
	s := begin(t)
	s.start(manual)
	pods := s.running(1)
	if pods[0].Labels["app"] != "mine" {
		t.Errorf("labels %v", pods[0].Labels)
	}
	s.exit(0, pods...)
	s.until(rigtest.Complete)
}

// A Pod that stops matching is released: it loses the owner and the finalizer, and another takes
// its place.
func TestPodThatStopsMatchingIsReleased(t *testing.T) {
	s := begin(t)
	s.start(manual)
	pods := s.running(1)
	_, err := s.Client.CoreV1().Pods(s.ns).Patch(s.Context(), pods[0].Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"else"}}}`), metav1.PatchOptions{})
	s.ok(err)
	s.podUntil(pods[0], func(p *corev1.Pod) bool { return p != nil && len(p.OwnerReferences) == 0 && untracked(p) })
	next := s.anyPodUntil(func(p *corev1.Pod) bool { return p.Name != pods[0].Name && tracked(p) })
	s.exit(0, *next)
	s.until(rigtest.Complete)
}

// A Pod deleted by someone else counts as failed and is replaced.
func TestPodDeletedBySomeoneElse(t *testing.T) {
	s := begin(t)
	s.start()
	pods := s.running(1)
	s.run(pods...)
	s.deletePod(pods[0])
	s.until(counted(0, 1))
	s.terminate()
	s.podUntil(pods[0], gone)
	s.exit(0, s.running(1)...)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 1 || job.Status.Failed != 1 {
		t.Errorf("status %+v", job.Status)
	}
}

// Even a forced deletion waits until the Pod is counted.
func TestForceDeletedPodIsCounted(t *testing.T) {
	s := begin(t)
	s.start(size(2, 2))
	pods := s.running(2)
	s.run(pods...)
	s.exit(0, pods[0])
	s.ok(s.Remove(s.Context(), pods[0]))
	s.ok(s.Remove(s.Context(), pods[1]))
	s.podUntil(pods[0], gone)
	s.podUntil(pods[1], gone)
	s.until(counted(1, 1))
	s.exit(0, s.running(1)...)
	s.until(all(rigtest.Complete, counted(2, 1)))
}

// The node of a Pod is lost: the Pod is deleted, and its end is never reported.
func TestPodOfALostNodeIsReplaced(t *testing.T) {
	s := begin(t)
	s.start(func(j *batchv1.Job) { j.Spec.Template.Spec.NodeName = "no-such-node" })
	pods := s.running(1)
	s.deletePod(pods[0]) // as the node lifecycle controller does
	s.until(counted(0, 1))
	s.exit(0, s.running(1)...)
	job := s.until(counted(1, 1))
	if has(job, batchv1.JobComplete) == nil && *job.Status.Terminating != 1 {
		t.Errorf("status %+v", job.Status)
	}
	s.ok(s.Remove(s.Context(), pods[0])) // as the Pod garbage collector does
	s.until(rigtest.Complete)
}

func TestFinalizersGoWithTheJob(t *testing.T) {
	for name, policy := range map[string]metav1.DeletionPropagation{
		"orphan": metav1.DeletePropagationOrphan, "background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground,
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.start(size(2, 2))
			pods := s.running(2)
			s.ok(s.Client.BatchV1().Jobs(s.ns).Delete(s.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &policy}))
			for _, p := range pods {
				s.podUntil(p, func(p *corev1.Pod) bool { return !tracked(p) })
			}
			if policy == metav1.DeletePropagationOrphan {
				s.podUntil(pods[0], func(p *corev1.Pod) bool { return p != nil && len(p.OwnerReferences) == 0 })
				return
			}
			s.terminateUntilGone(pods)
			s.JobGone(s.cluster, s.ns, "job")
		})
	}
}

// terminateUntilGone terminates Pods as soon as they're deleted.
func (s *scene) terminateUntilGone(pods []corev1.Pod) {
	s.t.Helper()
	for _, p := range pods {
		s.podUntil(p, func(p *corev1.Pod) bool { return p == nil || p.DeletionTimestamp != nil })
		s.ok(s.Terminate(s.Context(), p))
		s.podUntil(p, gone)
	}
}

// Somebody edits the Job all the time, so that many status writes meet a conflict.
func TestStatusConflicts(t *testing.T) {
	s := begin(t)
	s.start(size(4, 12))
	stop := make(chan struct{})
	stopped := make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			_, err := s.Client.BatchV1().Jobs(s.ns).Patch(s.Context(), "job", types.JSONPatchType,
				[]byte(`[{"op":"add","path":"/metadata/annotations","value":{"at":"`+metav1.Now().Format("15:04:05.000000")+`"}}]`), metav1.PatchOptions{})
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	for done := int32(0); done < 12; done += 4 {
		s.until(active(4))
		s.exit(0, s.running(4)...)
		s.until(func(j *batchv1.Job) bool { return j.Status.Succeeded == done+4 })
	}
	close(stop)
	s.ok(<-stopped)
	if job := s.until(rigtest.Complete); job.Status.Succeeded != 12 || job.Status.Failed != 0 || len(s.pods(every)) != 12 {
		t.Errorf("status %+v", job.Status)
	}
}
