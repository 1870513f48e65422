package state

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at is a time some seconds after the beginning.
func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

func oneJob(expect scenario.Expectation) State {
	return New(began, []scenario.Entry{{Name: "pi", Kind: "one Pod", Expect: expect}})
}

// hubJob makes what the watch tells of the Job.
func hubJob(change ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "pi", Annotations: map[string]string{}}}
	for _, c := range change {
		c(job)
	}
	return job
}

func on(worker string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Cluster: worker}) }
}

func started(seconds int) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Status.StartTime = &metav1.Time{Time: at(seconds)} }
}

func pods(active, succeeded, failed int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Status.Active, j.Status.Succeeded, j.Status.Failed = active, succeeded, failed }
}

func condition(kind batchv1.JobConditionType, reason string, seconds int) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Time{Time: at(seconds)},
		})
	}
}

func suspended(j *batchv1.Job) {
	yes := true
	j.Spec.Suspend = &yes
}

func TestPhase(t *testing.T) {
	for _, row := range []struct {
		name string
		job  *batchv1.Job
		want jobview.State
	}{
		{"created", hubJob(), jobview.Pending},
		{"placed", hubJob(on("east")), jobview.Starting},
		{"started", hubJob(on("east"), started(1)), jobview.Starting},
		{"active", hubJob(on("east"), started(1), pods(1, 0, 0)), jobview.Starting},
		{"all have failed", hubJob(on("east"), started(1), pods(0, 0, 2)), jobview.BackingOff},
		{"tried again", hubJob(on("east"), started(1), pods(1, 0, 2)), jobview.Running},
		{"suspended", hubJob(suspended, on("east"), started(1)), jobview.Suspended},
		{"success is certain", hubJob(on("east"), started(1), condition(batchv1.JobSuccessCriteriaMet, "", 2)), jobview.Completing},
		{"failure is certain", hubJob(on("east"), started(1), condition(batchv1.JobFailureTarget, "", 2)), jobview.Failing},
		{"complete", hubJob(condition(batchv1.JobSuccessCriteriaMet, "", 2), condition(batchv1.JobComplete, "", 2)), jobview.Complete},
		{"failed", hubJob(suspended, condition(batchv1.JobFailed, "", 2)), jobview.Failed},
	} {
		s := oneJob(scenario.Complete(1, 0))
		s.SawJob(row.job)
		if got := s.Jobs[0].Phase; !got.Is(row.want) {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// TestStates: the demo shows the state that all show.
func TestStates(t *testing.T) {
	for _, row := range jobviewtest.Jobs() {
		if row.Want == jobview.OutOfTouch {
			continue // the demo loses no worker
		}
		s := oneJob(scenario.Complete(1, 0))
		row.Job.Name = s.Jobs[0].Name
		s.SawJob(row.Job)
		if got := s.Jobs[0].Phase; !got.Is(row.Want) {
			t.Errorf("%s: %s, want %s", row.Name, got, row.Want)
		}
	}
}

func TestJobThatEnded(t *testing.T) {
	s := oneJob(scenario.Complete(1, 1))
	if s.Settled() || len(s.Problems()) != 1 {
		t.Errorf("before: settled %t, problems %q", s.Settled(), s.Problems())
	}
	s.SawJob(hubJob(on("east"), started(3), pods(0, 1, 1),
		condition(batchv1.JobSuccessCriteriaMet, "", 9), condition(batchv1.JobComplete, "CompletionsReached", 10)))
	j := s.Jobs[0]
	if j.Cluster != "east" || j.Succeeded != 1 || j.Failed != 1 || j.Reason != "CompletionsReached" {
		t.Errorf("%+v", j)
	}
	if j.Conditions != "SuccessCriteriaMet, Complete" {
		t.Errorf("conditions %q", j.Conditions)
	}
	if took := j.Took(at(100)); took != 7*time.Second {
		t.Errorf("took %s", took)
	}
	if !s.Settled() || len(s.Problems()) != 0 {
		t.Errorf("after: settled %t, problems %q", s.Settled(), s.Problems())
	}
}

func TestTookSoFar(t *testing.T) {
	s := oneJob(scenario.Complete(1, 0))
	if took := s.Jobs[0].Took(at(5)); took != 0 {
		t.Errorf("before its start: %s", took)
	}
	s.SawJob(hubJob(started(3)))
	if took := s.Jobs[0].Took(at(5)); took != 2*time.Second {
		t.Errorf("while it runs: %s", took)
	}
	if took := s.Jobs[0].Took(at(1)); took != 0 {
		t.Errorf("by a clock that is behind: %s", took)
	}
}

func TestProblems(t *testing.T) {
	complete := condition(batchv1.JobComplete, "", 9)
	for _, row := range []struct {
		name   string
		change func(*State)
		want   []string
	}{
		{"good", func(s *State) { s.SawJob(hubJob(on("east"), pods(0, 1, 0), complete)) }, nil},
		{"never created", func(*State) {}, []string{"Job pi: expected to end as Complete, but does not exist"}},
		{"deleted", func(s *State) { s.LostJob("pi") }, []string{"Job pi: expected to end as Complete, but was deleted"}},
		{"still runs", func(s *State) { s.SawJob(hubJob(on("east"), started(1))) },
			[]string{"Job pi: expected to end as Complete, but has not ended"}},
		{"ran nowhere", func(s *State) { s.SawJob(hubJob(pods(0, 1, 0), complete)) },
			[]string{"Job pi: expected a worker to run it, but it has none"}},
		{"ran on the hub", func(s *State) {
			s.SawJob(hubJob(on("east"), pods(0, 1, 0), complete))
			s.SawHubPod("a")
			s.SawHubPod("b")
			s.SawHubPod("a")
		}, []string{"hub: expected no Pods, saw 2"}},
	} {
		s := oneJob(scenario.Complete(1, 0))
		row.change(&s)
		if got := s.Problems(); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// The Jobs of a JobSet must be in one worker.
func TestPartedJobSet(t *testing.T) {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "pair"}}
	for cluster, want := range map[string][]string{
		"east": nil,
		"west": {"JobSet pair: expected its Jobs in one worker, but they are in east and west"},
	} {
		s := New(began, []scenario.Entry{
			{Name: "pi", JobSet: js, Expect: scenario.Complete(0, 0)}, {Name: "po", JobSet: js, Expect: scenario.Complete(0, 0)},
		})
		s.SawJob(hubJob(on("east"), condition(batchv1.JobComplete, "", 9)))
		s.SawJob(hubJob(on(cluster), condition(batchv1.JobComplete, "", 9), func(j *batchv1.Job) { j.Name = "po" }))
		if got := s.Problems(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", cluster, got)
		}
	}
}

func TestOtherJobsDontCount(t *testing.T) {
	s := oneJob(scenario.Complete(1, 0))
	s.SawJob(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	s.LostJob("another")
	if len(s.Jobs) != 1 || s.Jobs[0].Phase != Absent {
		t.Errorf("%+v", s.Jobs)
	}
}

func TestNewKnowsTheCompletions(t *testing.T) {
	entries, err := scenario.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := New(began, entries)
	for i, want := range []int32{1, 20, 10, 1, 1, 2, 1, 3, 60} {
		if s.Jobs[i].Completions != want {
			t.Errorf("%s: %d completions, want %d", s.Jobs[i].Name, s.Jobs[i].Completions, want)
		}
	}
}

func workerCluster(name string, ready metav1.ConditionStatus, cpu string) *v1alpha1.WorkerCluster {
	return &v1alpha1.WorkerCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: v1alpha1.WorkerClusterStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, Reason: "Because"}},
			Nodes:      2, KubernetesVersion: "v1.36.3",
			Free: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		},
	}
}

func TestWorkersAreSorted(t *testing.T) {
	var s State
	s.SawWorker(workerCluster("west", metav1.ConditionFalse, "1500m"))
	s.SawWorker(&v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}})
	s.SawWorker(workerCluster("north", metav1.ConditionTrue, "4"))
	if s.UsableWorkers() != 1 {
		t.Errorf("%d usable", s.UsableWorkers())
	}
	want := []Worker{
		{Name: "east", Reason: "Registered"},
		{Name: "north", Ready: true, Reason: "Because", Version: "v1.36.3", Nodes: 2, FreeCPU: 4000},
		{Name: "west", Reason: "Because", Version: "v1.36.3", Nodes: 2, FreeCPU: 1500},
	}
	if !slices.Equal(s.Workers, want) {
		t.Errorf("%+v", s.Workers)
	}
	s.LostWorker("north")
	s.SawWorker(workerCluster("west", metav1.ConditionTrue, "1"))
	if len(s.Workers) != 2 || !s.Workers[1].Ready {
		t.Errorf("%+v", s.Workers)
	}
}

func TestSteps(t *testing.T) {
	var s State
	if !s.Preparing() {
		t.Error("not preparing before the first step")
	}
	s.StepBegan("build", "", at(0))
	s.StepBegan("start", "hub", at(1))
	s.StepBegan("build", "again", at(2))
	s.StepNote("build", "half")
	s.StepNote("unknown", "x")
	s.StepEnded("unknown", "x", true, at(3))
	s.StepEnded("build", "", false, at(4))
	if got := s.Steps[0]; len(s.Steps) != 2 || got.Note != "half" || got.Took(at(9)) != 4*time.Second || !s.Preparing() {
		t.Errorf("%+v", s.Steps)
	}
	s.StepEnded("start", "", false, at(5))
	if s.Preparing() {
		t.Error("preparing after the last step")
	}
	s.StepBegan("more", "", at(6))
	s.StepEnded("more", "no", true, at(7))
	if !s.Preparing() {
		t.Error("a failed step is out of sight")
	}
}

func TestNewsIsBoundedAndToldOnce(t *testing.T) {
	var s State
	for i := range maxNews + 10 {
		n := News{Job: "pi", Reason: "Placed", Note: string(rune('A' + i)), At: at(i)}
		s.SawNews(n)
		n.At = at(i + 1)
		s.SawNews(n)
	}
	if len(s.News) != maxNews || s.News[maxNews-1].Note != string(rune('A'+maxNews+9)) {
		t.Errorf("%d, last %+v", len(s.News), s.News[len(s.News)-1])
	}
}

func TestCloneIsIndependent(t *testing.T) {
	s := oneJob(scenario.Complete(1, 0))
	s.StepBegan("build", "", at(0))
	s.SawWorker(workerCluster("east", metav1.ConditionFalse, "1"))
	c := s.Clone()
	s.StepEnded("build", "", false, at(1))
	s.SawJob(hubJob())
	s.SawWorker(workerCluster("east", metav1.ConditionTrue, "1"))
	s.SawNews(News{Job: "pi"})
	if c.Steps[0].Done() || c.Jobs[0].Phase != Absent || c.Workers[0].Ready || len(c.News) != 0 {
		t.Errorf("%+v", c)
	}
}
