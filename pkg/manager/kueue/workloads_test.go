package kueue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// Of several checks of Jobferry, each keeps its state when another gets one. Those of others aren't
// applied. The patch is for the very state of the Workload that was read.
func TestAppliedStates(t *testing.T) {
	state := func(name string, is kueue.CheckState) kueue.AdmissionCheckState {
		return kueue.AdmissionCheckState{Name: kueue.AdmissionCheckReference(name), State: is, LastTransitionTime: metav1.NewTime(noon),
			RequeueAfterSeconds: ptr.To[int32](7), RetryCount: ptr.To[int32](2)}
	}
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w", UID: "uid", ResourceVersion: "5"}}
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{
		state("a", kueue.CheckStateReady), state("theirs", kueue.CheckStatePending), state("b", kueue.CheckStatePending),
	}
	next := kueue.AdmissionCheckState{Name: "b", State: kueue.CheckStateReady}
	states := appliedStates(w, next, func(name string) bool { return name != "theirs" })
	content, err := statusPatch(kueue.SchemeGroupVersion.String(), "Workload", w, map[string]any{"admissionChecks": states})
	if err != nil {
		t.Fatal(err)
	}
	var patch kueue.Workload
	if err := json.Unmarshal(content, &patch); err != nil {
		t.Fatal(err)
	}
	if patch.UID != "uid" || patch.ResourceVersion != "5" {
		t.Errorf("of any state: %+v", patch.ObjectMeta)
	}
	if w.Status.AdmissionChecks[0].RetryCount == nil {
		t.Error("the Workload that was read is changed")
	}
	got := patch.Status.AdmissionChecks
	if len(got) != 2 || got[0].Name != "a" || got[0].State != kueue.CheckStateReady || !got[0].LastTransitionTime.Time.Equal(noon) ||
		*got[0].RequeueAfterSeconds != 7 || got[0].RetryCount != nil || got[1].State != kueue.CheckStateReady {
		t.Errorf("%+v", got)
	}
}

// A condition is written when it differs; its time of transition stays as long as its status does.
func TestWithCondition(t *testing.T) {
	active := func(status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: "Active", Status: status, Reason: "Reason", Message: message}
	}
	present := active(metav1.ConditionTrue, "fine")
	present.ObservedGeneration, present.LastTransitionTime = 3, metav1.NewTime(noon)
	conditions := []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue}, present}
	for name, tc := range map[string]struct {
		desired    metav1.Condition
		generation int64
		changed    bool
		moved      bool // the time of transition
	}{
		"as it is":             {active(metav1.ConditionTrue, "fine"), 3, false, false},
		"of a newer spec":      {active(metav1.ConditionTrue, "fine"), 4, true, false},
		"another message":      {active(metav1.ConditionTrue, "better"), 3, true, false},
		"another status":       {active(metav1.ConditionFalse, "fine"), 3, true, true},
		"a message of 2000 x":  {active(metav1.ConditionTrue, strings.Repeat("x", 2000)), 3, true, false},
		"another writer's one": {metav1.Condition{Type: "Active", Status: metav1.ConditionFalse, Reason: "Other"}, 3, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			next, changed := withCondition(conditions, tc.desired, tc.generation)
			if changed != tc.changed || next.LastTransitionTime.Time.Equal(noon) == tc.moved {
				t.Errorf("changed %v, want %v; transition at %v", changed, tc.changed, next.LastTransitionTime)
			}
			if next.Type != "Active" || next.Status != tc.desired.Status || next.ObservedGeneration != tc.generation || len(next.Message) > text.MaxMessage {
				t.Errorf("got %+v", next)
			}
			if conditions[1] != present {
				t.Error("the object that was read is changed")
			}
		})
	}
	if next, changed := withCondition(nil, active(metav1.ConditionTrue, "fine"), 1); !changed || next.LastTransitionTime.IsZero() {
		t.Errorf("a first condition: %v %+v", changed, next)
	}
}

// judged is a JobController of one Job, which no worker takes.
type judged struct {
	JobController
	result PlacementResult
}

func (j *judged) PlacementResult(types.NamespacedName, types.UID) (PlacementResult, bool) {
	return j.result, true
}

// A worker whose answers change all the time has the reason why a Job waits written twice a minute,
// and the last one of them. Another state is written at once.
func TestMessagesAreWrittenAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := newScheme(t)
		s := given()
		w, reserved := s.workload, time.Now().Truncate(time.Second)
		s.job.UID = "1"
		w.Namespace, w.Name, w.UID = "team", "w", "w"
		w.Status.Conditions[0].LastTransitionTime = metav1.NewTime(reserved)
		w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "check", State: kueue.CheckStatePending}}
		writes := 0
		hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(aCheck(), s.job, w)...).WithStatusSubresource(w).
			WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
				ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
			) error {
				writes++
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			}}).Build()
		jobs := &judged{result: PlacementResult{ReservedAt: reserved, MayFitLater: true}}
		r := &workloadReconciler{session: &session{options: DefaultOptions(), jobs: jobs, hub: hub, objects: uncached{Reader: hub}}, written: expiring.NewExpiring(), looked: expiring.NewExpiring()}
		judge := func(reason string, mayFitLater bool) (after time.Duration, now kueue.AdmissionCheckState) {
			t.Helper()
			jobs.result.Reason, jobs.result.MayFitLater = reason, mayFitLater
			key := client.ObjectKeyFromObject(w)
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			var is kueue.Workload
			if err != nil || hub.Get(t.Context(), key, &is) != nil {
				t.Fatal(err)
			}
			return result.RequeueAfter, is.Status.AdmissionChecks[0]
		}
		const judgements = 50
		var after time.Duration
		for i := range judgements {
			after, _ = judge(fmt.Sprint("w1: ", i), true)
		}
		if writes != 1 || after <= 0 || after > messagePace {
			t.Errorf("%d judgements are written %d times, and looked at again after %s", judgements, writes, after)
		}
		<-time.After(after)
		if _, now := judge("w1: last", true); now.Message != "w1: last" || writes != 2 {
			t.Errorf("after that, there are %d writes, and it says %q", writes, now.Message)
		}
		if _, now := judge("w1: too small", false); now.State != kueue.CheckStateRetry || now.Message != "w1: too small" {
			t.Errorf("another state isn't written at once: %+v", now)
		}
	})
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, v1alpha1.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// aCheck is an AdmissionCheck of Jobferry's, and its config.
func aCheck() []client.Object {
	return []client.Object{
		&kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "check"}, Spec: kueue.AdmissionCheckSpec{
			ControllerName: v1alpha1.ManagedByDispatcher,
			Parameters:     &kueue.AdmissionCheckParametersReference{APIGroup: kueue.SchemeGroupVersion.Group, Kind: configKind, Name: "config"},
		}},
		&kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Spec: kueue.MultiKueueConfigSpec{Clusters: []string{"w1"}}},
	}
}

// grouped is a JobController of the Jobs of one JobSet.
type grouped struct {
	judged

	jobs []types.NamespacedName
}

func (g *grouped) GroupJobs(group.ID) ([]types.NamespacedName, bool) { return g.jobs, true }

// Of the many Jobs of a JobSet little is held at once, and its Workload isn't looked at with each
// change of one of them.
func TestManyJobsOfAJobSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes meanwhile
		s := given()
		w := s.workload
		w.Status.Conditions[0].LastTransitionTime = metav1.Now() // no Job has been tried yet
		w.Namespace, w.Name, w.UID = "team", "w", "w"
		w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "set", UID: "set", Controller: ptr.To(true)}}
		w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "check", State: kueue.CheckStatePending}}
		other := w.DeepCopy() // of another JobSet of the namespace
		other.Name, other.UID, other.OwnerReferences[0].Name, other.OwnerReferences[0].UID = "other", "other", "set-2", "set-2"
		const manyJobs = 200
		jobs, objects := &grouped{}, append(aCheck(), w, other)
		for i := range manyJobs {
			job := s.job.DeepCopy()
			job.Namespace, job.Name, job.UID = "team", fmt.Sprint("job-", i), types.UID(fmt.Sprint(i))
			job.Spec.Template.Spec.Tolerations = make([]corev1.Toleration, 1000)
			objects, jobs.jobs = append(objects, job), append(jobs.jobs, client.ObjectKeyFromObject(job))
		}
		hub := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).WithStatusSubresource(w).Build()
		r := &workloadReconciler{
			session: &session{options: DefaultOptions(), jobs: jobs, hub: hub, objects: uncached{Reader: hub}},
			written: expiring.NewExpiring(), looked: expiring.NewExpiring(),
		}
		c, ours := r.check(t.Context(), "check")
		of, err := r.gather(t.Context(), w, w.Status.AdmissionChecks[0], c)
		if err != nil || !ours || len(of.jobs) != manyJobs {
			t.Fatalf("%d Jobs, error %v", len(of.jobs), err)
		}
		for _, job := range of.jobs {
			if size := job.job.Size(); size > 1<<10 {
				t.Fatalf("%d bytes are held of a Job", size)
			}
		}
		looks := 0
		look := func(w *kueue.Workload) time.Duration {
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
			if err != nil {
				t.Fatal(err)
			}
			looks++
			return result.RequeueAfter
		}
		for look(w) != pause {
			if looks > 10*jobsAhead/manyJobs {
				t.Fatal("it's looked at again and again")
			}
		}
		if look(other) != pause {
			t.Error("that of another JobSet is looked at at once")
		}
	})
}

// A tenant has very many Workloads that all stand for one JobSet: only so many of its Jobs are
// looked at at a time, and none for those without quota, or of which Kueue has to act.
func TestManyWorkloadsOfAJobSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes meanwhile
		s := given()
		jobs, objects := &grouped{}, aCheck()
		for i := range 50 {
			job := s.job.DeepCopy()
			job.Namespace, job.Name, job.UID = "team", fmt.Sprint("job-", i), types.UID(fmt.Sprint(i))
			objects, jobs.jobs = append(objects, job), append(jobs.jobs, client.ObjectKeyFromObject(job))
		}
		var keys []types.NamespacedName
		for i := range 300 {
			w := s.workload.DeepCopy()
			w.Namespace, w.Name, w.UID = "team", fmt.Sprint("w-", i), types.UID(fmt.Sprint("w-", i))
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "set", UID: "set", Controller: ptr.To(true)}}
			w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "check", State: kueue.CheckStatePending}}
			switch {
			case i < 100:
				w.Status.Conditions = nil
			case i < 200:
				w.Status.AdmissionChecks[0].State = kueue.CheckStateRejected
			}
			objects, keys = append(objects, w), append(keys, client.ObjectKeyFromObject(w))
		}
		reads := 0
		hub := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).WithStatusSubresource(&kueue.Workload{}).
			WithInterceptorFuncs(interceptor.Funcs{Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption,
			) error {
				if _, is := into.(*batchv1.Job); is {
					reads++
				}
				return c.Get(ctx, key, into, options...)
			}}).Build()
		r := &workloadReconciler{
			session: &session{options: DefaultOptions(), jobs: jobs, hub: hub, objects: uncached{Reader: hub}},
			written: expiring.NewExpiring(), looked: expiring.NewExpiring(),
		}
		look := func(keys []types.NamespacedName) {
			t.Helper()
			for _, key := range keys {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
		}
		look(keys[:200])
		if reads != 0 {
			t.Errorf("%d Jobs are read of Workloads of which Kueue has to act", reads)
		}
		look(keys[200:])
		if most := jobsAhead + len(jobs.jobs); reads == 0 || reads > most {
			t.Errorf("%d Jobs are read, want at most %d", reads, most)
		}
	})
}

// Of a Workload is held what Kueue has decided, whatever a tenant has written into it.
func TestLargeWorkloadsTakeLittleMemory(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "w", UID: "w", ResourceVersion: "7", Labels: map[string]string{"a": large}, Annotations: map[string]string{"a": large},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "other"}, {APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "job", Controller: ptr.To(true)}},
	}}
	w.Spec.PodSets = make([]kueue.PodSet, 8)
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue}}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", TopologyAssignment: &kueue.TopologyAssignment{Levels: []string{large}},
	}}}
	w.Status.Conditions[0].Message = large
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "check", Message: large, PodSetUpdates: []kueue.PodSetUpdate{{
		Name: "main", Labels: map[string]string{"a": large}, Annotations: map[string]string{"a": large}, NodeSelector: map[string]string{"a": "b"},
	}}}}
	slim, err := slimWorkload(w)
	if err != nil {
		t.Fatal(err)
	}
	is := slim.(*kueue.Workload)
	if text, err := json.Marshal(is); err != nil || len(text) > 2<<10 {
		t.Errorf("%d bytes are held, %v", len(text), err)
	}
	if of, owned := ownerOf(is); !owned || of.UID != "job" || !holdsQuota(is) || is.ResourceVersion != "7" || len(is.Status.Admission.PodSetAssignments) != 1 || len(is.Status.AdmissionChecks) != 1 {
		t.Errorf("held: %+v", is)
	}
	w.OwnerReferences[1].Name = large
	if slim, err = slimWorkload(w); err != nil || len(slim.(*kueue.Workload).OwnerReferences) != 0 {
		t.Errorf("a long name of an owner is held, %v", err)
	}
}
