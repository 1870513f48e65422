package worker_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// scene is what one test does with the cluster: it has a namespace, and is the kubelet there.
type scene struct {
	*rigtest.Fixture
	workertest.Kubelet
	t       *testing.T
	cluster *rig.Cluster
	ns      string
}

// begin opens a scene with the shared controller.
func begin(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	s := open(t, "worker")
	if err := startShared(s.cluster); err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens a scene in that cluster, without a controller.
func open(t *testing.T, cluster string) *scene {
	t.Helper()
	f := rigtest.For(t)
	c := f.Cluster(cluster)
	ns := f.Namespace(c)
	return &scene{Fixture: f, Kubelet: workertest.Kubelet{Client: c.Client(), Namespace: ns}, t: t, cluster: c, ns: ns}
}

func (s *scene) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

type edit = rigtest.Option

// start creates the Job "job", managed by jobferry-worker, whose Pods are bound to the test's node.
func (s *scene) start(edits ...edit) *batchv1.Job {
	s.t.Helper()
	edits = append([]edit{rigtest.ManagedBy("jobferry.dev/worker"), bound}, edits...)
	return s.Create(s.cluster, rigtest.Job(s.ns, "job", edits...))
}

func bound(j *batchv1.Job) { j.Spec.Template.Spec.NodeName = workertest.Node }

func unbound(j *batchv1.Job) { j.Spec.Template.Spec.NodeName = "" }

func size(parallelism, completions int32) edit {
	return func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = &parallelism, &completions }
}

func indexed(parallelism, completions int32) edit {
	return func(j *batchv1.Job) {
		size(parallelism, completions)(j)
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
}

func perIndex(limit int32) edit { return func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = &limit } }

// until waits for the Job to be so.
func (s *scene) until(so func(*batchv1.Job) bool) *batchv1.Job {
	s.t.Helper()
	return s.JobUntil(s.cluster, s.ns, "job", so)
}

func active(n int32) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool { return j.Status.Ready != nil && j.Status.Active == n }
}

// counted has the Job count that many Pods, with none listed as uncounted.
func counted(succeeded, failed int32) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool {
		listed := j.Status.UncountedTerminatedPods
		return j.Status.Succeeded == succeeded && j.Status.Failed == failed &&
			(listed == nil || len(listed.Succeeded)+len(listed.Failed) == 0)
	}
}

func all(conditions ...func(*batchv1.Job) bool) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool {
		for _, so := range conditions {
			if !so(j) {
				return false
			}
		}
		return true
	}
}

// pods are the Job's Pods that pass the test, by index, then by age.
func (s *scene) pods(which func(corev1.Pod) bool) []corev1.Pod {
	s.t.Helper()
	list, err := s.Pods(s.Context(), "job")
	s.ok(err)
	var out []corev1.Pod
	for _, p := range list {
		if which(p) {
			out = append(out, p)
		}
	}
	return out
}

// running waits until the Job has that many active Pods, and returns them.
func (s *scene) running(n int32) []corev1.Pod {
	s.t.Helper()
	s.until(active(n))
	pods := s.pods(workertest.Active)
	if len(pods) != int(n) {
		s.t.Fatalf("%d active Pods according to the status, there are %d", n, len(pods))
	}
	return pods
}

func (s *scene) exit(code int32, pods ...corev1.Pod) {
	s.t.Helper()
	for _, p := range pods {
		s.ok(s.Exit(s.Context(), p, code))
	}
}

func (s *scene) run(pods ...corev1.Pod) {
	s.t.Helper()
	for _, p := range pods {
		s.ok(s.Run(s.Context(), p))
	}
}

// deletePod asks for a Pod's end, as a user does.
func (s *scene) deletePod(p corev1.Pod) {
	s.t.Helper()
	s.ok(s.Client.CoreV1().Pods(s.ns).Delete(s.Context(), p.Name, metav1.DeleteOptions{}))
}

// terminate ends the Pods that are being deleted.
func (s *scene) terminate() {
	s.t.Helper()
	for _, p := range s.pods(func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }) {
		s.ok(s.Terminate(s.Context(), p))
	}
}

// patch edits the Job's spec, given as JSON.
func (s *scene) patch(spec string) {
	s.t.Helper()
	_, err := s.Client.BatchV1().Jobs(s.ns).Patch(s.Context(), "job", types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	s.ok(err)
}

func has(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// failedFor waits for the Job's failure, and checks the reason.
func (s *scene) failedFor(reason string) *batchv1.Job {
	s.t.Helper()
	job := s.until(rigtest.Failed)
	if got := has(job, batchv1.JobFailed).Reason; got != reason {
		s.t.Errorf("failed for %s, want %s", got, reason)
	}
	return job
}

// event waits for an event about the Job.
func (s *scene) event(reason, message string) {
	s.t.Helper()
	s.Until(rig.Objects(s.Client.CoreV1().RESTClient(), "events", s.ns), func(o runtime.Object) bool {
		e, ok := o.(*corev1.Event)
		return ok && e.InvolvedObject.Kind == "Job" && e.Reason == reason && strings.Contains(e.Message, message) && e.Source.Component == "job-controller"
	})
}

// podUntil waits for a Pod to be so; nil is one that is gone.
func (s *scene) podUntil(p corev1.Pod, so func(*corev1.Pod) bool) {
	s.t.Helper()
	s.Until(rig.Object(s.Client.CoreV1().RESTClient(), "pods", s.ns, p.Name), func(o runtime.Object) bool {
		pod, _ := o.(*corev1.Pod)
		return so(pod)
	})
}

func gone(p *corev1.Pod) bool { return p == nil }

func tracked(p *corev1.Pod) bool {
	if p == nil {
		return false
	}
	for _, f := range p.Finalizers {
		if f == "jobferry.dev/job-tracking" {
			return true
		}
	}
	return false
}

func untracked(p *corev1.Pod) bool { return p != nil && !tracked(p) }

// anyPodUntil waits until some Pod of the namespace is so.
func (s *scene) anyPodUntil(so func(*corev1.Pod) bool) *corev1.Pod {
	s.t.Helper()
	return s.Until(rig.Objects(s.Client.CoreV1().RESTClient(), "pods", s.ns), func(o runtime.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && so(pod)
	}).(*corev1.Pod)
}
