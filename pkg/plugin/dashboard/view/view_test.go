package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// job makes a Job that was created 100 s ago, and runs in west.
func job(name string, edits ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name), CreationTimestamp: before(100 * time.Second)},
		Spec:       batchv1.JobSpec{Completions: ptr.To[int32](10), Parallelism: ptr.To[int32](2)},
		Status:     batchv1.JobStatus{Active: 2, Ready: ptr.To[int32](2), StartTime: ptr.To(before(80 * time.Second))},
	}
	hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "west"})
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func inNamespace(namespace string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Namespace = namespace }
}

func unplaced(j *batchv1.Job) { j.Status = batchv1.JobStatus{} }

func complete(j *batchv1.Job) {
	j.Status.CompletionTime = ptr.To(before(10 * time.Second))
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
}

func completed(indexes string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.CompletionMode, j.Status.CompletedIndexes = ptr.To(batchv1.IndexedCompletion), indexes
	}
}

func event(reason, message string, ago time.Duration) corev1.Event {
	at := before(ago)
	return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Job"}, ReportingController: v1alpha1.EventController, Reason: reason, Message: message, FirstTimestamp: at, LastTimestamp: at}
}

// of is an event of a worker.
func of(worker string, e corev1.Event) corev1.Event {
	e.Annotations = map[string]string{v1alpha1.AnnotationCluster: worker}
	return e
}

func alone(*batchv1.Job) jobview.Around { return jobview.Around{} }

func TestListJobs(t *testing.T) {
	jobs := []*batchv1.Job{job("a"), job("b", inNamespace("team-b")), job("c", unplaced), job("d", complete), job("e", func(j *batchv1.Job) {
		j.Labels = map[string]string{"team": "blue"}
		hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "east"})
	})}
	for _, row := range []struct {
		filter Filter
		want   string
		states string
	}{
		{Filter{}, "c a e b d", "1 Pending, 3 Running, 1 Complete"},
		{Filter{Namespace: "team-a"}, "c a e d", "1 Pending, 2 Running, 1 Complete"},
		{Filter{State: "Running"}, "a e b", "1 Pending, 3 Running, 1 Complete"},
		{Filter{Worker: "east"}, "e", "1 Running"},
		{Filter{Worker: NotPlaced}, "c", "1 Pending"},
		{Filter{Text: "TEAM=blue"}, "e", "1 Running"},
		{Filter{Text: "team-b/"}, "b", "1 Running"},
		{Filter{State: "Failed"}, "", "1 Pending, 3 Running, 0 Failed, 1 Complete"},
	} {
		list := ListJobs(jobs, row.filter, Order{}, 1, alone, now)
		var names, states []string
		for _, r := range list.Rows {
			names = append(names, r.Name)
		}
		for _, c := range list.States {
			states = append(states, fmt.Sprint(c.Count, " ", c.Value))
		}
		if got := strings.Join(names, " "); got != row.want || list.Matching != len(list.Rows) || list.Total != len(jobs) {
			t.Errorf("%+v: %q of %d/%d, want %q", row.filter, got, list.Matching, list.Total, row.want)
		}
		if got := strings.Join(states, ", "); got != row.states {
			t.Errorf("%+v: states %q, want %q", row.filter, got, row.states)
		}
	}
}

func TestPagesOfJobs(t *testing.T) {
	var jobs []*batchv1.Job
	for i := range 2*PageSize + 1 {
		jobs = append(jobs, job(fmt.Sprintf("j%03d", i)))
	}
	for page, want := range map[int]string{-1: "1 of 3: 1-100 j000", 2: "2 of 3: 101-200 j100", 3: "3 of 3: 201-201 j200", 9: "3 of 3: 201-201 j200"} {
		list := ListJobs(jobs, Filter{}, Order{}, page, alone, now)
		if got := fmt.Sprintf("%d of %d: %d-%d %s", list.Page, list.Pages, list.First, list.Last, list.Rows[0].Name); got != want {
			t.Errorf("page %d: %s, want %s", page, got, want)
		}
	}
	if none := ListJobs(nil, Filter{}, Order{}, 1, alone, now); none.First != 0 || none.Pages != 1 {
		t.Errorf("%+v", none)
	}
}

// lanes writes a timeline down: each span with its seconds since the Job was created.
func lanes(t Timeline) string {
	var b strings.Builder
	for _, l := range t.Lanes {
		fmt.Fprintf(&b, "%s:", l.Name)
		for _, s := range l.Spans {
			fmt.Fprintf(&b, " %s %.0f-%.0f", s.State, s.From.Sub(t.From).Seconds(), s.To.Sub(t.From).Seconds())
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestTimeline(t *testing.T) {
	started := func(worker string, ago time.Duration) corev1.Pod {
		return corev1.Pod{ObjectMeta: of(worker, corev1.Event{}).ObjectMeta, Status: corev1.PodStatus{StartTime: ptr.To(before(ago))}}
	}
	for _, row := range []struct {
		name   string
		job    *batchv1.Job
		events []corev1.Event
		pods   []corev1.Pod
		want   string
	}{
		{"waits", job("a", unplaced), []corev1.Event{event("Pending", "0/2 clusters available", 99*time.Second)}, nil, "hub: Waiting 0-100\n"},
		{"runs", job("a"), []corev1.Event{event("Placed", "Placed on worker west: 2/2", 90*time.Second), event("Mirrored", "Created in worker west", 90*time.Second)},
			[]corev1.Pod{started("west", 85*time.Second)}, "hub: Waiting 0-10\nwest: Starting 10-15 Running 15-100\n"},
		{"ended", job("a", complete), []corev1.Event{event("Placed", "Placed on worker west: 2/2", 90*time.Second)}, nil,
			"hub: Waiting 0-10\nwest: Starting 10-20 Running 20-90\n"},
		{"lost and moved", job("a"), []corev1.Event{
			event("Placed", "Placed on worker east: 1/2", 90*time.Second), of("east", event("SuccessfulCreate", "Created pod", 88*time.Second)),
			event("OutOfTouch", `Worker east is out of touch`, 60*time.Second), event("Moved", "Moved from worker east to worker west: lost", 40*time.Second)},
			[]corev1.Pod{started("west", 30*time.Second)},
			"hub: Waiting 0-10\neast: Starting 10-12 Running 12-40 Out of touch 40-60\nwest: Starting 60-70 Running 70-100\n"},
		{"moved from a worker of which nothing can be read", job("a"), []corev1.Event{
			event("Placed", "Placed on worker east: 1/2", 90*time.Second), event("Mirrored", "Created in worker east", 89*time.Second),
			event("Moved", "Moved from worker east to worker west: lost", 40*time.Second), event("Mirrored", "Created in worker west", 40*time.Second)},
			[]corev1.Pod{started("west", 30*time.Second)},
			"hub: Waiting 0-10\neast: Starting 10-20 Running 20-60\nwest: Starting 60-70 Running 70-100\n"},
		{"moved a moment ago", job("a", func(j *batchv1.Job) {
			hubstate.Set(j, hubstate.Changes{hubstate.MovedFrom: "east"})
			j.Status.Ready = nil
		}), []corev1.Event{
			event("Placed", "Placed on worker east: 1/2", 90*time.Second), event("Mirrored", "Created in worker east", 89*time.Second),
			event("Moved", "Moved from worker east to worker west: lost", 2*time.Second)}, nil,
			"hub: Waiting 0-10\neast: Starting 10-20 Running 20-98\nwest: Starting 98-100\n"},
		{"suspended and resumed", job("a"), []corev1.Event{
			event("Placed", "Placed on worker west: 2/2", 90*time.Second), event("Suspended", "Job suspended", 50*time.Second), event("Resumed", "Job resumed", 20*time.Second)},
			[]corev1.Pod{started("west", 85*time.Second)}, "hub: Waiting 0-10\nwest: Starting 10-15 Running 15-50 Suspended 50-80 Running 80-100\n"},
		{"created suspended", job("a", unplaced), []corev1.Event{event("Suspended", "Job suspended", 100*time.Second), event("Resumed", "Job resumed", 60*time.Second)}, nil,
			"hub: Suspended 0-40 Waiting 40-100\n"},
		{"its events are gone", job("a", func(j *batchv1.Job) {
			hubstate.Set(j, hubstate.Changes{hubstate.MovedFrom: "east"})
			hubstate.Set(j, hubstate.Changes{hubstate.MovedAt: before(30 * time.Second).UTC().Format(time.RFC3339)})
		}), nil, []corev1.Pod{started("west", 25*time.Second)}, "hub: Waiting 0-20\neast: Running 20-70\nwest: Starting 70-75 Running 75-100\n"},
		{"in two workers", job("a", func(j *batchv1.Job) {
			hubstate.Set(j, hubstate.Changes{hubstate.Shards: "east=5;west=5", hubstate.ShardsState: `{"shards":{"east":{"parallelism":1},"west":{"parallelism":1}}}`})
		}), []corev1.Event{event("Mirrored", "Created in worker west", 90*time.Second), event("Mirrored", "Created in worker east", 80*time.Second)},
			[]corev1.Pod{started("west", 85*time.Second), started("east", 70*time.Second)},
			"hub: Waiting 0-10\nwest: Starting 10-15 Running 15-100\neast: Starting 20-30 Running 30-100\n"},
	} {
		var hubs, workers []corev1.Event
		for _, e := range row.events {
			if e.Annotations == nil {
				hubs = append(hubs, e)
			} else {
				workers = append(workers, e)
			}
		}
		timeline := NewTimeline(row.job, entriesOf(JobInput{HubEvents: hubs, WorkerEvents: workers}), row.pods, now)
		if diff := cmp.Diff(row.want, lanes(timeline)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
		for _, l := range timeline.Lanes {
			for _, s := range l.Spans {
				if s.Left < 0 || s.Width < minWidth || s.Left+s.Width > 100.0001 {
					t.Errorf("%s: %+v is outside", row.name, s)
				}
			}
		}
	}
}

// The whole page is inside the axis, whatever the clocks of hub and workers say.
func TestTimelineOfOddClocks(t *testing.T) {
	for _, ago := range []time.Duration{-time.Hour, time.Hour} {
		pod := corev1.Pod{ObjectMeta: of("west", corev1.Event{}).ObjectMeta, Status: corev1.PodStatus{StartTime: ptr.To(before(ago))}}
		for _, l := range NewTimeline(job("a"), nil, []corev1.Pod{pod}, now).Lanes {
			for _, s := range l.Spans {
				if s.Left < 0 || s.Left+s.Width > 100.0001 || s.To.Before(s.From) {
					t.Errorf("%v: %s %+v", ago, l.Name, s)
				}
			}
		}
	}
}

func TestIndexMap(t *testing.T) {
	running := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	running.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: "4", v1alpha1.AnnotationCluster: "north"}
	divided := func(j *batchv1.Job) {
		hubstate.Set(j, hubstate.Changes{hubstate.Shards: "east=5-9;west=0-3", hubstate.ShardsState: `{"shards":{"east":{"parallelism":1},"west":{"parallelism":1}}}`})
		j.Status.FailedIndexes = ptr.To("9")
	}
	m := NewIndexMap(job("a", completed("0-2,5"), divided), []corev1.Pod{running})
	if diff := cmp.Diff([][3]int{{3, 2, 1}, {1, 0, 1}, {1, 1, 2}, {1, 2, 0}, {3, 0, 0}, {1, 3, 0}}, m.Runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"east", "west", "north"}, m.Workers); diff != "" {
		t.Error(diff)
	}
	if m.Counts != [4]int{4, 1, 4, 1} || m.PerWorker[0].Counts != [4]int{3, 0, 1, 1} {
		t.Errorf("%+v", m)
	}
	if other := NewIndexMap(job("a", completed("0-2"), divided), nil); other.Version == m.Version {
		t.Error("another map has the same version")
	}
	if NewIndexMap(job("a"), nil) != nil {
		t.Error("a Job without indexes has a map")
	}
}

// Of a Job that has moved, it's known where an index ended as far as its annotations tell.
func TestIndexMapOfMoved(t *testing.T) {
	moved := func(with string, account usage.Account) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			hubstate.Set(j, hubstate.Changes{hubstate.MovedFrom: "east", hubstate.Usage: account.String()})
			if with != "" {
				hubstate.Set(j, hubstate.Changes{hubstate.MovedWith: with})
			}
			j.Status.FailedIndexes = ptr.To("9")
		}
	}
	const three = `{"succeeded":3,"completedIndexes":"0-2"}`
	fromEast := usage.Account{{Worker: "east", Seconds: 9, Left: true}, {Worker: "west", Seconds: 3}}
	fromTwo := append(usage.Account{{Worker: "north", Seconds: 9, Left: true}}, fromEast...)
	for name, row := range map[string]struct {
		edit func(*batchv1.Job)
		want [][3]int // west is 0, east is 1
	}{
		"from its first worker":      {moved(three, fromEast), [][3]int{{3, 2, 1}, {2, 2, 0}, {4, 0, 0}, {1, 3, -1}}},
		"from its second one":        {moved(three, fromTwo), [][3]int{{3, 2, -1}, {2, 2, 0}, {4, 0, 0}, {1, 3, -1}}},
		"without an account":         {moved(three, nil), [][3]int{{3, 2, -1}, {2, 2, 0}, {4, 0, 0}, {1, 3, -1}}},
		"before any index had ended": {moved("{}", nil), [][3]int{{5, 2, 0}, {4, 0, 0}, {1, 3, -1}}},
		"with too many indexes":      {moved(`{"succeeded":3}`, fromEast), [][3]int{{5, 2, -1}, {4, 0, 0}, {1, 3, -1}}},
		"by an older hub":            {moved("", fromEast), [][3]int{{5, 2, -1}, {4, 0, 0}, {1, 3, -1}}},
	} {
		m := NewIndexMap(job("a", completed("0-4"), row.edit), nil)
		if diff := cmp.Diff(row.want, m.Runs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWorkers(t *testing.T) {
	worker := func(name string, ready metav1.ConditionStatus, used string) *v1alpha1.WorkerCluster {
		w := &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionSchedulable} {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: ready, Reason: "R", Message: "no answer\x1b", LastTransitionTime: before(time.Minute)})
		}
		list := func(cpu string) corev1.ResourceList {
			return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(cpu), corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(cpu)}
		}
		w.Status.Allocatable, w.Status.Requested, w.Spec.Cost = list("10"), list(used), v1alpha1.Cost{"cpu": resource.MustParse("0.03")}
		return w
	}
	cards := Workers([]*v1alpha1.WorkerCluster{worker("a", metav1.ConditionTrue, "8"), worker("b", metav1.ConditionFalse, "0")})
	if cards[0].Name != "b" || !cards[0].Since.Equal(now.Add(-time.Minute)) || cards[0].Problem != "no answer" {
		t.Errorf("what has a problem comes first: %+v", cards[0])
	}
	if cards[0].Cost != "cpu 0.03" {
		t.Errorf("its cost is %q", cards[0].Cost)
	}
	want := []Resource{{"cpu", "8", "10", "2", 80, "warn"}, {"nvidia.com/gpu", "8", "10", "2", 80, "warn"}}
	if diff := cmp.Diff(want, cards[1].Resources); diff != "" {
		t.Error(diff)
	}
}

func TestJobPage(t *testing.T) {
	in := JobInput{Job: job("a", complete), Why: &v1alpha1.PlacementExplanation{Message: "Placed on west."}}
	for i := range maxRows + 5 {
		in.HubEvents = append(in.HubEvents, event("Placed", fmt.Sprint("Placed on worker west ", i), time.Duration(maxRows+5-i)*time.Second))
	}
	page := NewJobPage(in, now)
	if !page.Finished || page.Why != nil {
		t.Error("a Job that has ended waits for nothing")
	}
	if e := page.Events; len(e.Rows) != maxRows || e.Omitted != 5 || e.Rows[0].Message != fmt.Sprint("Placed on worker west ", maxRows+4) {
		t.Errorf("%d events, %d omitted, the first is %+v", len(e.Rows), e.Omitted, e.Rows[0])
	}
	if page.State != show.JobState(jobview.Complete) {
		t.Error("the state is that of the terminal")
	}
}

// The manager knows why a Job waits for longer than the hub keeps its events.
func TestWhyWithoutEvents(t *testing.T) {
	why := &v1alpha1.PlacementExplanation{Message: "0/2 clusters available"}
	for name, row := range map[string]struct {
		in   JobInput
		want string
	}{
		"its event has expired": {JobInput{Job: job("a", unplaced), Why: why}, "0/2 clusters available"},
		"its event is there":    {JobInput{Job: job("a", unplaced), Why: why, Reason: jobview.Reason{Reason: "Pending", Message: "no worker"}}, "no worker"},
		"it runs":               {JobInput{Job: job("a"), Why: why}, ""},
	} {
		if got := NewJobPage(row.in, now).JobRow.Why; got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// TestStates: the list and the page of a Job show the state that all show.
func TestStates(t *testing.T) {
	workers := jobview.WorkersAmong(jobviewtest.Workers())
	for _, row := range jobviewtest.Jobs() {
		around := func(*batchv1.Job) jobview.Around { return jobview.Around{Workers: workers} }
		list := ListJobs([]*batchv1.Job{row.Job}, Filter{}, Order{}, 1, around, now)
		page := NewJobPage(JobInput{Job: row.Job, Workers: jobviewtest.Workers()}, now)
		for _, got := range []string{list.Rows[0].State.Text, list.States[0].Value, page.State.Text} {
			if got != string(row.Want) {
				t.Errorf("%s: %s, want %s", row.Name, got, row.Want)
			}
		}
	}
}
