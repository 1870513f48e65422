package kueue

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// edit changes the situation of a test: without any, a Job of ours holds quota for ten seconds and
// has no place.
type edit func(*situation)

func given(edits ...edit) *situation {
	s := &situation{
		now:       noon.Add(10 * time.Second),
		check:     kueue.AdmissionCheckState{Name: "check", State: kueue.CheckStatePending},
		gate:      gate{Check: "check", Workers: []string{"w1", "w2"}},
		admission: dispatch.Admission{Checked: true, QuotaReserved: true, Workers: []string{"w1", "w2"}},
		job: &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "pi", Annotations: map[string]string{}},
			Spec:       batchv1.JobSpec{Suspend: ptr.To(true), ManagedBy: ptr.To(v1alpha1.ManagedByDispatcher)},
		},
		workload: &kueue.Workload{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "Job", Name: "pi", UID: "1", Controller: ptr.To(true)},
		}}},
		options: DefaultOptions(),
	}
	set(s.workload, kueue.WorkloadQuotaReserved, metav1.ConditionTrue)
	for _, e := range edits {
		e(s)
	}
	return s
}

func set(w *kueue.Workload, condition string, status metav1.ConditionStatus) {
	w.Status.Conditions = append(w.Status.Conditions,
		metav1.Condition{Type: condition, Status: status, LastTransitionTime: metav1.NewTime(noon)})
}

func workloadIs(condition string) edit {
	return func(s *situation) { set(s.workload, condition, metav1.ConditionTrue) }
}

func later(d time.Duration) edit { return func(s *situation) { s.now = noon.Add(d) } }

func placedOn(worker string, conditions ...metav1.Condition) edit {
	return func(s *situation) {
		s.job.Annotations[v1alpha1.AnnotationCluster] = worker
		s.home = &v1alpha1.WorkerCluster{Status: v1alpha1.WorkerClusterStatus{Conditions: conditions}}
	}
}

func condition(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Reason", Message: "message"}
}

var (
	inTouch = condition(v1alpha1.ConditionReady, metav1.ConditionTrue)
	away    = condition(v1alpha1.ConditionReady, metav1.ConditionFalse)
	lost    = condition(v1alpha1.ConditionLost, metav1.ConditionTrue)
)

func roomHeldIn(worker string) edit {
	return func(s *situation) { s.result = &PlacementResult{ReservedAt: noon, Worker: worker} }
}

func noRoom(why string, mayFitLater bool) edit {
	return func(s *situation) {
		s.result = &PlacementResult{ReservedAt: noon, Reason: why, MayFitLater: mayFitLater}
	}
}

func TestDecideCheck(t *testing.T) {
	for _, tc := range []struct {
		name    string
		given   *situation
		want    kueue.CheckState // empty: left as it is
		message string
	}{
		{"not looked at yet", given(), "", ""},
		{"not looked at for long", given(later(3 * time.Minute)), kueue.CheckStateRetry, "Looking for a worker"},
		{"placed with room", given(placedOn("w1", inTouch), roomHeldIn("w1")), kueue.CheckStateReady, "Placed on worker w1"},
		{"placed before this reservation", given(placedOn("w1", inTouch)), "", ""},
		{"room was held for an earlier reservation", given(placedOn("w1", inTouch), func(s *situation) {
			s.result = &PlacementResult{ReservedAt: noon.Add(-time.Hour), Worker: "w1"}
		}), "", ""},
		{"placed where it isn't allowed", given(placedOn("w3", inTouch), roomHeldIn("w3")), kueue.CheckStatePending, ""},
		{"placed, and the worker is away", given(placedOn("w1", away), roomHeldIn("w1")), kueue.CheckStatePending, "Worker w1 isn't ready: Reason: message"},
		{"no room now", given(noRoom("w1: full", true)), kueue.CheckStatePending, "w1: full"},
		{"no room for long", given(noRoom("w1: full", true), later(3*time.Minute)), kueue.CheckStateRetry, "w1: full"},
		{"no room ever", given(noRoom("w1: too small", false)), kueue.CheckStateRetry, "w1: too small"},
		{"no room ever, long ago", given(func(s *situation) { s.result = &PlacementResult{ReservedAt: noon.Add(-time.Hour)} }),
			"", ""},
		{"bad config", given(func(s *situation) { s.gate.Problem = "no config" }), kueue.CheckStatePending, "AdmissionCheck check: no config"},
		{"running, config edited", given(placedOn("w3", inTouch), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateReady, "w3"},
		{"running, worker away", given(placedOn("w1", away), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateReady, "w1"},
		{"running, worker lost", given(placedOn("w1", away, lost), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateRetry, "Worker w1 is lost"},
		{"running, worker lost, to wait for it", given(placedOn("w1", away, lost), workloadIs(kueue.WorkloadAdmitted), func(s *situation) {
			s.job.Annotations[v1alpha1.AnnotationOnClusterLost] = v1alpha1.OnClusterLostWait
		}), kueue.CheckStateReady, "w1"},
		{"no quota", given(func(s *situation) { s.workload.Status.Conditions = nil }), "", ""},
		{"evicted", given(workloadIs(kueue.WorkloadEvicted)), "", ""},
		{"finished", given(workloadIs(kueue.WorkloadFinished)), "", ""},
		{"sent back, and Kueue hasn't acted yet", given(func(s *situation) { s.check.State = kueue.CheckStateRetry }), "", ""},
		{"Job not seen", given(func(s *situation) { s.job = nil }), "", ""},
		{"Job of the hub", given(func(s *situation) { s.job.Spec.ManagedBy = nil }), kueue.CheckStateRejected, "jobferry.dev/dispatch=enabled"},
		{"no Job", given(func(s *situation) { s.workload.OwnerReferences[0].Kind = "JobSet" }), kueue.CheckStateRejected, "JobSet"},
		{"no owner", given(func(s *situation) { s.workload.OwnerReferences = nil }), kueue.CheckStateRejected, "stands for nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decideCheck(tc.given)
			if got.State != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %q: %q, want %q: %q", got.State, got.Message, tc.want, tc.message)
			}
			undecided := got.State == kueue.CheckStatePending || strings.HasPrefix(tc.name, "not looked at yet")
			if undecided && got.Again <= 0 {
				t.Error("nobody looks again when the Job's time is over")
			}
		})
	}
}

// Each time that a Job is sent back, it stays out of the queue for twice as long, up to a bound.
func TestBackoff(t *testing.T) {
	for retries, want := range map[int32]time.Duration{0: 30 * time.Second, 1: time.Minute, 4: 8 * time.Minute, 5: 10 * time.Minute, 1000: 10 * time.Minute} {
		s := given(noRoom("full", false), func(s *situation) { s.check.RetryCount = &retries })
		if got := decideCheck(s).RequeueAfter; got != want {
			t.Errorf("after %d retries: %s, want %s", retries, got, want)
		}
	}
}

func TestAdmissionOf(t *testing.T) {
	job := &batchv1.Job{}
	gates := []gate{{Check: "a", Workers: []string{"w2", "w1", "w3"}}, {Check: "b", Workers: []string{"w1", "w2"}}}
	flavors := map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor{"spot": {Spec: kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{"capacity": "spot"}, Tolerations: []corev1.Toleration{{Key: "spot"}},
	}}}
	w := given().workload
	w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: ptr.To[int32](2), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "spot", "memory": "spot"},
	}}}
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckStateReady, PodSetUpdates: []kueue.PodSetUpdate{
		{Name: "main", NodeSelector: map[string]string{"reservation": "7"}},
	}}}

	admission := admissionOf(job, w, gates, flavors)
	if got := strings.Join(admission.Workers, " "); got != "w2 w1" {
		t.Errorf("workers that both checks allow: %q, want w2 w1", got)
	}
	if !admission.Checked || !admission.QuotaReserved || !admission.ReservedAt.Equal(noon) {
		t.Errorf("with quota: %+v", admission)
	}
	if admission.NodeSelector["capacity"] != "spot" || admission.NodeSelector["reservation"] != "7" || len(admission.Tolerations) != 1 {
		t.Errorf("what will be added to the Pods: %v %v", admission.NodeSelector, admission.Tolerations)
	}
	if admission.Parallelism != nil {
		t.Error("parallelism changes, though the Job doesn't allow it")
	}
	job.Annotations = map[string]string{annotationMinParallelism: "1"}
	if admission := admissionOf(job, w, gates, flavors); ptr.Deref(admission.Parallelism, 0) != 2 {
		t.Errorf("parallelism of a Job that was admitted in part: %v", admission.Parallelism)
	}
	w.Status.AdmissionChecks[0].State = kueue.CheckStateRetry
	if admissionOf(job, w, gates, flavors).QuotaReserved {
		t.Error("a Job that another check sends back is to be placed")
	}
	if admission := admissionOf(job, w, nil, flavors); admission.Checked || admission.Workers != nil {
		t.Errorf("without a check of ours: %+v", admission)
	}
	if admission := admissionOf(job, w, []gate{{Problem: "no config", Workers: []string{}}}, nil); admission.Workers == nil {
		t.Error("a check without a config allows all workers")
	}
}
