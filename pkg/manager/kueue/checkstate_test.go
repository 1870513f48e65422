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

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// edit changes the snapshot of a test: without any, a Job of Jobferry holds quota for ten seconds
// and has no place.
type edit func(*checkSnapshot)

func given(edits ...edit) *checkSnapshot {
	s := &checkSnapshot{
		now:       noon.Add(10 * time.Second),
		state:     kueue.AdmissionCheckState{Name: "check", State: kueue.CheckStatePending},
		check:     check{name: "check", workers: []string{"w1", "w2"}},
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
	return func(s *checkSnapshot) { set(s.workload, condition, metav1.ConditionTrue) }
}

func at(d time.Duration) edit { return func(s *checkSnapshot) { s.now = noon.Add(d) } }

func placedOn(worker string, conditions ...metav1.Condition) edit {
	return func(s *checkSnapshot) {
		hubstate.Set(s.job, hubstate.Changes{hubstate.Cluster: worker})
		s.assigned = map[string]*v1alpha1.WorkerCluster{worker: {Status: v1alpha1.WorkerClusterStatus{Conditions: conditions}}}
	}
}

// dividedOver places the Job as shards on w1 with some conditions, and on another worker, which is
// reachable or has others.
func dividedOver(first metav1.Condition, other string, conditions ...metav1.Condition) edit {
	return func(s *checkSnapshot) {
		hubstate.Set(s.job, hubstate.Changes{hubstate.Shards: other + "=5-9;w1=0-4"})
		s.assigned = map[string]*v1alpha1.WorkerCluster{
			"w1":  {Status: v1alpha1.WorkerClusterStatus{Conditions: []metav1.Condition{first}}},
			other: {Status: v1alpha1.WorkerClusterStatus{Conditions: conditions}},
		}
	}
}

func condition(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Reason", Message: "message"}
}

var (
	reachable   = condition(v1alpha1.ConditionReady, metav1.ConditionTrue)
	unreachable = condition(v1alpha1.ConditionReady, metav1.ConditionFalse)
	lost        = condition(v1alpha1.ConditionLost, metav1.ConditionTrue)
)

func reservedIn(worker string) edit {
	return func(s *checkSnapshot) { s.result = &PlacementResult{ReservedAt: noon, Worker: worker} }
}

func unplaced(why string, mayFitLater bool) edit {
	return func(s *checkSnapshot) {
		s.result = &PlacementResult{ReservedAt: noon, Reason: why, MayFitLater: mayFitLater}
	}
}

func TestDecideCheck(t *testing.T) {
	for _, tc := range []struct {
		name    string
		given   *checkSnapshot
		want    kueue.CheckState // empty: left as it is
		message string
	}{
		{"not tried yet", given(), "", ""},
		{"not tried for long", given(at(3 * time.Minute)), kueue.CheckStateRetry, "Looking for a worker"},
		{"placed with capacity", given(placedOn("w1", reachable), reservedIn("w1")), kueue.CheckStateReady, "Placed on worker w1"},
		{"placed before this reservation", given(placedOn("w1", reachable)), "", ""},
		{"capacity was reserved for earlier quota", given(placedOn("w1", reachable), func(s *checkSnapshot) {
			s.result = &PlacementResult{ReservedAt: noon.Add(-time.Hour), Worker: "w1"}
		}), "", ""},
		{"placed where it isn't allowed", given(placedOn("w3", reachable), reservedIn("w3")), kueue.CheckStatePending, ""},
		{"placed, and the worker is unreachable", given(placedOn("w1", unreachable), reservedIn("w1")), kueue.CheckStatePending, "Worker w1 isn't ready: Reason: message"},
		{"unplaced", given(unplaced("w1: full", true)), kueue.CheckStatePending, "w1: full"},
		{"unplaced for long", given(unplaced("w1: full", true), at(3*time.Minute)), kueue.CheckStateRetry, "w1: full"},
		{"unplaceable", given(unplaced("w1: too small", false)), kueue.CheckStateRetry, "w1: too small"},
		{"unplaceable, long ago", given(func(s *checkSnapshot) { s.result = &PlacementResult{ReservedAt: noon.Add(-time.Hour)} }),
			"", ""},
		{"bad config", given(func(s *checkSnapshot) { s.check.problem = "no config" }), kueue.CheckStatePending, "AdmissionCheck check: no config"},
		{"running, config edited", given(placedOn("w3", reachable), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateReady, "w3"},
		{"running, worker unreachable", given(placedOn("w1", unreachable), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateReady, "w1"},
		{"running, worker lost", given(placedOn("w1", unreachable, lost), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateRetry, "Worker w1 is lost"},
		{"running, worker lost, to wait for it", given(placedOn("w1", unreachable, lost), workloadIs(kueue.WorkloadAdmitted), func(s *checkSnapshot) {
			s.job.Annotations[v1alpha1.AnnotationOnClusterLost] = v1alpha1.OnClusterLostWait
		}), kueue.CheckStateReady, "w1"},
		{"placed on two", given(dividedOver(reachable, "w2", reachable), reservedIn("w2")), kueue.CheckStateReady, "Placed on workers w1, w2"},
		{"placed on two, and one is unreachable", given(dividedOver(reachable, "w2", unreachable), reservedIn("w1")), kueue.CheckStateReady, "w1, w2"},
		{"placed on two, both unreachable", given(dividedOver(unreachable, "w2", unreachable), reservedIn("w1")), kueue.CheckStatePending, "Worker w1 isn't ready: Reason: message"},
		{"placed on two, and one isn't allowed", given(dividedOver(reachable, "w3", reachable), reservedIn("w1")), kueue.CheckStatePending, ""},
		{"running on two, and one is lost", given(dividedOver(reachable, "w2", lost), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateReady, "w1, w2"},
		{"running on two, both lost", given(dividedOver(lost, "w2", lost), workloadIs(kueue.WorkloadAdmitted)), kueue.CheckStateRetry, "All of workers w1, w2 are lost"},
		{"no quota", given(func(s *checkSnapshot) { s.workload.Status.Conditions = nil }), "", ""},
		{"evicted", given(workloadIs(kueue.WorkloadEvicted)), "", ""},
		{"finished", given(workloadIs(kueue.WorkloadFinished)), "", ""},
		{"sent back, and Kueue hasn't acted yet", given(func(s *checkSnapshot) { s.state.State = kueue.CheckStateRetry }), "", ""},
		{"Job not seen", given(func(s *checkSnapshot) { s.job = nil }), "", ""},
		{"Job of the hub", given(func(s *checkSnapshot) { s.job.Spec.ManagedBy = nil }), kueue.CheckStateRejected, "jobferry.dev/dispatch=enabled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decideCheck(tc.given)
			if got.state != tc.want || !strings.Contains(got.message, tc.message) {
				t.Errorf("got %q: %q, want %q: %q", got.state, got.message, tc.want, tc.message)
			}
			undecided := got.state == kueue.CheckStatePending || strings.HasPrefix(tc.name, "not tried yet")
			if undecided && got.requeueAfter <= 0 {
				t.Error("no requeue when the time of the Job is over")
			}
		})
	}
}

// There is one verdict for all Jobs of a JobSet.
func TestDecideForJobSets(t *testing.T) {
	placed := func() *checkSnapshot { return given(placedOn("w1", reachable), reservedIn("w1")) }
	finished := given(func(s *checkSnapshot) {
		s.job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	})
	admitted := given(workloadIs(kueue.WorkloadAdmitted))
	for name, tc := range map[string]struct {
		jobs    []*checkSnapshot
		of      *checkSnapshot
		foreign bool
		want    kueue.CheckState
		message string
	}{
		"all are placed":                  {jobs: []*checkSnapshot{placed(), placed()}, want: kueue.CheckStateReady, message: "Placed on worker w1"},
		"one isn't tried yet":             {jobs: []*checkSnapshot{placed(), given()}},
		"one waits":                       {jobs: []*checkSnapshot{given(), given(unplaced("w1: full", true)), placed()}, want: kueue.CheckStatePending, message: "w1: full"},
		"one can't be placed":             {jobs: []*checkSnapshot{placed(), given(unplaced("w1: too small", false)), given()}, want: kueue.CheckStateRetry, message: "too small"},
		"one asked for all, too long":     {jobs: []*checkSnapshot{given(at(3 * time.Minute)), given(unplaced("w1: full", true), at(3*time.Minute))}, want: kueue.CheckStateRetry, message: "w1: full"},
		"the hub runs one":                {jobs: []*checkSnapshot{placed(), given(func(s *checkSnapshot) { s.job.Spec.ManagedBy = nil })}, want: kueue.CheckStateRejected},
		"the worker of one is lost":       {jobs: []*checkSnapshot{placed(), given(placedOn("w1", unreachable, lost), workloadIs(kueue.WorkloadAdmitted))}, want: kueue.CheckStateRetry},
		"one has finished":                {jobs: []*checkSnapshot{finished, placed()}, want: kueue.CheckStateReady},
		"all have finished":               {jobs: []*checkSnapshot{finished, finished}},
		"none is made yet":                {of: given(), want: kueue.CheckStatePending, message: "Waiting for the JobSet's Jobs"},
		"none was made for long":          {of: given(at(3 * time.Minute)), want: kueue.CheckStateRetry, message: "made no Jobs"},
		"none is there between two tries": {of: admitted},
		"of something else":               {of: given(), foreign: true, want: kueue.CheckStateRejected, message: "stands for Job"},
		"of nothing": {of: given(func(s *checkSnapshot) { s.workload.OwnerReferences = nil }), foreign: true,
			want: kueue.CheckStateRejected, message: "stands for nothing"},
	} {
		w := &workloadSnapshot{checkSnapshot: tc.of, jobs: tc.jobs, isForeign: tc.foreign}
		if got := w.decide(); got.state != tc.want || !strings.Contains(got.message, tc.message) {
			t.Errorf("%s: %q: %q, want %q: %q", name, got.state, got.message, tc.want, tc.message)
		}
	}
}

// What was assigned to a part of a JobSet counts for its Jobs.
func TestAdmissionOfAPart(t *testing.T) {
	w := given().workload
	w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{
		{Name: "driver", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "plain"}},
		{Name: "workers", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "spot"}},
	}}
	flavor := func(name string) *kueue.ResourceFlavor {
		return &kueue.ResourceFlavor{Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"capacity": name}}}
	}
	for part, want := range map[string]string{"driver": "plain", "workers": "spot", "": "plain", "other": "plain"} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mirror.LabelReplicatedJob: part}}}
		if got := admissionOf(job, w, []check{{name: "a"}}, flavor).NodeSelector["capacity"]; got != want {
			t.Errorf("part %q: %q, want %q", part, got, want)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	for of, want := range map[[2]string]bool{
		{"batch/v1", "Job"}: true, {"jobset.x-k8s.io/v1alpha2", "JobSet"}: true, {"ray.io/v1", "RayJob"}: false, {"example.com/v1", "JobSet"}: false,
	} {
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: of[0], Kind: of[1], Name: "pi", UID: "1", Controller: ptr.To(true)},
		}}}
		if got, is := ownerOf(w); is != want || is && got.group.JobSet != (of[1] == "JobSet") {
			t.Errorf("%v: %+v, %v", of, got, is)
		}
	}
}

// Each time that a Job is sent back, it stays out of the queue for twice as long, up to a bound.
func TestBackoff(t *testing.T) {
	for retries, want := range map[int32]time.Duration{0: 30 * time.Second, 1: time.Minute, 4: 8 * time.Minute, 5: 10 * time.Minute, 1000: 10 * time.Minute} {
		s := given(unplaced("full", false), func(s *checkSnapshot) { s.state.RetryCount = &retries })
		if got := decideCheck(s).outOfQueue; got != want {
			t.Errorf("after %d retries: %s, want %s", retries, got, want)
		}
	}
}

func TestAdmissionOf(t *testing.T) {
	job := &batchv1.Job{}
	checks := []check{{name: "a", workers: []string{"w2", "w1", "w3"}}, {name: "b", workers: []string{"w1", "w2"}}}
	flavors := map[string]*kueue.ResourceFlavor{"spot": {Spec: kueue.ResourceFlavorSpec{
		NodeLabels: map[string]string{"capacity": "spot"}, Tolerations: []corev1.Toleration{{Key: "spot"}},
	}}}
	flavor := func(name string) *kueue.ResourceFlavor { return flavors[name] }
	w := given().workload
	w.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: ptr.To[int32](2), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "spot", "memory": "spot"},
	}}}
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckStateReady, PodSetUpdates: []kueue.PodSetUpdate{
		{Name: "main", NodeSelector: map[string]string{"reservation": "7"}},
	}}}

	admission := admissionOf(job, w, checks, flavor)
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
	job.Annotations = map[string]string{mirror.AnnotationKueueMinParallelism: "1"}
	if admission := admissionOf(job, w, checks, flavor); ptr.Deref(admission.Parallelism, 0) != 2 {
		t.Errorf("parallelism of a Job that was admitted in part: %v", admission.Parallelism)
	}
	w.Status.AdmissionChecks[0].State = kueue.CheckStateRetry
	if admissionOf(job, w, checks, flavor).QuotaReserved {
		t.Error("a Job that another check sends back is to be placed")
	}
	if admission := admissionOf(job, w, nil, flavor); admission.Checked || admission.Workers != nil {
		t.Errorf("without a check of ours: %+v", admission)
	}
	if admission := admissionOf(job, w, []check{{problem: "no config", workers: []string{}}}, flavor); admission.Workers == nil {
		t.Error("a check without a config allows all workers")
	}
}
