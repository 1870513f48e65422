package groups_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/clients"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/groups/jobsettest"
	"github.com/jobferry/jobferry/e2e/groups/trainertest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// scene is a hub as it's installed, with JobSet beside it, as one test sees it.
type scene struct {
	*ferrytest.Ferry
	t       *testing.T
	jobSets rest.Interface
}

// open prepares the hub if need be. JobSets of the test's namespace are dispatched once a manager
// runs and the workers are registered.
func open(t *testing.T) *scene {
	t.Helper()
	s := &scene{Ferry: clients.For(t), t: t}
	for _, worker := range workers {
		s.LeaveWorker(worker)
	}
	s.install()
	var err error
	s.jobSets, err = jobsettest.Client(s.Hub)
	s.ok(err)
	return s
}

var installed struct {
	sync.Mutex
	done bool
}

// install brings JobSet, and what the manager needs to carry Services, to the hub, once.
func (s *scene) install() {
	s.t.Helper()
	installed.Lock()
	defer installed.Unlock()
	if installed.done {
		return
	}
	for _, file := range []string{"role.yaml", "binding.yaml"} {
		s.Kubectl(s.Hub, "", "apply", "--server-side", "-f", checkout.Path("config", "carry", file))
	}
	// The first build takes longer than a test may.
	_, err := jobsettest.Start(context.Background(), s.Hub)
	s.ok(err)
	installed.done = true
}

func (s *scene) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// register registers all workers. Services are carried to them.
func (s *scene) register() {
	s.t.Helper()
	s.Register(workers...)
	for _, worker := range workers {
		s.SetWorker(worker, `{"carry":["Service"]}`)
	}
	for _, worker := range workers {
		s.WorkerUntil(worker, func(w *v1alpha1.WorkerCluster) bool {
			return ferrytest.Observed(w) && ferrytest.Ready(w)
		})
	}
}

// create creates a JobSet.
func (s *scene) create(js *jobset.JobSet) {
	s.t.Helper()
	s.ok(s.jobSets.Post().Namespace(s.NS).Resource("jobsets").Body(js).Do(s.Context()).Error())
}

// patch merges JSON into a JobSet.
func (s *scene) patch(name, patch string) {
	s.t.Helper()
	s.ok(s.jobSets.Patch(types.MergePatchType).Namespace(s.NS).Resource("jobsets").Name(name).Body([]byte(patch)).Do(s.Context()).Error())
}

// jobSetUntil waits until a condition holds for a JobSet. It ends the test if the JobSet fails.
func (s *scene) jobSetUntil(name string, holds func(*jobset.JobSet) bool) *jobset.JobSet {
	s.t.Helper()
	js := s.Until(rig.Object(s.jobSets, "jobsets", s.NS, name), func(o runtime.Object) bool {
		js, ok := o.(*jobset.JobSet)
		return ok && (holds(js) || is(jobset.JobSetFailed)(js))
	}).(*jobset.JobSet)
	if !holds(js) {
		s.t.Fatalf("JobSet %s has failed: %+v", name, js.Status)
	}
	return js
}

// is says whether a condition of a JobSet is True.
func is(condition jobset.JobSetConditionType) func(*jobset.JobSet) bool {
	return func(js *jobset.JobSet) bool {
		return meta.IsStatusConditionTrue(js.Status.Conditions, string(condition))
	}
}

// ready says whether a JobSet counts so many Jobs of a part as ready.
func ready(part string, jobs int32) func(*jobset.JobSet) bool {
	return func(js *jobset.JobSet) bool {
		return slices.ContainsFunc(js.Status.ReplicatedJobsStatus, func(r jobset.ReplicatedJobStatus) bool {
			return r.Name == part && r.Ready == jobs
		})
	}
}

// each waits until a condition holds for each of some Jobs on the hub, and returns them as they
// were then.
func (s *scene) each(jobs []string, holds func(*batchv1.Job) bool) []*batchv1.Job {
	s.t.Helper()
	var all []*batchv1.Job
	for _, name := range jobs {
		all = append(all, s.HubJobUntil(name, holds))
	}
	return all
}

// running says whether all Pods of a Job that ours don't end by themselves run.
func running(job *batchv1.Job) bool { return rigtest.Running(1)(job) && ferrytest.ClusterOf(job) != "" }

// attempt says whether JobSet has made a Job in a restart of this number.
func attempt(number string) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool {
		return j.DeletionTimestamp == nil && j.Labels["jobset.sigs.k8s.io/restart-attempt"] == number
	}
}

// together returns the one worker that has all of some Jobs, as the hub shows and as the workers'
// own Jobs tell.
func (s *scene) together(jobs []*batchv1.Job) string {
	s.t.Helper()
	at := ferrytest.ClusterOf(jobs[0])
	for _, job := range jobs {
		if other := ferrytest.ClusterOf(job); other != at {
			s.t.Errorf("Job %s is in worker %s, Job %s in worker %s", jobs[0].Name, at, job.Name, other)
		}
	}
	s.onlyIn(at)
	return at
}

// onlyIn checks that no other worker has Jobs or Pods of this test.
func (s *scene) onlyIn(worker string) {
	s.t.Helper()
	for _, other := range workers {
		if other == worker {
			continue
		}
		jobs, err := s.Cluster(other).Client().BatchV1().Jobs(s.NS).List(s.Context(), metav1.ListOptions{})
		s.ok(err)
		if pods := s.Pods(s.Cluster(other)); len(jobs.Items) > 0 || len(pods) > 0 {
			s.t.Errorf("worker %s has %d Jobs and %d Pods, beside worker %s", other, len(jobs.Items), len(pods), worker)
		}
	}
}

// finish ends the Pods of some Jobs well, as their kubelet would.
func (s *scene) finish(jobs []*batchv1.Job) {
	s.t.Helper()
	for _, job := range jobs {
		s.EndPod(ferrytest.ClusterOf(job), s.podOf(job).Name)
	}
}

// fail ends the Pod of a Job badly, as its kubelet would.
func (s *scene) fail(job *batchv1.Job) {
	s.t.Helper()
	pods := s.Cluster(ferrytest.ClusterOf(job)).Client().CoreV1().Pods(s.NS)
	_, err := pods.Patch(s.Context(), s.podOf(job).Name, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
	s.ok(err)
}

// podOf is the running Pod of a Job.
func (s *scene) podOf(job *batchv1.Job) *corev1.Pod {
	s.t.Helper()
	return s.PodUntil(s.Cluster(ferrytest.ClusterOf(job)), job.Name, func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
	})
}

// completed waits for the good end of a JobSet and of its Jobs, and returns the Jobs.
func (s *scene) completed(name string, jobs []string) []*batchv1.Job {
	s.t.Helper()
	s.jobSetUntil(name, is(jobset.JobSetCompleted))
	return s.each(jobs, rigtest.Complete)
}

// delete deletes a JobSet, and doesn't wait.
func (s *scene) delete(name string) {
	s.t.Helper()
	s.ok(s.jobSets.Delete().Namespace(s.NS).Resource("jobsets").Name(name).Do(s.Context()).Error())
}

// serviceIn is the copy of a JobSet's Service in a worker.
func (s *scene) serviceIn(worker, name string) rig.Watched {
	return rig.Object(s.Cluster(worker).Client().CoreV1().RESTClient(), "services", s.NS, name)
}

// lacksJobSet checks that a worker knows nothing of JobSet, and nothing of Trainer.
func (s *scene) lacksJobSet(worker string) {
	s.t.Helper()
	client := s.Cluster(worker).Client()
	groups, err := client.Discovery().ServerGroups()
	s.ok(err)
	for _, group := range groups.Groups {
		if group.Name == jobset.GroupVersion.Group || group.Name == trainertest.Group {
			s.t.Errorf("worker %s serves %s", worker, group.Name)
		}
	}
	namespaces, err := client.CoreV1().Namespaces().List(s.Context(), metav1.ListOptions{})
	s.ok(err)
	for _, n := range namespaces.Items {
		if n.Name == jobsettest.Namespace || n.Name == trainertest.Namespace {
			s.t.Errorf("worker %s has namespace %s", worker, n.Name)
		}
	}
}

// forever lets the Pods of a replicated Job run until the test ends them.
var forever = map[string]string{rig.LabelRunFor: rig.RunForever}

// replicated makes a part of a JobSet: Jobs of one Pod, which is never retried.
func replicated(name string, replicas int32, podLabels map[string]string, after ...jobset.DependsOn) jobset.ReplicatedJob {
	return jobset.ReplicatedJob{
		Name: name, Replicas: replicas, DependsOn: after,
		Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To(int32(0)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "example.org/main"}},
				},
			},
		}},
	}
}

// jobSet makes a JobSet of parts.
func jobSet(name string, parts ...jobset.ReplicatedJob) *jobset.JobSet {
	return &jobset.JobSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: jobset.GroupVersion.String(), Kind: "JobSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       jobset.JobSetSpec{ReplicatedJobs: parts},
	}
}

func onceReady(part string) jobset.DependsOn {
	return jobset.DependsOn{Name: part, Status: jobset.DependencyReady}
}

func onceComplete(part string) jobset.DependsOn {
	return jobset.DependsOn{Name: part, Status: jobset.DependencyComplete}
}
