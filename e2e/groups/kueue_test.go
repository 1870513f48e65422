package groups_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
	"github.com/jobferry/jobferry/e2e/kueue/program"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Tests of JobSets in a queue of Kueue with Jobferry's check.
func TestInAQueue(t *testing.T) {
	q := openQueue(t)
	q.kueue.Manager()
	q.register()
	for name, test := range map[string]func(*queue){
		"PlacedBeforeAdmission": placedBeforeAdmission,
		"InStages":              admittedInStages,
		"FitsInNoWorker":        fitsInNoWorker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(openQueue(t))
		})
	}
}

// queue is a scene with the LocalQueue "team". Its ClusterQueue has Jobferry's check and another
// one, whose controller the test plays. Their names are those of the test's namespace.
type queue struct {
	*scene
	kueue *kueuetest.Fixture
}

func openQueue(t *testing.T) *queue {
	t.Helper()
	s := open(t)
	q := &queue{s, kueuetest.Of(t, s.Ferry, program.Options{Frameworks: []string{"jobset.x-k8s.io/jobset"}})}
	q.Apply(q.Hub, q.NS, strings.ReplaceAll(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NS}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: NS}
spec: {clusters: [w2, w3]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: NS}
spec:
  controllerName: jobferry.dev/dispatcher
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: NS}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: NS-manual}
spec: {controllerName: example.org/manual}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NS}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: NS}, {name: NS-manual}]}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: NS
      resources: [{name: cpu, nominalQuota: 1000}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: NS}
`, "NS", q.NS))
	q.kueue.SetActive(q.manual())
	return q
}

func (q *queue) manual() string { return q.NS + "-manual" }

// submit sends a JobSet to the queue, and returns its UID. Each Pod asks for CPUs.
func (q *queue) submit(js *jobset.JobSet, cpu string) types.UID {
	q.t.Helper()
	js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
	for i := range js.Spec.ReplicatedJobs {
		container := &js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers[0]
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: kueuetest.Quantity(cpu)}
	}
	q.create(js)
	return q.jobSetUntil(js.Name, func(*jobset.JobSet) bool { return true }).UID
}

// check says whether Jobferry's check of a Workload is in a state, with a text in its message.
func (q *queue) check(state kueue.CheckState, text string) func(*kueue.Workload) bool {
	return kueuetest.Check(q.NS, state, text)
}

// placed says whether a suspended Job has a worker.
func placed(job *batchv1.Job) bool { return ferrytest.Suspended(job) && ferrytest.ClusterOf(job) != "" }

// All Jobs have their worker, and nothing of them runs, before the JobSet is admitted.
func placedBeforeAdmission(q *queue) {
	uid := q.submit(jobSet("pair", replicated("driver", 1, forever), replicated("workers", 3, forever)), "1")
	worker := q.together(q.each(pairJobs, placed))
	w := q.kueue.WorkloadOfUntil(uid, q.check(kueue.CheckStateReady, "Placed on worker "+worker))
	if pods := q.Pods(q.Cluster(worker)); kueuetest.Admitted(w) || len(pods) > 0 {
		q.t.Errorf("before it's admitted, worker %s has %d Pods; the Workload: %+v", worker, len(pods), w.Status)
	}
	q.endsIn(worker, uid)
}

// Jobs that are only made once others run go to their worker, for which there was one verdict.
func admittedInStages(q *queue) {
	uid := q.submit(pair(), "1")
	worker := ferrytest.ClusterOf(q.HubJobUntil(pairJobs[0], placed))
	q.kueue.WorkloadOfUntil(uid, q.check(kueue.CheckStateReady, "Placed on worker "+worker))
	q.endsIn(worker, uid)
}

// endsIn has a JobSet admitted that is placed, and follows it to its end.
func (q *queue) endsIn(worker string, uid types.UID) {
	q.t.Helper()
	q.kueue.SetCheck(q.kueue.WorkloadOfUntil(uid, kueuetest.HasQuota), q.manual(), kueue.CheckStateReady)
	jobs := q.each(pairJobs, running)
	if at := q.together(jobs); at != worker || !slices.Contains([]string{"w2", "w3"}, at) {
		q.t.Errorf("the Jobs run in worker %s, and were placed in worker %s", at, worker)
	}
	q.kueue.WorkloadOfUntil(uid, kueuetest.Admitted)
	q.finish(jobs)
	if at := q.together(q.completed("pair", pairJobs)); at != worker {
		q.t.Errorf("the Jobs ended in worker %s, and ran in worker %s", at, worker)
	}
	w := q.kueue.WorkloadOfUntil(uid, kueuetest.Finished)
	if !q.check(kueue.CheckStateReady, "Placed on worker "+worker)(w) || kueuetest.Evicted(w) {
		q.t.Errorf("the Workload at its end: %+v", w.Status)
	}
}

// There is room for some Jobs of a JobSet in each worker, and for all in none: none is placed, and
// the quota is given back. It's admitted once there is room.
func fitsInNoWorker(q *queue) {
	others := open(q.t)
	for _, name := range workers { // each fills one: two of its Pods fit in no node
		others.Submit("fills-"+name, kueuetest.Requests("20"), rigtest.Indexed(2), rigtest.RunForever())
	}
	leaves := ""
	for _, name := range workers {
		if at := ferrytest.ClusterOf(others.HubJobUntil("fills-"+name, rigtest.Running(2))); at == "w3" {
			leaves = "fills-" + name
		}
	}
	uid := q.submit(jobSet("pair", replicated("driver", 1, forever), replicated("workers", 3, forever)), "12")
	w := q.kueue.WorkloadOfUntil(uid, q.check(kueue.CheckStateRetry, ""))
	if why := w.Status.AdmissionChecks[0].Message; !strings.Contains(why, "w2: ") || !strings.Contains(why, "w3: ") {
		q.t.Errorf("the check doesn't say why no worker takes the JobSet: %s", why)
	}
	q.kueue.WorkloadOfUntil(uid, kueuetest.SentBack)
	for _, job := range q.each(pairJobs, ferrytest.Suspended) {
		if at := ferrytest.ClusterOf(job); at != "" {
			q.t.Errorf("Job %s is placed in worker %s", job.Name, at)
		}
	}
	others.Delete(leaves, metav1.DeletePropagationBackground)
	q.each(pairJobs, ferrytest.All(placed, ferrytest.IsAt("w3")))
	q.endsIn("w3", uid)
}
