package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// watched answers a list, and then a watch with changes, after which the hub has forgotten what was
// before.
func watched(t *testing.T, list any, changes ...any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := &fakeHub{t: t}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			h.encode(w, list)
			return
		}
		for _, change := range changes {
			h.encode(w, change)
		}
		h.encode(w, map[string]any{"type": "ERROR", "object": refusal(http.StatusGone, metav1.StatusReasonExpired, "too old resource version", nil)})
	})
}

func change(kind string, object any) any { return map[string]any{"type": kind, "object": object} }

// numbered is a Job of that name at a version, as an API server sends it.
func numbered(name, version string, edits ...func(*batchv1.Job)) *batchv1.Job {
	job := hubJob()
	job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	job.Name, job.ResourceVersion, job.UID = name, version, types.UID("uid-"+name)
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func succeeded(n int32) func(*batchv1.Job) { return func(j *batchv1.Job) { j.Status.Succeeded = n } }

func isComplete(j *batchv1.Job) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
}

// -w shows the Jobs, then each that looks different, below one header.
func TestWatchJobs(t *testing.T) {
	h := newHub(t)
	list := &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []batchv1.Job{*numbered("shards", "6")}}
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = watched(t, list,
		change("MODIFIED", numbered("shards", "8", func(j *batchv1.Job) { j.Labels = map[string]string{"seen": "no"} })),
		change("MODIFIED", numbered("shards", "9", succeeded(1))),
		change("MODIFIED", numbered("shards", "10", func(j *batchv1.Job) { j.Spec.ManagedBy = nil; j.UID = "foreign" })),
		change("DELETED", numbered("shards", "11", succeeded(1), isComplete)),
	)
	h.answers["/api/v1/namespaces/team-a/events"] = watched(t, &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
	got := h.run("jobs", "-w")
	want := "NAME     WORKER   STATE     SUCCEEDED   ACTIVE   DURATION   AGE   WHY\n" +
		"shards   west     Running   0/2         2        -          -     \n" +
		"shards   west     Running   1/2         2        -          -     \n" +
		"shards   west     Complete   1/2         2        -          -     \n"
	if got.out != want || got.code != exitFailed || !strings.Contains(got.err, "too old resource version") {
		t.Errorf("%s%s", got.out, got.err)
	}
}

// A Job that leaves the selection is shown once more, and one that comes into it, too.
func TestWatchJobsOfAState(t *testing.T) {
	h := newHub(t)
	list := &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []batchv1.Job{*numbered("shards", "6")}}
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = watched(t, list,
		change("MODIFIED", numbered("shards", "8", isComplete)),
		change("MODIFIED", numbered("shards", "9", isComplete, succeeded(2))),
	)
	h.answers["/api/v1/namespaces/team-a/events"] = watched(t, &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
	if got := h.run("jobs", "-w", "--state", "Running"); strings.Count(got.out, "\n") != 3 || !strings.Contains(got.out, "Complete   0/2") {
		t.Errorf("%+v", got)
	}
	if got := h.run("jobs", "-w", "--state", "Complete", "-o", "name", "--sort-by", ".metadata.name"); got.out != "job.batch/shards\njob.batch/shards\n" ||
		!strings.Contains(got.err, "warning: --watch requested, --sort-by will be ignored for watch events received\n") {
		t.Errorf("%+v", got)
	}
}

// waitingJobs are listed, and watched until some events have come.
func waitingJobs(t *testing.T, seen <-chan struct{}, names ...string) http.Handler {
	list := &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, name := range names {
		list.Items = append(list.Items, *numbered(name, "6", func(j *batchv1.Job) {
			j.Status = batchv1.JobStatus{Conditions: hubstate.Changes{hubstate.Waits: string(hubstate.NoRoom)}.Conditions(&batchv1.Job{}, nil, now)}
		}))
	}
	jobs := watched(t, list)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			<-seen
		}
		jobs.ServeHTTP(w, r)
	})
}

// pendingEvent says what that Job waits for.
func pendingEvent(message string, at time.Time) corev1.Event {
	e := event(v1alpha1.EventPending, message)
	e.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	e.Namespace, e.InvolvedObject.UID, e.ReportingController = "team-a", numbered("shards", "6").UID, v1alpha1.EventController
	e.ResourceVersion, e.LastTimestamp = "8", metav1.NewTime(at)
	return e
}

// What a Job waits for comes from its events, which change while the Job doesn't.
func TestWatchTellsWhyAJobWaits(t *testing.T) {
	h := newHub(t)
	seen := make(chan struct{})
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = waitingJobs(t, seen, "shards")
	pending := pendingEvent("0/2 clusters available", now)
	h.answers["/api/v1/namespaces/team-a/events"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&fakeHub{t: t}).watchEvents(w, r, pending, seen)
	})
	got := h.run("jobs", "-w")
	for _, text := range []string{"No worker can take the Job now\n", "0/2 clusters available\n"} {
		if !strings.Contains(got.out, text) {
			t.Errorf("no %q in %+v", text, got)
		}
	}
}

// A tenant writes very many events about a large Job: where no reasons are shown, it's read only if
// they change whether it's selected, once for many. That it can't be read ends nothing.
func TestEventsHaveAJobReadOnce(t *testing.T) {
	failed := apierrors.NewInternalError(errors.New("not now"))
	for name, row := range map[string]struct {
		state        jobview.State
		answer       error
		reads, shown int
		isReadLater  bool
	}{
		"all":             {"", nil, 0, 0, false},
		"it's selected":   {jobview.OutOfTouch, nil, 1, 1, false},
		"it isn't":        {jobview.Running, nil, 1, 1, false},
		"it's gone":       {jobview.Running, apierrors.NewNotFound(batchv1.Resource("jobs"), "shards"), 1, 0, false},
		"it can't be had": {jobview.Running, failed, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(access.Scheme).WithObjects(numbered("shards", "6")).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, job client.Object, _ ...client.GetOption) error {
					if reads++; row.answer != nil {
						return row.answer
					}
					return hub.Get(ctx, key, job)
				},
			})
			streams, _, out, said := genericiooptions.NewTestIOStreams()
			w := &jobWatch{
				cli: &cli{IOStreams: streams, clock: clock.RealClock{}}, hub: hub, flags: &listFlags{}, out: output{genericclioptions.NewPrintFlags("").WithTypeSetter(access.Scheme)},
				known: map[jobview.Subject]knownJob{}, pause: eventsAgain,
			}
			if w.reasons = jobview.NewReasonsOfKnown(w.knows); row.state != "" {
				w.flags.states = []string{string(row.state)}
			}
			*w.out.flags.OutputFormat = "name"
			if err := w.show(numbered("shards", "6"), false); err != nil {
				t.Fatal(err)
			}
			out.Reset()
			for i := range 1001 {
				e := pendingEvent(fmt.Sprint("event ", i), now.Add(time.Duration(i)*time.Second))
				if e.Reason = v1alpha1.EventDeferred; i%2 == 0 {
					e.Reason = v1alpha1.EventOutOfTouch
				}
				if err := w.takeEvent(t.Context(), watch.Event{Type: watch.Added, Object: &e}); err != nil {
					t.Fatal(err)
				}
			}
			if (w.later != nil) != (row.reads > 0) || reads > 0 {
				t.Errorf("%d reads at once", reads)
			}
			w.later = nil
			for range 2 {
				if err := w.showAll(t.Context()); err != nil {
					t.Fatal(err)
				}
				if (w.later != nil) != row.isReadLater {
					t.Errorf("it's read later: %v", !row.isReadLater)
				}
				if row.isReadLater {
					break
				}
			}
			if shown := strings.Count(out.String(), "job.batch/shards"); reads != row.reads || shown != row.shown || strings.Contains(said.String(), "not now") != row.isReadLater {
				t.Errorf("%d reads, %d are shown, it says %s", reads, shown, said)
			}
			if row.answer = nil; row.isReadLater && (w.showAll(t.Context()) != nil || !strings.Contains(out.String(), "job.batch/shards")) {
				t.Errorf("what could be had at last isn't shown: %s", out)
			}
		})
	}
}

// watchEvents lists none, then sends one, and lets the others go on when it has been taken.
func (h *fakeHub) watchEvents(w http.ResponseWriter, r *http.Request, event corev1.Event, taken chan<- struct{}) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		h.encode(w, &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
		return
	}
	if r.URL.Query().Get("resourceVersion") == "7" {
		h.encode(w, change("MODIFIED", event))
		return
	}
	close(taken) // it's watched from the event on
	<-r.Context().Done()
}

// A Job that events select is read a moment later, and again if that fails.
func TestAJobThatEventsSelect(t *testing.T) {
	h := newHub(t)
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters"] = refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "no", nil)
	seen, read := make(chan struct{}), make(chan struct{})
	reads := 0
	h.answers["/apis/batch/v1/namespaces/team-a/jobs/shards"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads++; reads == 1 {
			h.answer(w, r, refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "not now", nil))
			return
		}
		h.answer(w, r, numbered("shards", "9"))
		close(read)
	})
	list := &batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []batchv1.Job{*numbered("shards", "6")}}
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			<-read
		}
		watched(t, list, change("ADDED", numbered("other", "10", isComplete))).ServeHTTP(w, r)
	})
	e := pendingEvent("no answer", now)
	e.Reason = v1alpha1.EventOutOfTouch
	h.answers["/api/v1/namespaces/team-a/events"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&fakeHub{t: t}).watchEvents(w, r, e, seen)
	})
	if got := h.run("jobs", "-w", "-o", "json", "--state", "OutOfTouch,Complete"); !strings.Contains(got.err, "can't be read: not now") || !strings.Contains(got.out, `"name": "shards"`) || !strings.Contains(got.out, `"name": "other"`) {
		t.Errorf("%+v", got)
	}
}

// API servers forget where a watch of events was: it begins anew, and what came meanwhile is shown,
// in the order of the first list.
func TestWatchJobsWhenTheHubForgetsEvents(t *testing.T) {
	h := newHub(t)
	seen := make(chan struct{})
	names := strings.Split("abcdefgh", "")
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = waitingJobs(t, seen, names...)
	watches := 0
	h.answers["/api/v1/namespaces/team-a/events"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "8"}}
		why, at := "no room", now
		if watches > 0 {
			why, at = "too large", now.Add(time.Minute)
		}
		for _, name := range names {
			e := pendingEvent(why, at)
			e.InvolvedObject.UID = numbered(name, "6").UID
			list.Items = append(list.Items, e)
		}
		switch {
		case r.URL.Query().Get("watch") == "":
		case watches > 0:
			close(seen)
			<-r.Context().Done()
			return
		default:
			watches++
		}
		watched(t, list).ServeHTTP(w, r)
	})
	got := h.run("jobs", "-w")
	var shown []string
	for line := range strings.Lines(got.out) {
		if name, why, is := strings.Cut(line, " "); is && strings.Contains(why, "too large") {
			shown = append(shown, name)
		}
	}
	if !slices.Equal(shown, names) || strings.Index(got.out, "no room") > strings.Index(got.out, "too large") {
		t.Errorf("%s%s", got.out, got.err)
	}
}

// A tenant has many large Jobs, and writes large events about them and about Jobs that there
// aren't: of each, what a row shows is kept.
func TestWatchKeepsRows(t *testing.T) {
	const jobs = 100
	large := func() string { return strings.Repeat("x", 200<<10) }
	w := &jobWatch{
		cli: &cli{clock: clock.RealClock{}}, flags: &listFlags{}, out: output{genericclioptions.NewPrintFlags("")}, table: show.NewTableWriter(io.Discard, show.Palette{}),
		known: map[jobview.Subject]knownJob{},
	}
	w.reasons = jobview.NewReasonsOfKnown(w.knows)
	before := costtest.Heap()
	for i := range 3 * jobs {
		job := numbered(fmt.Sprint("job-", i), "6")
		job.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: large(), "theirs": large()}
		job.Labels, job.Status.CompletedIndexes = map[string]string{"theirs": large()}, large()
		job.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{large()}}}
		event := pendingEvent(large(), now)
		event.InvolvedObject.UID, event.Source.Component = job.UID, large()
		if err := w.takeEvent(t.Context(), watch.Event{Type: watch.Added, Object: &event}); err != nil {
			t.Fatal(err)
		}
		event.InvolvedObject.UID = types.UID(large())
		if err := w.takeEvent(t.Context(), watch.Event{Type: watch.Added, Object: &event}); err != nil {
			t.Fatal(err)
		}
		if err := w.takeJob(watch.Event{Type: watch.Added, Object: job}); err != nil {
			t.Fatal(err)
		}
	}
	if kept := costtest.Heap() - before; kept > 4<<20 || len(w.known) != 3*jobs || len(w.reasons.Reasons) != 3*jobs {
		t.Errorf("%d KiB are kept of %d Jobs and %d events", kept>>10, len(w.known), len(w.reasons.Reasons))
	}
	runtime.KeepAlive(w)
}

// A row shows the same of what is kept of a Job as of the whole Job.
func TestRowsOfWhatIsKept(t *testing.T) {
	around := jobview.Around{Workers: show.SeenWorkers(nil)}
	for _, job := range jobviewtest.Jobs() {
		if got, want := jobview.Of(rowOf(job.Job), around).Status, jobview.Of(job.Job, around).Status; !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", job.Name, got, want)
		}
	}
}
