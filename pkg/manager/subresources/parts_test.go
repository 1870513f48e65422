package subresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/apistatus"
	"github.com/jobferry/jobferry/pkg/util/version"
)

func TestLinksAreKeptAndExchanged(t *testing.T) {
	worker, other := newWorker(t), &hub{objects: map[string]client.Object{}}
	other.put(workerCluster(metav1.ConditionTrue, ""))
	other.put(worker.secret("1"))
	l := newLinks(other, Options{Namespace: "system"}.withDefaults())
	to := func() *link {
		t.Helper()
		got, err := l.to(context.Background(), "w")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := to()
	if to() != first {
		t.Error("another link to the same worker")
	}
	other.put(worker.secret("2"))
	second := to()
	if second == first {
		t.Error("the old link after the Secret changed")
	}
	l.of["w"].used = time.Now().Add(-2 * idleLink)
	if third := to(); third == second {
		t.Error("an idle link was kept")
	}
}

func TestParseCall(t *testing.T) {
	rows := map[string]struct {
		method, namespace, name, sub, query string
		code                                int32
	}{
		"a log":              {"GET", "ns", "job", "log", "tailLines=1", 0},
		"a Job with dots":    {"GET", "ns", "job.v1", "pods", "", 0},
		"a command by POST":  {"POST", "ns", "job", "exec", "", 0},
		"a log by POST":      {"POST", "ns", "job", "log", "", http.StatusMethodNotAllowed},
		"what isn't there":   {"GET", "ns", "job", "status", "", http.StatusNotFound},
		"a way out":          {"GET", "..", "job", "log", "", http.StatusBadRequest},
		"a name of no Job":   {"GET", "ns", "a/b", "log", "", http.StatusBadRequest},
		"a query of no form": {"GET", "ns", "job", "log", "a=%zz", http.StatusBadRequest},
	}
	for name, row := range rows {
		r := &http.Request{Method: row.method, URL: &url.URL{Path: "/p", RawQuery: row.query}}
		r.SetPathValue("namespace", row.namespace)
		r.SetPathValue("name", row.name)
		r.SetPathValue("subresource", row.sub)
		req, err := parseRequest(r, nil)
		switch {
		case row.code == 0 && (err != nil || req.key != types.NamespacedName{Namespace: row.namespace, Name: row.name}):
			t.Errorf("%s: %v, %v", name, req, err)
		case row.code != 0 && (err == nil || apistatus.Of(err).Code != row.code):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFromWorker(t *testing.T) {
	rows := map[string]struct {
		err  error
		code int32
	}{
		"in time":   {context.DeadlineExceeded, http.StatusGatewayTimeout},
		"too large": {errTooLarge, http.StatusBadGateway},
		"costly":    {errCostly, http.StatusBadGateway},
		"network":   {errors.New("connection refused"), http.StatusServiceUnavailable},
		"conflict":  {notYet("x"), http.StatusConflict},
	}
	for name, row := range rows {
		if got := apistatus.Of(fromWorker("w", "asking", fmt.Errorf("wrapped: %w", row.err))); got.Code != row.code || !strings.Contains(got.Message, `worker "w"`) && row.code != http.StatusBadGateway {
			t.Errorf("%s: %d %s", name, got.Code, got.Message)
		}
	}
	if err := fromWorker("w", "asking", context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// late is a worker that answers because the request has ended.
type late struct{ end func() }

func (l late) RoundTrip(*http.Request) (*http.Response, error) {
	l.end()
	return httptest.NewRecorder().Result(), nil
}

// TestAnAnswerAfterTheEnd: net/http hands over an answer that came while it closed the connection.
func TestAnAnswerAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	req := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/team/pods", nil).WithContext(ctx)
	resp, err := bounded{late{cancel}}.RoundTrip(req)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestEventsAreSortedAndBounded(t *testing.T) {
	at := func(s int64) metav1.Time { return metav1.Time{Time: time.Unix(s, 0)} }
	events := []corev1.Event{
		{ObjectMeta: metav1.ObjectMeta{Name: "by-creation", CreationTimestamp: at(4)}},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-series"}, LastTimestamp: at(9), Series: &corev1.EventSeries{LastObservedTime: metav1.MicroTime{Time: time.Unix(3, 0)}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-last", CreationTimestamp: at(9)}, LastTimestamp: at(1)},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-time", CreationTimestamp: at(9)}, EventTime: metav1.MicroTime{Time: time.Unix(2, 0)}},
	}
	var names []string
	for _, e := range newest(events, maxEvents) {
		names = append(names, e.Name)
	}
	if want := []string{"by-last", "by-time", "by-series", "by-creation"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	many := make([]corev1.Event, maxEvents+5)
	for i := range many {
		many[i].LastTimestamp = at(int64(len(many) - i))
	}
	if got := newest(many, maxEvents); len(got) != maxEvents || got[0].LastTimestamp.Unix() != 6 {
		t.Errorf("%d, the first at %d", len(got), got[0].LastTimestamp.Unix())
	}
	if content, _ := json.Marshal(corev1.EventList{Items: newest(nil, maxEvents)}); !strings.Contains(string(content), `"items":[]`) {
		t.Errorf("no events: %s", content)
	}
}

// OpenAPI has the parameters that are read, and no others.
func TestOpenAPI(t *testing.T) {
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Paths) != len(all())+len(dispatchedJobsPatterns) {
		t.Errorf("%d paths", len(document.Paths))
	}
	for _, s := range all() {
		for _, method := range s.methods {
			describes(t, s, document.Paths[strings.NewReplacer("{subresource}", s.name).Replace(pattern)][strings.ToLower(method)])
		}
	}
	for i, verb := range []string{"list", "list", "get"} {
		describes(t, dispatchedJobs(verb), document.Paths[dispatchedJobsPatterns[i]]["get"])
	}
}

// describes expects an operation to have the parameters of what serves it.
func describes(t *testing.T, s subresource, raw []byte) {
	t.Helper()
	var operation struct {
		Parameters []struct{ Name string } `json:"parameters"`
	}
	if err := json.Unmarshal(raw, &operation); err != nil {
		t.Errorf("%s isn't described: %v", s.name, err)
		return
	}
	query := url.Values{}
	for _, p := range operation.Parameters {
		query.Set(p.Name, "1")
	}
	if err := (&request{sub: s, query: query}).checkParams(); err != nil {
		t.Errorf("%s: described, but %v", s.name, err)
	}
	for _, name := range s.params {
		if !query.Has(name) {
			t.Errorf("%s: %s isn't described", s.name, name)
		}
	}
}

func TestOptions(t *testing.T) {
	bad := Options{StreamsPerUser: -1, StallTimeout: -1}
	err := bad.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{"address", "certificate", "namespace", "streams per user: must not be negative, but is -1", "stall timeout"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q isn't in %v", want, err)
		}
	}
}

func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	for path := range maps.Keys(documents()) {
		answer, err := w.api.Client().Get(w.api.URL + strings.TrimPrefix(path, "GET "))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
		if said := answer.Header.Get(version.Header); said != version.Get() {
			t.Errorf("%s: the manager says that its version is %q", path, said)
		}
	}
	for session := range sessions {
		i := slices.IndexFunc(resources().APIResources, func(r metav1.APIResource) bool { return r.Name == "jobs/"+session })
		if i < 0 || !slices.Equal(resources().APIResources[i].Verbs, []string{"get", "create"}) {
			t.Errorf("%s isn't there with get and create", session)
		}
	}
}

// Only logs have no bound, whatever things are called.
func TestIsLog(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/namespaces/team/pods/job-a/log":            true,
		"/clusters/x/api/v1/namespaces/team/pods/job-a/log": true,
		"/apis/batch/v1/namespaces/team/jobs/log":           false,
		"/apis/batch/v1/namespaces/pods/jobs/log":           false,
		"/api/v1/namespaces/team/pods/log":                  false,
		"/api/v1/namespaces/pods/pods/log":                  false,
		"/log":                                              false,
	} {
		if got := isLog(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
