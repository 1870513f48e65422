package kueue

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// checkSnapshot is all that the state of a check of one Workload is decided by.
type checkSnapshot struct {
	now      time.Time
	workload *kueue.Workload
	// state is the present one, in the Workload.
	state     kueue.AdmissionCheckState
	check     check
	admission dispatch.Admission
	// job is the hub Job of the Workload; nil: it hasn't been seen.
	job *batchv1.Job
	// assigned are the WorkerClusters that the Job's placement names, as far as they exist.
	assigned map[string]*v1alpha1.WorkerCluster
	// result is that of the last attempt to place the Job; nil: none is known.
	result  *PlacementResult
	options Options
}

// checkPlan is the desired state of a check.
type checkPlan struct {
	// state is to be written; empty: it's left as it is.
	state   kueue.CheckState
	message string
	// outOfQueue is how long Kueue keeps a Workload out of the queue that is sent back.
	outOfQueue time.Duration
	// requeueAfter is when to decide again without any event; zero: only on one.
	requeueAfter time.Duration
}

// checkRules are walked in order: the first that applies decides.
var checkRules = []struct {
	name string
	when func(*checkSnapshot) bool
	then func(*checkSnapshot) checkPlan
}{
	// Kueue decides about Workloads without quota. It acts on Retry and Rejected, and sets the
	// check to Pending again itself.
	{"Kueue's turn", func(s *checkSnapshot) bool { return !holdsQuota(s.workload) || isFinal(s.state.State) }, keep},
	// The cache of Jobs is behind.
	{"unseen", func(s *checkSnapshot) bool { return s.job == nil }, keep},
	// spec.managedBy is immutable.
	{"not Jobferry's", func(s *checkSnapshot) bool { return !mirror.Managed(s.job) }, rejectForeign},
	{"finished", func(s *checkSnapshot) bool { return mirror.Finished(s.job) }, keep},
	// The Job doesn't continue there: it gives its quota back, and queues again.
	{"worker lost", isWorkerLost, retryLost},
	// An edit of the config, or a short outage, doesn't stop a running Job.
	{"running", func(s *checkSnapshot) bool { return s.isAdmitted() && len(s.workers()) > 0 }, ready},
	{"admitted", (*checkSnapshot).isAdmitted, keep},
	{"placed", isPlaced, ready},
	// The Job hasn't been reconciled since quota was reserved.
	{"not tried", func(s *checkSnapshot) bool { return s.timeLeft() > 0 && s.isUntried() }, awaitResult},
	// No worker takes the Job: it waits until its time is over.
	{"unplaceable", isUnplaceable, retryUnplaced},
	{"timed out", func(s *checkSnapshot) bool { return s.timeLeft() <= 0 }, retryUnplaced},
	{"waiting", func(*checkSnapshot) bool { return true }, pending},
}

// workloadSnapshot is all that the state of a check of one Workload is decided by.
type workloadSnapshot struct {
	*checkSnapshot
	// jobs are the snapshots of its Jobs: one, or those of a JobSet. isForeign: it stands for others.
	jobs      []*checkSnapshot
	isForeign bool
}

// decide returns the desired state of a check. There is one verdict for all Jobs of a JobSet: one
// that needs its quota back gives back that of all, and all must be placed.
func (w *workloadSnapshot) decide() checkPlan {
	if w.isForeign || len(w.jobs) == 0 {
		return w.decideAlone()
	}
	var all checkPlan
	rank, known := -1, false // known: it's that of a Job that asked; others wait for its answer
	for _, s := range w.jobs {
		if len(w.jobs) > 1 && s.job != nil && mirror.Finished(s.job) {
			continue // the others decide
		}
		p := decideCheck(s)
		after := wake.Soonest(all.requeueAfter, p.requeueAfter)
		r := slices.Index(fromBestToWorst, p.state)
		if saysWhy := s.currentResult() != nil; r > rank || r == rank && saysWhy && !known {
			all, rank, known = p, r, saysWhy
		}
		all.requeueAfter = after
	}
	return all
}

// fromBestToWorst are the states that a Job may want for the check of its Workload; empty: none
// yet.
var fromBestToWorst = []kueue.CheckState{kueue.CheckStateReady, "", kueue.CheckStatePending, kueue.CheckStateRetry, kueue.CheckStateRejected}

// decideAlone decides about a Workload that has no Jobs.
func (w *workloadSnapshot) decideAlone() checkPlan {
	switch s := w.checkSnapshot; {
	case !holdsQuota(s.workload) || isFinal(s.state.State):
		return keep(s)
	case w.isForeign:
		return rejectOwner(s)
	case s.isAdmitted():
		return keep(s)
	case s.timeLeft() > 0:
		return checkPlan{state: kueue.CheckStatePending, message: "Waiting for the JobSet's Jobs", requeueAfter: s.timeLeft()}
	default:
		return checkPlan{state: kueue.CheckStateRetry, message: "The JobSet has made no Jobs", outOfQueue: s.backoff()}
	}
}

// decideCheck returns what one Job wants of a check.
func decideCheck(s *checkSnapshot) checkPlan {
	for _, rule := range checkRules {
		if rule.when(s) {
			return rule.then(s)
		}
	}
	return checkPlan{}
}

func isFinal(state kueue.CheckState) bool {
	return state == kueue.CheckStateRetry || state == kueue.CheckStateRejected
}

func isWorkerLost(s *checkSnapshot) bool {
	return s.howMany(v1alpha1.ConditionLost) > 0 && s.howMany(v1alpha1.ConditionLost) == len(s.workers()) &&
		s.job.Annotations[v1alpha1.AnnotationOnClusterLost] != v1alpha1.OnClusterLostWait
}

// isPlaced: capacity is reserved for the Job in its assigned clusters, which are allowed. It can
// start where one is reachable.
func isPlaced(s *checkSnapshot) bool {
	result := s.currentResult()
	return result != nil && slices.Contains(s.workers(), result.Worker) && s.isAllowed() && s.howMany(v1alpha1.ConditionReady) > 0
}

// isAllowed reports whether the AdmissionChecks allow all assigned clusters.
func (s *checkSnapshot) isAllowed() bool {
	return !slices.ContainsFunc(s.workers(), func(worker string) bool { return !s.admission.Allows(worker) })
}

// isUnplaceable: no worker can ever take the Job as it is.
func isUnplaceable(s *checkSnapshot) bool {
	result := s.currentResult()
	return result != nil && result.Worker == "" && !result.MayFitLater
}

func (s *checkSnapshot) workers() []string { return shards.WorkersOf(s.job) }

// named names the assigned clusters: "worker east", "workers east, west".
func (s *checkSnapshot) named() string {
	if workers := s.workers(); len(workers) != 1 {
		return "workers " + strings.Join(workers, ", ")
	}
	return "worker " + s.workers()[0]
}

func (s *checkSnapshot) isAdmitted() bool { return is(s.workload, kueue.WorkloadAdmitted) }

// isUntried reports whether the Job's placement result is still to come.
func (s *checkSnapshot) isUntried() bool {
	unreachable := len(s.assigned) > 0 && s.howMany(v1alpha1.ConditionReady) == 0
	return s.check.problem == "" && s.currentResult() == nil && !unreachable
}

// currentResult is the placement result since quota was reserved; nil: none.
func (s *checkSnapshot) currentResult() *PlacementResult {
	if s.result == nil || !s.result.ReservedAt.Equal(reservedAt(s.workload)) {
		return nil
	}
	return s.result
}

// timeLeft is how much longer the Job may keep its quota without a placement.
func (s *checkSnapshot) timeLeft() time.Duration {
	return reservedAt(s.workload).Add(s.options.RetryAfter).Sub(s.now)
}

// howMany counts the assigned clusters whose condition is True.
func (s *checkSnapshot) howMany(condition string) (n int) {
	for _, worker := range s.assigned {
		if meta.IsStatusConditionTrue(worker.Status.Conditions, condition) {
			n++
		}
	}
	return n
}

func keep(*checkSnapshot) checkPlan { return checkPlan{} }

func awaitResult(s *checkSnapshot) checkPlan { return checkPlan{requeueAfter: s.timeLeft()} }

func ready(s *checkSnapshot) checkPlan {
	return checkPlan{state: kueue.CheckStateReady, message: "Placed on " + s.named()}
}

func pending(s *checkSnapshot) checkPlan {
	return checkPlan{state: kueue.CheckStatePending, message: s.whyUnplaced(), requeueAfter: s.timeLeft()}
}

// whyUnplaced says why the Job has no place.
func (s *checkSnapshot) whyUnplaced() string {
	result := s.currentResult()
	switch {
	case s.check.problem != "":
		return fmt.Sprintf("AdmissionCheck %s: %s", s.check.name, s.check.problem)
	case result != nil && result.Worker == "":
		return result.Reason
	case len(s.workers()) > 0 && s.isAllowed():
		return s.workerProblem(s.workers()[0])
	default:
		return "Looking for a worker"
	}
}

// workerProblem says why an assigned cluster can't be used now.
func (s *checkSnapshot) workerProblem(worker string) string {
	assigned := s.assigned[worker]
	if assigned == nil {
		return fmt.Sprintf("Worker %s isn't registered", worker)
	}
	ready := meta.FindStatusCondition(assigned.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return fmt.Sprintf("Worker %s isn't connected yet", worker)
	}
	return fmt.Sprintf("Worker %s isn't ready: %s: %s", worker, ready.Reason, ready.Message)
}

func rejectOwner(s *checkSnapshot) checkPlan {
	kind := "nothing"
	if refs := s.workload.OwnerReferences; len(refs) > 0 {
		kind = refs[0].Kind + " of " + refs[0].APIVersion
	}
	return checkPlan{state: kueue.CheckStateRejected, message: fmt.Sprintf(
		"Jobferry dispatches Jobs of batch/v1 and JobSets, and this Workload stands for %s: submit it to a queue without AdmissionCheck %s",
		kind, s.check.name)}
}

func rejectForeign(s *checkSnapshot) checkPlan {
	return checkPlan{state: kueue.CheckStateRejected, message: fmt.Sprintf(
		"Job %s isn't Jobferry's: its spec.managedBy is %q, which can't be changed. Label namespace %s with %s=enabled, and create the Job again",
		s.job.Name, ptr.Deref(s.job.Spec.ManagedBy, ""), s.job.Namespace, v1alpha1.LabelDispatch)}
}

func retryLost(s *checkSnapshot) checkPlan {
	message := fmt.Sprintf("Worker %s is lost", s.workers()[0])
	if len(s.workers()) > 1 {
		message = fmt.Sprintf("All of %s are lost", s.named())
	}
	return checkPlan{state: kueue.CheckStateRetry, message: message}
}

func retryUnplaced(s *checkSnapshot) checkPlan {
	return checkPlan{state: kueue.CheckStateRetry, message: s.whyUnplaced(), outOfQueue: s.backoff()}
}

// backoff doubles with each retry that Kueue has counted.
func (s *checkSnapshot) backoff() time.Duration {
	doublings := min(ptr.Deref(s.state.RetryCount, 0), 30)
	wait := math.Min(float64(s.options.RequeueAfter)*math.Exp2(float64(doublings)), float64(s.options.MaxRequeueAfter))
	return time.Duration(wait).Truncate(time.Second)
}
