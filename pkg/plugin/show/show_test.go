package show

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
)

func someWorkers() []v1alpha1.WorkerCluster {
	return []v1alpha1.WorkerCluster{
		worker("cordoned", func(w *v1alpha1.WorkerCluster) { w.Spec.Cordoned = true }),
		worker("drained", func(w *v1alpha1.WorkerCluster) { w.Spec.Drain, w.Status.Jobs = true, 0 }),
		worker("draining", func(w *v1alpha1.WorkerCluster) { w.Spec.Drain = true }),
		worker("full", func(w *v1alpha1.WorkerCluster) {
			w.Status.Requested = list("39.5", "80Gi")
			w.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
			w.Status.Requested["nvidia.com/gpu"] = resource.MustParse("8")
		}),
		worker("gone", with(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "dial tcp: timeout"),
			with(v1alpha1.ConditionLost, metav1.ConditionTrue, v1alpha1.ReasonLostTimeout, "")),
		{ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: before(time.Second)}},
		worker("refused", with(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonForbidden, "may not list jobs"),
			func(w *v1alpha1.WorkerCluster) { w.Spec.Cordoned = true }),
		worker("removing", with(v1alpha1.ConditionSchedulable, metav1.ConditionFalse, v1alpha1.ReasonRemoving, "")),
		worker("too-many-mirrors", with(v1alpha1.ConditionSchedulable, metav1.ConditionFalse, v1alpha1.ReasonTooManyMirrors, "")),
		worker("unknown-capacity", with(v1alpha1.ConditionSchedulable, metav1.ConditionTrue, v1alpha1.ReasonCapacityUnknown, ""),
			func(w *v1alpha1.WorkerCluster) { w.Status.Allocatable, w.Status.Requested = nil, nil }),
		worker("west", func(w *v1alpha1.WorkerCluster) {
			w.Spec.Cost = v1alpha1.Cost{"nvidia.com/gpu": resource.MustParse("2.50"), "cpu": resource.MustParse("30m")}
		}),
	}
}

func someJobs() []batchv1.Job {
	return []batchv1.Job{
		job("across", divided),
		job("blocked", func(j *batchv1.Job) { j.Status.Ready, j.Status.Succeeded = ptr.To[int32](0), 0 }),
		job("broken", ended(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")),
		job("done", ended(batchv1.JobComplete, "", ""), func(j *batchv1.Job) {
			j.Status.Succeeded, j.Status.CompletionTime = 10, ptr.To(before(3*time.Minute))
		}),
		job("held", waiting, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }),
		job("moving", func(j *batchv1.Job) {
			hubstate.Set(j, hubstate.Changes{hubstate.MovedFrom: "east", hubstate.MovedWith: `{"succeeded":4}`})
			j.Status.Active, j.Status.Ready = 0, ptr.To[int32](0)
		}),
		job("queue", func(j *batchv1.Job) { j.Spec.Completions = nil }),
		job("runs"),
		job("waits", waiting, func(j *batchv1.Job) {
			j.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: "region=eu"}
		}),
	}
}

func someEvents() []corev1.Event {
	return []corev1.Event{
		event("waits", "Warning", "Pending", "0/2 clusters available: 1 cordoned,\n1 Insufficient cpu.", 20*time.Second),
		event("blocked", "Normal", "Placed", "Placed on worker west", 5*time.Minute),
		event("blocked", "Warning", "PodsWaiting", "no Pod runs in worker west: exceeded quota", time.Minute),
		event("runs", "Warning", "PodsWaiting", "that was before", 9*time.Minute),
	}
}

func TestWorkers(t *testing.T) {
	golden(t, "workers", render(t, Workers(someWorkers(), now, false)))
	golden(t, "workers-wide", render(t, Workers(someWorkers(), now, true)))
	golden(t, "top-workers", render(t, TopWorkers(someWorkers())))
}

func TestJobs(t *testing.T) {
	golden(t, "jobs", render(t, Jobs(someJobs(), jobview.AroundBy(jobview.Newest(someEvents()), nil), now, JobColumns{})))
	golden(t, "jobs-wide", render(t, Jobs(someJobs(), jobview.AroundBy(jobview.Newest(someEvents()), nil), now, JobColumns{Namespace: true, Wide: true})))
	golden(t, "top-jobs", render(t, TopJobs(someJobs(), jobview.AroundBy(nil, nil), now, true)))
}

// TestStates: the tables and the description show the state that all show.
func TestStates(t *testing.T) {
	workers := []v1alpha1.WorkerCluster{}
	for _, w := range jobviewtest.Workers() {
		workers = append(workers, *w)
	}
	around := jobview.AroundBy(nil, SeenWorkers(workers))
	for _, row := range jobviewtest.Jobs() {
		jobs := []batchv1.Job{*row.Job}
		listed := render(t, Jobs(jobs, around, now, JobColumns{}))
		if !strings.Contains(listed, " "+string(row.Want)+" ") {
			t.Errorf("%s: want %s:\n%s", row.Name, row.Want, listed)
		}
		if top := render(t, TopJobs(jobs, around, now, false)); !row.Want.IsFinal() && !strings.Contains(top, " "+string(row.Want)+" ") {
			t.Errorf("%s: want %s:\n%s", row.Name, row.Want, top)
		}
		var described strings.Builder
		if err := (Description{Job: row.Job, Workers: workers}).Write(&described, now, Palette{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(described.String(), "State:            "+string(row.Want)+"\n") {
			t.Errorf("%s: want %s:\n%s", row.Name, row.Want, described.String())
		}
	}
}

func TestPods(t *testing.T) {
	failed := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	}
	pulling := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
	}
	ready := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].Ready, p.Status.ContainerStatuses[0].RestartCount = true, 2
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	evicted := func(p *corev1.Pod) { p.Status.Reason = "Evicted" }
	ending := func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(before(0)) }
	pods := []corev1.Pod{
		pod("shards-10-x", "10", time.Minute, corev1.PodRunning),
		pod("shards-2-b", "2", 2*time.Minute, corev1.PodRunning, ready),
		pod("shards-2-a", "2", 3*time.Minute, corev1.PodFailed, failed),
		pod("shards-3-a", "3", time.Hour, corev1.PodFailed, evicted),
		pod("shards-0-a", "0", time.Hour, corev1.PodSucceeded),
		pod("plain", "", 5*time.Second, corev1.PodPending, pulling),
		pod("shards-4-a", "4", time.Hour, corev1.PodRunning, ending),
		pod("shards-5-a", "5", 0, corev1.PodPending),
	}
	golden(t, "pods", render(t, Pods(pods, now, false)))
	golden(t, "pods-wide", render(t, Pods(pods, now, true)))
}

func TestTimeline(t *testing.T) {
	series := event("runs", "Normal", "SuccessfulCreate", "Created pod: runs-x", 0)
	series.LastTimestamp, series.Series = metav1.Time{}, &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(now.Add(-4 * time.Minute))}
	placed, created := event("new", "Normal", "Placed", "Placed on worker west", 0), event("new", "Normal", "SuccessfulCreate", "Created pod: new-x", time.Second)
	placed.LastTimestamp, placed.EventTime = metav1.Time{}, metav1.NewMicroTime(now.Add(-time.Second/2))
	created.InvolvedObject.Name = "new" // in the worker, in whole seconds
	entries := append(Entries("west", []corev1.Event{series, created}), Entries(Hub, append(someEvents(), placed))...)
	golden(t, "timeline", render(t, Timeline(entries, now)))
}

func TestWhy(t *testing.T) {
	e := &v1alpha1.PlacementExplanation{
		Namespace: "team-a", Name: "train", PodsWanted: 3, OmittedWorkers: 2, Time: metav1.NewTime(now),
		Waiting: &v1alpha1.WaitingExplanation{Place: 2, Of: 7, Worker: "later", ExpectedStart: ptr.To(metav1.NewTime(now.Add(5 * time.Minute))), Latest: true},
		Message: "0/5 clusters available: 2 Insufficient cpu,\n1 cordoned.",
		Workers: []v1alpha1.WorkerExplanation{
			{Name: "fits", Placed: true, Answer: v1alpha1.PlacementFitsNow, CostPerHour: "0.48", Score: "0.750", PodsNow: ptr.To[int64](3), PodsNeeded: ptr.To[int64](3), Nodes: 12, Message: "all Pods fit now"},
			{Name: "unlimited", Answer: v1alpha1.PlacementNotChecked, Score: "0.500", Message: "fits: its capacity isn't checked"},
			{Name: "later", Answer: v1alpha1.PlacementFitsLater, Reason: "Insufficient", Field: "spec.template.spec.tolerations", PodsNow: ptr.To[int64](1), PodsNeeded: ptr.To[int64](3), Nodes: 2,
				Message: "1 of 3 Pods fit now, no further one: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).",
				NodeReasons: []v1alpha1.NodeReason{
					{Plugin: "NodeResourcesFit", Message: "Insufficient cpu", Field: "spec.template.spec.containers[].resources.requests", Nodes: 1},
					{Plugin: "TaintToleration", Message: "node(s) had untolerated taint(s)", Field: "spec.template.spec.tolerations", Nodes: 1},
				},
				Shortages: []v1alpha1.Shortage{{Resource: "cpu", Requested: resource.MustParse("4"), Most: resource.MustParse("2500m"), Short: resource.MustParse("1500m")}}},
			{Name: "small", Answer: v1alpha1.PlacementNever, Reason: "NeverFits", PodsNow: ptr.To[int64](0), PodsNeeded: ptr.To[int64](1), Message: "never fits: without nodes"},
			{Name: "evil", Answer: v1alpha1.PlacementExcluded, Reason: "PassedOver", Message: "\x1b[31mred\nROW  fits now"},
			{Name: "new", Answer: "Sometimes", Message: "of a newer manager"},
		},
	}
	for name, wide := range map[string]bool{"why": false, "why-wide": true} {
		var b strings.Builder
		if err := Why(&b, e, wide, nil); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
}

func TestDescription(t *testing.T) {
	workers := []v1alpha1.WorkerCluster{
		worker("cordoned", func(w *v1alpha1.WorkerCluster) { w.Spec.Cordoned = true },
			with(v1alpha1.ConditionSchedulable, metav1.ConditionFalse, v1alpha1.ReasonCordoned, "")),
		worker("gone", with(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "")),
		worker("north", func(w *v1alpha1.WorkerCluster) { w.Labels = map[string]string{"region": "us"} }),
		worker("rented", func(w *v1alpha1.WorkerCluster) { w.Labels["tier"] = "rented" }),
		worker("west"),
	}
	at, copied, pending := job("runs"), job("runs"), job("waits", waiting)
	copied.Status.Succeeded, copied.Status.Ready = 5, ptr.To[int32](3)
	pending.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: "region=eu", v1alpha1.AnnotationClusterPreference: "!tier; gpu after 5m"}
	broken := job("broken", ended(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
	wide, number, edited := job("wide", divided), job("number", divided), job("edited", divided)
	number.Spec.CompletionMode = nil
	hubstate.Set(&number, hubstate.Changes{hubstate.Shards: "east=10;west=20"})
	hubstate.Set(&number, hubstate.Changes{hubstate.ShardsState: `{"shards":{"east":{"parallelism":2,"succeeded":3}},"settled":{"succeeded":1}}`})
	hubstate.Set(&edited, hubstate.Changes{hubstate.Shards: "east=0-3;west=3-5"})
	for name, d := range map[string]Description{
		"describe-divided":        {Job: &wide, Workers: workers, Mirrors: map[string]*batchv1.Job{"east": &copied}, Problems: []string{`worker "west" is out of touch`}},
		"describe-divided-number": {Job: &number},
		"describe-divided-edited": {Job: &edited},
		"describe-running": {Job: &at, Workers: workers, Mirrors: map[string]*batchv1.Job{"west": &copied}, Events: append(
			Entries(Hub, []corev1.Event{event("runs", "Normal", "Placed", "Placed on worker west", 10*time.Minute)}),
			Entries("west", []corev1.Event{event("runs", "Normal", "SuccessfulCreate", "Created pod: runs-x", 9*time.Minute)})...)},
		"describe-pending":  {Job: &pending, Workers: workers, Events: Entries(Hub, someEvents()[:1])},
		"describe-no-right": {Job: &broken, Problems: []string{"jobs.subresources.jobferry.dev is forbidden"}},
	} {
		var b strings.Builder
		if err := d.Write(&b, now, nil); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
}

// Colours change nothing but the colours: columns stay where they are.
func TestColours(t *testing.T) {
	var plain, coloured strings.Builder
	table := Workers(someWorkers(), now, true)
	if err := table.Write(&plain, nil); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(&coloured, Colours()); err != nil {
		t.Fatal(err)
	}
	bare := coloured.String()
	for _, code := range Colours() {
		bare = strings.ReplaceAll(bare, code, "")
	}
	if bare = strings.ReplaceAll(bare, reset, ""); bare != plain.String() {
		t.Errorf("without its colours it is\n%s\nnot\n%s", bare, plain.String())
	}
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(coloured.String(), Colours()[toneBad]+"Lost (Unreachable)"+reset) {
		t.Errorf("coloured:\n%q", coloured.String())
	}
}

func TestRateAndETA(t *testing.T) {
	for name, test := range map[string]struct {
		succeeded int32
		since     time.Duration
		work      bool
		rate, eta string
	}{
		"nothing yet":      {0, time.Minute, false, "-", "-"},
		"by the second":    {5, 2 * time.Second, false, "2.5/s", "2s"},
		"by the minute":    {4, 10 * time.Minute, false, "24.0/h", "15m"},
		"two a minute":     {4, 2 * time.Minute, false, "2.0/min", "3m"},
		"a work queue":     {4, 2 * time.Minute, true, "2.0/min", "-"},
		"started just now": {4, 0, false, "-", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			j := job("x", func(j *batchv1.Job) {
				j.Status.Succeeded, j.Status.StartTime = test.succeeded, ptr.To(before(test.since))
				if test.work {
					j.Spec.Completions = nil
				}
			})
			if p := progressOf(&j, now); p.rate() != test.rate || p.eta() != test.eta {
				t.Errorf("%s, %s; want %s, %s", p.rate(), p.eta(), test.rate, test.eta)
			}
		})
	}
}

// What a worker says can't take a terminal over.
func TestNothingControlsTheTerminal(t *testing.T) {
	const evil = "a\x1b]0;title\x07\x1b[2J\u009b31m\u202eb\nc"
	var out strings.Builder
	table := Table{Header: []string{"NAME", evil}, Rows: [][]Cell{{{Text: evil}, {evil, toneBad}}}}
	if err := table.Write(&out, Palette{}); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationClusterSelector: evil}}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Message: evil}}
	if err := (Description{Job: job, Problems: []string{evil}}).Write(&out, now, Palette{}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.ContainsAny(got, "\x1b\x07\u009b\u202e") || strings.Count(got, "title") != 6 {
		t.Errorf("%q", got)
	}
}

func TestInLine(t *testing.T) {
	at, past := ptr.To(metav1.NewTime(now.Add(3*time.Minute))), ptr.To(metav1.NewTime(now.Add(-time.Hour)))
	for want, w := range map[string]v1alpha1.WaitingExplanation{
		"2 of 7": {Place: 2, Of: 7},
		"1 of 1, gets what becomes free on west, time not known yet": {Place: 1, Of: 1, Worker: "west"},
		"1 of 1, expected on west in 3m at the latest":               {Place: 1, Of: 1, Worker: "west", ExpectedStart: at, Latest: true},
		"1 of 1, expected on west in about 3m":                       {Place: 1, Of: 1, Worker: "west", ExpectedStart: at},
		"1 of 1, expected on west in about 0s":                       {Place: 1, Of: 1, Worker: "west", ExpectedStart: past},
	} {
		if got := InLine(&w, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.0004: "<0.001", 0.001: "0.001", 0.0456: "0.046", 0.5: "0.5", 1: "1.00", 1234.567: "1234.57"} {
		if got := Short(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}

// What others write into a Job's fields makes no lines of its own.
func TestNothingMakesALine(t *testing.T) {
	const evil = "a\nWhy: kubectl delete"
	job := job("a", ended(batchv1.JobFailed, evil, evil))
	job.Annotations = map[string]string{
		v1alpha1.AnnotationClusterSelector: evil, v1alpha1.AnnotationClusterPreference: evil,
		v1alpha1.AnnotationOnClusterLost: evil, v1alpha1.AnnotationMaxClusters: evil,
	}
	hubstate.Set(&job, hubstate.Changes{hubstate.MovedFrom: evil, hubstate.Shards: evil})
	var out strings.Builder
	if err := (Description{Job: &job, Workers: []v1alpha1.WorkerCluster{worker("west")}, Problems: []string{evil}}).Write(&out, now, nil); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "\nWhy") || strings.Count(got, "kubectl delete") < 6 {
		t.Error(got)
	}
}
