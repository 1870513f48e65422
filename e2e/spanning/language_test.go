package spanning_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// story is that of one Job, whose name is "job".
type story struct {
	*ferrytest.Ferry
	t       *testing.T
	seat    string
	workers []string
	// pods are all that ever were in the workers.
	pods *pods
	// counters of the hub Job, as its users see them.
	counters *ferrytest.Counters
}

// stories counts them.
var stories atomic.Int32

// tell begins a story in these workers.
func tell(t *testing.T, workers ...string) *story {
	t.Helper()
	s := &story{Ferry: ferrytest.For(t), t: t, seat: seat(int(stories.Add(1))), workers: workers}
	for _, worker := range workers {
		s.LeaveWorker(worker)
	}
	s.counters = s.WatchCounters()
	s.pods = s.watchPods(workers...)
	return s
}

// submit creates the Job, and waits until it is divided over as many workers.
func (s *story) submit(workers int, options ...rigtest.Option) shards.Placement {
	s.t.Helper()
	s.Submit("job", append([]rigtest.Option{s.spanning}, options...)...)
	return s.dividedOver(workers)
}

// spanning lets a Job run in all workers of the story, with room for some of its Pods in each.
func (s *story) spanning(j *batchv1.Job) {
	ferrytest.WithSelector("name in (" + strings.Join(s.workers, ",") + ")")(j)
	j.Annotations[v1alpha1.AnnotationMaxClusters] = v1alpha1.MaxClustersAll
	one := corev1.ResourceList{corev1.ResourceName(s.seat): resource.MustParse("1")}
	j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
}

func (s *story) dividedOver(workers int) shards.Placement {
	s.t.Helper()
	job := s.HubJobUntil("job", func(j *batchv1.Job) bool { return len(shards.WorkersOf(j)) == workers })
	placement, err := shards.Read(job)
	s.ok(err)
	return placement
}

func (s *story) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// atOnce is how many Pods of a Job may run at once.
func atOnce(pods int32) rigtest.Option {
	return func(j *batchv1.Job) { j.Spec.Parallelism = &pods }
}

func spec(change func(*batchv1.JobSpec)) rigtest.Option {
	return func(j *batchv1.Job) { change(&j.Spec) }
}

// runs waits until as many Pods of the Job run as these, in all workers.
func (s *story) runs(pods int32) { s.t.Helper(); s.HubJobUntil("job", rigtest.Running(pods)) }

// exit has the Pods of these indexes end with an exit code, wherever they run.
func (s *story) exit(code int32, indexes ...int) {
	s.t.Helper()
	for _, index := range indexes {
		running := s.pods.list(func(p podIn) bool { return p.index() == index && p.isRunning() })
		if len(running) != 1 {
			s.t.Fatalf("index %d has %d Pods that run: %v", index, len(running), describe(running))
		}
		s.exitPod(code, running[0])
	}
}

// exitPod has a Pod end, unless it is gone by now.
func (s *story) exitPod(code int32, p podIn) {
	s.t.Helper()
	kubelet := workertest.Kubelet{Client: s.Cluster(p.worker).Client(), Namespace: s.NS}
	if err := kubelet.Exit(s.Context(), *p.Pod, code); err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
}

// stopped waits until no Pod of the Job runs in any of its workers.
func (s *story) stopped() {
	s.t.Helper()
	s.eventually("all Pods have ended", func() bool {
		return len(s.pods.list(func(p podIn) bool { return !p.ended() && !p.gone })) == 0
	})
}

// eventually waits for what nothing tells of.
func (s *story) eventually(what string, condition func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextCancel(s.Context(), 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// ends waits for the Job's end, and checks how it ended.
func (s *story) ends(with batchv1.JobConditionType, reason string) *batchv1.Job {
	s.t.Helper()
	ended := s.HubJobUntil("job", func(j *batchv1.Job) bool { return rigtest.Complete(j) || rigtest.Failed(j) })
	for _, c := range ended.Status.Conditions {
		if c.Type == with && c.Reason != reason {
			s.t.Errorf("ended with reason %s: %s; want %s", c.Reason, c.Message, reason)
		}
	}
	if !rigtest.HasCondition(with)(ended) || ended.Status.Active != 0 {
		s.t.Errorf("ended with %+v, want %s", ended.Status, with)
	}
	s.counters.ExpectNone(s.t)
	return ended
}

// completes waits for the end of a Job of n indexes that all complete, each once.
func (s *story) completes(n int) *batchv1.Job {
	s.t.Helper()
	ended := s.ends(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)
	if int(ended.Status.Succeeded) != n || ended.Status.Failed != 0 {
		s.t.Errorf("%d succeeded and %d failed, want %d and 0", ended.Status.Succeeded, ended.Status.Failed, n)
	}
	return ended
}
