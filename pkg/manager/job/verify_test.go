package job

import (
	"errors"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/util/revision"
)

// What the cache says of a Job may be old: before a mirror is created, the hub itself is read.
func TestVerifyWantedReadsTheHub(t *testing.T) {
	cached := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "train", UID: "first", Finalizers: []string{v1alpha1.FinalizerMirror},
	}}
	hubstate.Set(cached, hubstate.Changes{hubstate.Cluster: "a"})
	for name, row := range map[string]struct {
		now  func(*batchv1.Job) // nil: it's gone
		want bool
	}{
		"as it was":        {now: func(*batchv1.Job) {}, want: true},
		"it has progress":  {now: func(j *batchv1.Job) { j.Status.Succeeded = 1 }, want: true},
		"gone":             {},
		"another one":      {now: func(j *batchv1.Job) { j.UID = "second" }},
		"being deleted":    {now: func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.Unix(5, 0)) }},
		"placed elsewhere": {now: func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "b"}) }},
		"placed nowhere":   {now: func(j *batchv1.Job) { j.Status.Conditions = nil }},
		"it has ended": {now: func(j *batchv1.Job) {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fakeHub()
			if row.now != nil {
				job := cached.DeepCopy()
				row.now(job)
				hub = hub.WithObjects(job)
			}
			if got := verify(t, hub.Build(), cached, time.Hour); got != row.want {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}

// The answer to a write that is a moment old needs no second one. When the process stood still, or
// the clock was set back, the hub is read.
func TestVerifyWantedTrustsAFreshAnswer(t *testing.T) {
	hub := fakeHub().Build() // the Job is gone
	cached := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "train", UID: "first",
	}}
	hubstate.Set(cached, hubstate.Changes{hubstate.Cluster: "a"})
	for age, want := range map[time.Duration]bool{
		0: true, time.Second: true, answerExpires - 1: true, answerExpires: false, time.Hour: false, -time.Second: false,
	} {
		if got := verify(t, hub, cached, age); got != want {
			t.Errorf("answered %s ago: %v, want %v", age, got, want)
		}
	}
}

// fakeHub finds Jobs by name, as an API server does.
func fakeHub() *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).
		WithIndex(&batchv1.Job{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
}

// verify reports whether a mirror in worker a is wanted, if the hub answered a write some time ago.
func verify(t *testing.T, hub client.Reader, cached *batchv1.Job, age time.Duration) bool {
	t.Helper()
	r := &Reconciler{clock: testingclock.NewFakeClock(noon), guard: revision.NewGuard(hub, clock.RealClock{})}
	rec := newStore(line.NewRuntimes()).open(keyOf(cached))
	rec.update(func(m *memory) { m.answered = noon.Add(-age) })
	err := r.verifyWanted(t.Context(), &turn{
		Snapshot: &dispatch.Snapshot{Key: keyOf(cached), Job: cached}, record: rec,
		allowance: newWholeJobs(nil, hub, r.clock, nil).open(keyOf(cached)),
	}, "a")
	if err != nil && !errors.Is(err, errStale) {
		t.Fatal(err)
	}
	return err == nil
}
