package loss_test

import (
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// kind is a Job that is moved in the middle of its work.
type kind struct {
	options []rigtest.Option
	// until is when its worker is lost.
	until func(*batchv1.Job) bool
	// ends is how it ends.
	ends func(*batchv1.Job) bool
	// check looks at the Job at its end, and at how many of its Pods the second worker has had.
	check func(t *testing.T, moved, ended *batchv1.Job, pods int)
}

// each is how long a Pod runs: all Jobs are in the middle when their worker is lost, on slow
// machines, too.
const each = 3 * time.Second

var kinds = map[string]kind{
	"plain": {
		options: []rigtest.Option{rigtest.Parallel(8), oneByOne, rigtest.RunFor(each)},
		until:   succeeded(1), ends: rigtest.Complete,
		check: func(t *testing.T, moved, ended *batchv1.Job, pods int) {
			if want := 8 - int(moved.Status.Succeeded); ended.Status.Succeeded != 8 || pods != want {
				t.Errorf("succeeded %d; %d Pods in the second worker, want %d", ended.Status.Succeeded, pods, want)
			}
		},
	},
	"indexed": {
		options: []rigtest.Option{rigtest.Indexed(8), oneByOne, rigtest.RunFor(each)},
		until:   succeeded(1), ends: rigtest.Complete,
		check: func(t *testing.T, moved, ended *batchv1.Job, pods int) {
			if want := 8 - int(moved.Status.Succeeded); ended.Status.CompletedIndexes != "0-7" || pods != want {
				t.Errorf("completed %s; %d Pods in the second worker, want %d", ended.Status.CompletedIndexes, pods, want)
			}
		},
	},
	"retried": {
		options: []rigtest.Option{rigtest.Parallel(3), oneByOne, rigtest.RunFor(each), rigtest.ExitCode(1), rigtest.BackoffLimit(1)},
		until:   func(j *batchv1.Job) bool { return j.Status.Failed == 1 }, ends: rigtest.Failed,
		check: func(t *testing.T, _, ended *batchv1.Job, pods int) {
			if ended.Status.Failed != 2 || pods != 1 {
				t.Errorf("failed %d, want 2; %d Pods in the second worker, want 1", ended.Status.Failed, pods)
			}
		},
	},
	"per-index": {
		options: []rigtest.Option{rigtest.Indexed(4), oneByOne, rigtest.RunFor(each), rigtest.PodLabel(rig.LabelFailIndexes, "0_3"),
			spec(func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex = ptr.To[int32](0) })},
		until: succeeded(1), ends: rigtest.Failed,
		check: func(t *testing.T, moved, ended *batchv1.Job, pods int) {
			if ptr.Deref(moved.Status.FailedIndexes, "") != "0" {
				t.Errorf("moved with %+v", moved.Status)
			}
			if ptr.Deref(ended.Status.FailedIndexes, "") != "0,3" || ended.Status.CompletedIndexes != "1,2" || pods > 2 {
				t.Errorf("ended with %+v; %d Pods in the second worker", ended.Status, pods)
			}
		},
	},
	"work-queue": {
		options: []rigtest.Option{rigtest.RunFor(25 * time.Second), spec(func(s *batchv1.JobSpec) { s.Parallelism, s.Completions = ptr.To[int32](2), nil })},
		until:   rigtest.Running(2), ends: rigtest.Complete,
		check: func(t *testing.T, _, ended *batchv1.Job, pods int) {
			if ended.Status.Succeeded != 2 || pods != 2 {
				t.Errorf("succeeded %d; %d Pods in the second worker", ended.Status.Succeeded, pods)
			}
		},
	},
	"deadline": {
		options: []rigtest.Option{rigtest.RunForever(), spec(func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](30) })},
		until:   rigtest.Running(1), ends: rigtest.Failed,
		check: func(t *testing.T, _, ended *batchv1.Job, pods int) {
			if pods != 1 || ended.Status.Conditions[len(ended.Status.Conditions)-1].Reason != batchv1.JobReasonDeadlineExceeded {
				t.Errorf("%d Pods in the second worker, ended with %+v", pods, ended.Status)
			}
		},
	},
	"restart": {
		options: []rigtest.Option{rigtest.Indexed(5), oneByOne, rigtest.RunFor(each), onClusterLost(v1alpha1.OnClusterLostRestart)},
		until:   succeeded(1), ends: rigtest.Complete,
		check: func(t *testing.T, _, ended *batchv1.Job, pods int) {
			if ended.Status.CompletedIndexes != "0-4" || pods != 5 {
				t.Errorf("completed %s; %d Pods in the second worker, want 5", ended.Status.CompletedIndexes, pods)
			}
		},
	},
}

// A worker of each kind is cut off in the middle of Jobs of each kind; they continue in another
// worker of each kind, with what they had achieved.
func TestJobsOfALostWorkerGoOn(t *testing.T) {
	for _, way := range []struct{ from, to string }{{"embedded", "w1"}, {"w2", "embedded"}} {
		t.Run(way.from+" to "+way.to, func(t *testing.T) {
			s := open(t, way.from, way.to)
			jumps := s.WatchCounters()
			for name, k := range kinds {
				s.submitTo(way.from, name, k.options...)
			}
			for name, k := range kinds {
				s.HubJobUntil(name, k.until)
				s.free(name, way.from, way.to)
			}
			s.cutOff(way.from)
			s.WorkerUntil(way.from, lost)
			moved := map[string]*batchv1.Job{}
			for name := range kinds {
				moved[name] = s.HubJobUntil(name, ferrytest.IsAt(way.to))
				s.EventUntil(name, "Moved", "worker "+way.from+" is lost")
			}
			for name, k := range kinds {
				ended := s.HubJobUntil(name, k.ends)
				k.check(t, moved[name], ended, s.podsOf(way.to, name))
				s.checkDeadline(way.to, name, moved[name])
			}
			s.heal(way.from)
			for name := range kinds {
				s.MirrorGone(way.from, name)
			}
			jumps.ExpectNone(t)
		})
	}
}

func (s *scene) podsOf(worker, job string) int {
	s.t.Helper()
	// Pods of Jobs that have failed are deleted by some: the events show all.
	pods, err := s.Cluster(worker).Client().CoreV1().Events(s.NS).List(s.Context(), metav1.ListOptions{
		FieldSelector: "reason=SuccessfulCreate,involvedObject.kind=Job,involvedObject.name=" + job,
	})
	s.ok(err)
	n := 0
	for _, e := range pods.Items {
		n += int(max(e.Count, 1))
	}
	return n
}

// checkDeadline holds the second mirror's deadline to what was left of it.
func (s *scene) checkDeadline(worker, name string, moved *batchv1.Job) {
	s.t.Helper()
	if moved.Spec.ActiveDeadlineSeconds == nil {
		return
	}
	spent, err := strconv.ParseInt(hubstate.Get(moved, hubstate.DeadlineSpent), 10, 64)
	s.ok(err)
	left := *s.MirrorUntil(worker, name, ferrytest.Exists).Spec.ActiveDeadlineSeconds
	whole := *moved.Spec.ActiveDeadlineSeconds
	if spent < 1 || left >= whole || left > whole-spent {
		s.t.Errorf("%d s of %d s were spent, %d s are left", spent, whole, left)
	}
}
