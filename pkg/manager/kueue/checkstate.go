package kueue

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// verdict is what the state of a check shall be.
type verdict struct {
	// State to be written; empty: it's left as it is.
	State   kueue.CheckState
	Message string
	// RequeueAfter is how long a Workload that is sent back stays out of the queue.
	RequeueAfter time.Duration
	// Again is when to decide anew without any event; zero: only on one.
	Again time.Duration
}

// checkRules are walked in order: the first that applies decides.
var checkRules = []struct {
	name string
	when func(*situation) bool
	then func(*situation) verdict
}{
	// Kueue decides over Workloads without quota, and acts on Retry and Rejected; it sets the check
	// back to Pending itself.
	{"Kueue's turn", func(s *situation) bool { return !holdsQuota(s.workload) || isFinal(s.check.State) }, leaveIt},
	// What isn't a Job can't become one.
	{"not a Job", isNotAJob, rejectOwner},
	// The Job's cache is behind.
	{"unseen", func(s *situation) bool { return s.job == nil }, leaveIt},
	// spec.managedBy can't be changed.
	{"not ours", func(s *situation) bool { return !mirror.Managed(s.job) }, rejectForeign},
	{"finished", func(s *situation) bool { return mirror.Finished(s.job) }, leaveIt},
	// The Job will not go on where it is: it gives its quota back, and comes anew.
	{"home lost", isHomeLost, retryLost},
	// What runs isn't stopped for an edit of the config, or a moment's silence.
	{"running", func(s *situation) bool { return s.isAdmitted() && s.placement() != "" }, ready},
	{"admitted", (*situation).isAdmitted, leaveIt},
	{"placed", isWellPlaced, ready},
	// The dispatcher hasn't looked at the Job since quota was reserved.
	{"not tried", func(s *situation) bool { return s.patience() > 0 && s.isUntried() }, awaitTry},
	// No worker takes the Job: it waits, but not for ever.
	{"hopeless", isHopeless, retryNoPlace},
	{"waited enough", func(s *situation) bool { return s.patience() <= 0 }, retryNoPlace},
	{"waiting", func(*situation) bool { return true }, pending},
}

// decideCheck says what the state of our check shall be.
func decideCheck(s *situation) verdict {
	for _, rule := range checkRules {
		if rule.when(s) {
			return rule.then(s)
		}
	}
	return verdict{}
}

func isFinal(state kueue.CheckState) bool {
	return state == kueue.CheckStateRetry || state == kueue.CheckStateRejected
}

func isNotAJob(s *situation) bool {
	_, ok := ownerOf(s.workload)
	return !ok
}

func isHomeLost(s *situation) bool {
	return s.homeIs(v1alpha1.ConditionLost, metav1.ConditionTrue) && s.job.Annotations[v1alpha1.AnnotationOnClusterLost] != "Wait"
}

// isWellPlaced: the Job has a place where it's allowed, room is held for it there, and it can be
// reached.
func isWellPlaced(s *situation) bool {
	result := s.currentResult()
	return result != nil && result.Worker != "" && result.Worker == s.placement() && s.admission.Allows(s.placement()) &&
		s.homeIs(v1alpha1.ConditionReady, metav1.ConditionTrue)
}

// isHopeless: no worker can ever take the Job as it is.
func isHopeless(s *situation) bool {
	result := s.currentResult()
	return result != nil && result.Worker == "" && !result.MayFitLater
}

// isUntried: nothing is known of the Job's chances yet, and in a moment it will be.
func (s *situation) isUntried() bool {
	away := s.home != nil && !s.homeIs(v1alpha1.ConditionReady, metav1.ConditionTrue)
	return s.gate.Problem == "" && s.currentResult() == nil && !away
}

// currentResult is what the dispatcher found out since quota was reserved.
func (s *situation) currentResult() *PlacementResult {
	if s.result == nil || !s.result.ReservedAt.Equal(reservedAt(s.workload)) {
		return nil
	}
	return s.result
}

// patience is how much longer the Job may hold its quota without a place.
func (s *situation) patience() time.Duration {
	return reservedAt(s.workload).Add(s.options.RetryAfter).Sub(s.now)
}

func leaveIt(*situation) verdict { return verdict{} }

func awaitTry(s *situation) verdict { return verdict{Again: s.patience()} }

func ready(s *situation) verdict {
	return verdict{State: kueue.CheckStateReady, Message: "Placed on worker " + s.placement()}
}

func pending(s *situation) verdict {
	return verdict{State: kueue.CheckStatePending, Message: s.why(), Again: s.patience()}
}

// why says why the Job has no place.
func (s *situation) why() string {
	result := s.currentResult()
	switch {
	case s.gate.Problem != "":
		return fmt.Sprintf("AdmissionCheck %s: %s", s.gate.Check, s.gate.Problem)
	case result != nil && result.Worker == "":
		return result.Reason
	case s.placement() != "" && s.admission.Allows(s.placement()):
		return s.homeTrouble()
	default:
		return "Looking for a worker"
	}
}

func rejectOwner(s *situation) verdict {
	kind := "nothing"
	if refs := s.workload.OwnerReferences; len(refs) > 0 {
		kind = refs[0].Kind + " of " + refs[0].APIVersion
	}
	return verdict{State: kueue.CheckStateRejected, Message: fmt.Sprintf(
		"Jobferry dispatches Jobs of batch/v1, and this Workload stands for %s: submit it to a queue without AdmissionCheck %s",
		kind, s.gate.Check)}
}

func rejectForeign(s *situation) verdict {
	return verdict{State: kueue.CheckStateRejected, Message: fmt.Sprintf(
		"Job %s isn't Jobferry's: its spec.managedBy is %q, which can't be changed. Label namespace %s with %s=enabled, and create the Job again",
		s.job.Name, ptr.Deref(s.job.Spec.ManagedBy, ""), s.job.Namespace, v1alpha1.LabelDispatch)}
}

func retryLost(s *situation) verdict {
	return verdict{State: kueue.CheckStateRetry, Message: fmt.Sprintf("Worker %s is lost", s.placement())}
}

func retryNoPlace(s *situation) verdict {
	return verdict{State: kueue.CheckStateRetry, Message: s.why(), RequeueAfter: s.backoff()}
}

// backoff doubles with each time that Kueue has counted.
func (s *situation) backoff() time.Duration {
	longest := s.options.MaxRequeueAfter
	doublings := min(ptr.Deref(s.check.RetryCount, 0), 30)
	wait := time.Duration(math.Min(float64(s.options.RequeueAfter)*math.Exp2(float64(doublings)), float64(longest)))
	return wait.Truncate(time.Second)
}
