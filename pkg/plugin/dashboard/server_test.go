package dashboard

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/hub"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

// Only the user's own browser gets an answer.
func TestGuard(t *testing.T) {
	b := open(t, newWorld())
	for _, row := range []struct {
		name string
		edit func(*http.Request)
		want int
	}{
		{"with the cookie", func(*http.Request) {}, http.StatusOK},
		{"without the cookie", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		{"with the cookie of another port", func(r *http.Request) {
			r.Header.Set("Cookie", "jobferry-dashboard-1="+b.server.token)
		}, http.StatusUnauthorized},
		{"with a wrong token", func(r *http.Request) {
			r.Header.Del("Cookie")
			r.URL.RawQuery = "token=x"
		}, http.StatusUnauthorized},
		{"by a name that leads here", func(r *http.Request) { r.Host = "evil.example:" + b.port() }, http.StatusMisdirectedRequest},
		{"to write", func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		{"assets without the cookie", func(r *http.Request) {
			r.URL.Path = "/assets/app.js"
			r.Header.Del("Cookie")
		}, http.StatusUnauthorized},
		{"with the cookie, but without the path", func(r *http.Request) { r.URL.Path = "/jobs" }, http.StatusUnauthorized},
		{"with the token, but without the path", func(r *http.Request) {
			r.Header.Del("Cookie")
			r.URL.Path, r.URL.RawQuery = "/", "token="+b.server.token
		}, http.StatusUnauthorized},
	} {
		r := b.request("/")
		row.edit(r)
		response := b.do(r)
		_ = response.Body.Close()
		if response.StatusCode != row.want {
			t.Errorf("%s: %s, want %d", row.name, response.Status, row.want)
		}
		if csp := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") {
			t.Errorf("%s: Content-Security-Policy %q", row.name, csp)
		}
	}
}

// The token is exchanged for a cookie, and leaves the address.
func TestToken(t *testing.T) {
	b := open(t, newWorld())
	for path, want := range map[string]string{
		"/jobs?state=Running&token=": "/jobs?state=Running",
		"//evil.example/?token=":     "/evil.example/",
	} {
		r := b.request(path + b.server.token)
		r.Header.Del("Cookie")
		response := b.do(r)
		_ = response.Body.Close()
		if got := strings.TrimPrefix(response.Header.Get("Location"), b.server.base); response.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("%s: %s to %q, want %q", path, response.Status, got, want)
		}
		cookie := response.Cookies()[0]
		if cookie.Name != b.cookie.Name || cookie.Value != b.server.token || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
			t.Errorf("%s: %v", path, cookie)
		}
	}
}

// Browsers send cookies to all ports of 127.0.0.1. Another server there gets none of the
// dashboard's, whatever page of it the user visits.
func TestOtherServersGetNoCookie(t *testing.T) {
	b := open(t, newWorld())
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	visit := func(address string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	listener := b.http.Listener
	if got := visit(b.server.URL(listener)); got != http.StatusOK {
		t.Fatalf("the dashboard answers with %d", got)
	}
	if got := visit(b.http.URL + b.server.base + "/jobs"); got != http.StatusOK {
		t.Fatalf("with the cookie, the dashboard answers with %d", got)
	}
	stolen := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen += r.Header.Get("Cookie") }))
	defer other.Close()
	for _, path := range []string{"", "/", "/jobs", "/assets/app.js"} {
		visit(other.URL + path)
	}
	if stolen != "" {
		t.Errorf("another server got %q", stolen)
	}
}

func TestPages(t *testing.T) {
	w := newWorld()
	w.jobs = append(fleet(150), job("waits", func(j *batchv1.Job) { j.Status = batchv1.JobStatus{} }))
	w.workers = []*v1alpha1.WorkerCluster{worker("west", metav1.ConditionTrue, ""), worker("east", metav1.ConditionFalse, "<b>no route</b>")}
	b := open(t, w)
	b.shows("/", 200, "3 nodes", "10 of 40", "12Gi free", "Not ready for <time", "its last answer is <time", "&lt;b&gt;no route", `href="/jobs?state=Running"`, "<b>150</b>")
	b.shows("/jobs", 200, "1–100 of 151", `id="job-team-a/waits"`, `href="/jobs?page=2"`, "not placed (1)")
	b.shows("/jobs?page=2", 200, "101–151 of 151", `href="/jobs?page=1"`)
	b.shows("/jobs?q=job-0007", 200, "1 of 151", `value="job-0007"`, `id="job-team-a/job-0007"`)
	b.shows("/jobs?state=Pending&worker=none", 200, "1 of 151", `aria-current="true" href="/jobs?worker=none"`)
	b.shows("/jobs?q=nothing", 200, "No Job matches")
	b.shows("/elsewhere", 404, "no such page")
	b.shows("/jobs/team-a/nobody", 404, "no such Job")
}

func TestWorkerPage(t *testing.T) {
	w := newWorld()
	w.jobs = []*batchv1.Job{job("a"), job("b", func(j *batchv1.Job) { j.Status = batchv1.JobStatus{} })}
	west, east := worker("west", metav1.ConditionTrue, ""), worker("east", metav1.ConditionFalse, "no route")
	west.Spec.Cordoned = true
	meta.SetStatusCondition(&west.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionTokenRenewed, Status: metav1.ConditionTrue, Reason: "TokenValid", Message: "the token expires at noon"})
	w.workers = []*v1alpha1.WorkerCluster{west, east}
	b := open(t, w)
	body := b.shows("/workers/west", 200, "the token expires at noon", "TokenValid", "10 of 40", `href="/jobs/team-a/a"`, `href="/workers/west?sort=name"`,
		`data-copy="kubectl jobferry uncordon west --context &#39;my hub&#39;"`, "kubectl jobferry rotate west --worker-context CONTEXT")
	if strings.Contains(body, "/jobs/team-a/b") || strings.Contains(body, "as of") {
		t.Error("a Job that isn't placed is shown, or what is live looks old")
	}
	b.shows("/workers/east", 200, "no route", "It isn't ready", `as of <time datetime="2026-03-01T11:58:50Z"`, "It has none", "kubectl jobferry drain east")
	b.shows("/", 200, `href="/workers/west"`, `As of <time datetime="2026-03-01T11:58:50Z"`)
	b.shows("/workers/north", 404, "There is no such worker")
}

// Each page of a Job has the commands that do the same, and what was seen last is marked.
func TestCommands(t *testing.T) {
	w := newWorld()
	w.jobs, w.details.Pods = fleet(1), []corev1.Pod{pod("pi-x")}
	w.workers = []*v1alpha1.WorkerCluster{worker("west", metav1.ConditionFalse, "no route")}
	b := open(t, w)
	b.shows("/jobs/team-a/job-0000?pod=pi-x&timestamps=1", 200, `data-copy="job-0000"`, "last seen",
		`<code>kubectl jobferry describe job-0000 -n team-a --context &#39;my hub&#39;</code>`, "kubectl jobferry why job-0000 -n team-a",
		`<code>kubectl jobferry logs job-0000 -n team-a --pod pi-x -c main --timestamps -f --context &#39;my hub&#39;</code>`)
	w.workers[0] = worker("west", metav1.ConditionTrue, "")
	if body := b.shows("/jobs/team-a/job-0000", 200); strings.Contains(body, "last seen") {
		t.Error("what is live looks old")
	}
}

func TestQuoted(t *testing.T) {
	for argument, want := range map[string]string{
		"prod": "prod", "admin@eks:eu/1": "admin@eks:eu/1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
	} {
		if got := quoted(argument); got != want {
			t.Errorf("%q: %s, want %s", argument, got, want)
		}
	}
}

func TestUsagePage(t *testing.T) {
	w := newWorld()
	b := open(t, w)
	b.shows("/usage", 200, "Nothing was used in this time")
	account := usage.Account{{Worker: "west", UID: "m", Seconds: 7200, Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}
	w.jobs = []*batchv1.Job{job("train", func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Usage: account.String()}) })}
	w.workers = []*v1alpha1.WorkerCluster{worker("west", metav1.ConditionTrue, "")}
	b.shows("/usage?since=30d", 200, "No worker has prices", `id="since-30d" href="/usage?since=30d" aria-current="true"`, `href="/jobs?namespace=team-a"`, `href="/jobs?worker=west"`, `href="/jobs/team-a/train"`)
	w.workers[0].Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("0.5")}
	b.shows("/usage", 200, ">6.00<", ">3.00<")
	b.shows("/jobs/team-a/train", 200, `id="usage"`, ">6.00<", ">3.00<")
	w.health = hub.Health{State: hub.Forbidden, Message: `cannot list "jobs"`}
	b.shows("/usage", 200, `id="forbidden"`, "prices of the workers")
}

// Only a hub with Kueue has the page of its queues in the navigation.
func TestQueuesTab(t *testing.T) {
	w := newWorld()
	b := open(t, w)
	if body := b.shows("/", 200); strings.Contains(body, `href="/queues"`) {
		t.Error("a hub without Kueue has queues")
	}
	w.queues = true
	b.shows("/", 200, `href="/queues"`)
}

// Empty, loading, forbidden, disconnected, and without Jobferry.
func TestStates(t *testing.T) {
	w := newWorld()
	b := open(t, w)
	b.shows("/", 200, "kubectl jobferry register")
	b.shows("/jobs", 200, "jobferry.dev/dispatch=enabled")
	w.health = hub.Health{State: hub.Loading}
	b.shows("/jobs", 200, `id="loading"`)
	b.shows("/jobs/team-a/a", 200, `id="loading"`)
	w.health = hub.Health{State: hub.Forbidden, Message: `cannot list "jobs"`}
	b.shows("/jobs", 200, `id="forbidden"`, "role <code>view</code>")
	b.shows("/", 200, "its workers", "/jobs")
	w.health = hub.Health{State: hub.NoJobferry}
	for _, path := range []string{"/", "/jobs", "/usage", "/queues", "/jobs/team-a/a"} {
		b.shows(path, 200, `id="nojobferry"`, "context <code>hub</code>", "--context NAME")
	}
	w.jobs = fleet(1)
	w.health = hub.Health{State: hub.Unauthorized, Since: now.Add(-time.Minute), Message: "Unauthorized"}
	b.shows("/jobs", 200, `id="unauthorized"`, "job-0000")
	w.health = hub.Health{State: hub.Disconnected, Since: now.Add(-time.Minute), Message: "connection refused"}
	b.shows("/jobs", 200, `id="disconnected"`, ">60s</time>", "job-0000")
}

func TestJobPage(t *testing.T) {
	w := newWorld()
	w.jobs = []*batchv1.Job{job("shards", indexed("0-2,5"))}
	w.details = view.JobInput{
		Pods:      []corev1.Pod{pod("shards-3-x")},
		HubEvents: []corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: "shards"}, ReportingController: v1alpha1.EventController, Reason: "Placed", Message: "Placed on worker west: <script>", LastTimestamp: before(595 * time.Second)}},
		Why: &v1alpha1.PlacementExplanation{Message: "Placed on west.", PodsWanted: 3, Waiting: &v1alpha1.WaitingExplanation{Place: 3, Of: 7}, Workers: []v1alpha1.WorkerExplanation{
			{Name: "east", Answer: v1alpha1.PlacementFitsLater, Message: "Insufficient cpu", PodsNow: ptr.To[int64](1), PodsNeeded: ptr.To[int64](3)}}},
		Missing: view.Missing{Pods: []string{"worker east doesn't answer"}},
	}
	w.logs["west/shards-3-x/main"] = "one line\n"
	b := open(t, w)
	body := b.shows("/jobs/team-a/shards", 200, "Running for 9m", "Waiting for 5s", `data-src="/jobs/team-a/shards/indexes"`, "completed <b>4</b>",
		"1 of 3", "In line: 3 of 7", "Insufficient cpu", "worker east doesn&#39;t answer", "Placed on worker west: &lt;script&gt;", `href="/jobs/team-a/shards?on=west&amp;pod=shards-3-x#log"`)
	if strings.Contains(body, `id="log"`) {
		t.Error("a log is shown that nobody asked for")
	}
	b.shows("/jobs/team-a/shards?on=west&pod=shards-3-x", 200, `data-src="/jobs/team-a/shards/log?container=main&amp;pod=shards-3-x&amp;worker=west"`)
	b.shows("/jobs/team-a/shards/log?container=main&pod=shards-3-x&worker=west", 200, "one line\n")
	b.shows("/jobs/team-a/shards/log?container=main&pod=other&worker=west", 502, "no such log")
	b.shows("/jobs/team-a/shards/indexes", 200, `"runs":[[3,2,0],[2,0,0],[1,2,0],[4,0,0]]`, `"workers":["west"]`)
	b.shows("/jobs/team-a/nobody/indexes", 404)
	empty := pod("shards-4-x")
	empty.Spec.Containers = nil // no API server stores that
	w.details.Pods = []corev1.Pod{empty}
	b.shows("/jobs/team-a/shards?on=west&pod=shards-4-x", 200, "shards-4-x")
	w.details = view.JobInput{Reading: true}
	b.shows("/jobs/team-a/shards", 200, "Reading from west …")
}

// What is chosen of a log is in the page's address, and goes to the worker.
func TestLog(t *testing.T) {
	w := newWorld()
	w.jobs = []*batchv1.Job{job("pi", indexed("0"), func(j *batchv1.Job) { j.Status.FailedIndexes = ptr.To("3,5-6") })}
	restarted := pod("pi-x")
	restarted.Annotations[batchv1.JobCompletionIndexAnnotation] = "3"
	restarted.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 1}}
	waits := pod("pi-y")
	waits.Status.Phase = corev1.PodPending
	w.details.Pods = []corev1.Pod{restarted, waits}
	w.logs["west/pi-x/main"] = "first\nsecond\n"
	b := open(t, w)
	b.shows("/jobs/team-a/pi?pod=pi-x", 200, `id="log-previous" href="/jobs/team-a/pi?pod=pi-x&amp;previous=1#log"`, `id="log-wrap" href="/jobs/team-a/pi?pod=pi-x&amp;wrap=no#log" aria-current="true"`)
	b.shows("/jobs/team-a/pi?pod=pi-x&previous=1&timestamps=1&wrap=no", 200, `class="log nowrap"`,
		`data-src="/jobs/team-a/pi/log?container=main&amp;pod=pi-x&amp;previous=1&amp;timestamps=1&amp;worker=west"`,
		`id="log-timestamps" href="/jobs/team-a/pi?pod=pi-x&amp;previous=1&amp;wrap=no#log" aria-current="true"`)
	b.shows("/jobs/team-a/pi?pod=pi-y", 200, "hasn&#39;t started")
	b.shows("/jobs/team-a/pi?container=main", 200, `id="failed-indexes"`, `<a data-soft href="/jobs/team-a/pi?index=6#log">6</a>`)
	b.shows("/jobs/team-a/pi?index=3", 200, "Log of pi-x", `data-src="/jobs/team-a/pi/log?container=main&amp;pod=pi-x&amp;worker=west"`)
	b.shows("/jobs/team-a/pi?index=4", 200, "Log of index 4", "There is no Pod of this index now.")
	for query, want := range map[string]corev1.PodLogOptions{
		"":                         {Follow: true, TailLines: ptr.To[int64](logTail)},
		"&timestamps=1":            {Follow: true, TailLines: ptr.To[int64](logTail), Timestamps: true},
		"&previous=1":              {Previous: true, TailLines: ptr.To[int64](logTail)},
		"&download=1&timestamps=1": {Timestamps: true},
	} {
		b.shows("/jobs/team-a/pi/log?container=main&pod=pi-x&worker=west"+query, 200, "first\nsecond\n")
		want.Container = "main"
		if !reflect.DeepEqual(w.asked, want) {
			t.Errorf("%q: asked for %+v, want %+v", query, w.asked, want)
		}
	}
	response := b.do(b.request("/jobs/team-a/pi/log?container=main&pod=pi-x&worker=west&download=1"))
	_ = response.Body.Close()
	if got := response.Header.Get("Content-Disposition"); got != "attachment; filename=pi-x-main.log" {
		t.Errorf("Content-Disposition %q", got)
	}
}

// The stream sends the page, and each version that differs.
func TestStream(t *testing.T) {
	w := newWorld()
	b := open(t, w)
	response := b.do(b.request("/stream?page=%2Fjobs"))
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("Content-Type %q", kind)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	if first := nextPage(t, lines); !strings.Contains(first, "No Jobs yet") {
		t.Errorf("%s", first)
	}
	b.untilWaits()
	w.change(func() {}) // nothing that the page shows
	b.clock.Step(quiet)
	b.untilWaits()
	w.change(func() { w.jobs = fleet(1) })
	b.clock.Step(quiet)
	if second := nextPage(t, lines); !strings.Contains(second, "job-0000") {
		t.Errorf("%s", second)
	}
}

// The page of the usage takes much: it isn't made again at each change, but at the next tick.
func TestCalmStream(t *testing.T) {
	w := newWorld()
	b := open(t, w)
	response := b.do(b.request("/stream?page=%2Fusage"))
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	nextPage(t, lines)
	account := usage.Account{{Worker: "west", UID: "m", Seconds: 7200}}
	runs := func(name string) {
		w.change(func() {
			w.jobs = []*batchv1.Job{job(name, func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Usage: account.String()}) })}
		})
	}
	b.untilWaits()
	runs("first")
	b.clock.Step(quiet)
	runs("second")
	b.clock.Step(poll)
	if next := nextPage(t, lines); !strings.Contains(next, "second") {
		t.Errorf("%s", next)
	}
}

func TestStreamOfNoPage(t *testing.T) {
	b := open(t, newWorld())
	b.shows("/stream?page=http%3A%2F%2Fevil.example%2F", http.StatusBadRequest)
	b.shows("/stream", http.StatusBadRequest)
}

// The page of a finished Job is made again until it has the last event.
func TestLastEventOfAFinishedJob(t *testing.T) {
	w := newWorld()
	w.jobs = []*batchv1.Job{job("pi", func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	})}
	w.details.Behind = true
	b := open(t, w)
	response := b.do(b.request("/stream?page=%2Fjobs%2Fteam-a%2Fpi"))
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	nextPage(t, lines)
	b.untilWaits()
	w.mu.Lock() // no change tells it
	w.details = view.JobInput{HubEvents: []corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: "pi"}, Reason: "Completed"}}}
	w.mu.Unlock()
	b.clock.Step(quiet)
	b.clock.Step(poll)
	if second := nextPage(t, lines); !strings.Contains(second, "Completed") {
		t.Errorf("%s", second)
	}
}

// untilWaits returns when the stream rests: it has its ticker and the timer of the rest.
func (b *browser) untilWaits() {
	b.t.Helper()
	for b.clock.Waiters() < 2 {
		if b.t.Context().Err() != nil {
			b.t.Fatal("the stream doesn't wait")
		}
	}
}

// nextPage returns the next page of a stream, and passes over signs of life.
func nextPage(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			var page struct{ Title, HTML string }
			if err := json.Unmarshal([]byte(data), &page); err != nil {
				t.Fatal(err)
			}
			return page.HTML
		}
	}
	t.Fatalf("the stream has ended: %v", lines.Err())
	return ""
}
