package subresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobferry/jobferry/pkg/manager/subresources/dispatchedjobs"
)

// table has the world serve dispatchedjobs of a hub whose Jobs are there, and its watches never
// end.
func (w *world) table() {
	w.t.Helper()
	hub := fake.NewClientset(hubJob())
	hub.PrependWatchReactor("jobs", func(clienttesting.Action) (bool, watch.Interface, error) { return true, watch.NewRaceFreeFake(), nil })
	jobs := dispatchedjobs.New(hub, nil, w.server.options.RequestTimeout, w.server.log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { jobs.Run(ctx); close(ended) }()
	w.t.Cleanup(func() { cancel(); <-ended })
	*w.jobs = *jobs
}

// ask requests a path of the API.
func (w *world) ask(ctx context.Context, method, user, path string) (code int, body io.Reader) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, w.api.URL+apiRoot+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("X-Remote-User", user)
	response, err := w.api.Client().Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}

// What is asked of the hub's RBAC is just what is served.
func TestRightsForDispatchedJobs(t *testing.T) {
	for path, want := range map[string]authorizationv1.ResourceAttributes{
		"/dispatchedjobs": {Verb: "list"},
		"/dispatchedjobs?watch=true&allowWatchBookmarks=true":                  {Verb: "watch"},
		"/namespaces/team/dispatchedjobs":                                      {Verb: "list", Namespace: "team"},
		"/namespaces/team/dispatchedjobs?watch=1":                              {Verb: "watch", Namespace: "team"},
		"/namespaces/team/dispatchedjobs?watch=0":                              {Verb: "list", Namespace: "team"},
		"/namespaces/team/dispatchedjobs?fieldSelector=metadata.name%3Djob":    {Verb: "list", Namespace: "team", Name: "job"},
		"/dispatchedjobs?fieldSelector=metadata.namespace%3Dteam":              {Verb: "list"},
		"/namespaces/team/dispatchedjobs?fieldSelector=metadata.name%21%3Djob": {Verb: "list", Namespace: "team"},
		"/namespaces/team/dispatchedjobs/job":                                  {Verb: "get", Namespace: "team", Name: "job"},
	} {
		w := newWorld(t)
		w.table()
		var asked *authorizationv1.ResourceAttributes
		w.authorize = newAccessReviewer(&rbac{allows: func(spec *authorizationv1.SubjectAccessReviewSpec) bool {
			asked = spec.ResourceAttributes
			return false
		}})
		if code, _ := w.ask(t.Context(), http.MethodGet, "someone", path); code != http.StatusForbidden {
			t.Errorf("%s: %d", path, code)
		}
		want.Group, want.Version, want.Resource = Group, Version, "dispatchedjobs"
		if asked == nil || fmt.Sprint(*asked) != fmt.Sprint(want) {
			t.Errorf("%s: asked for %+v, want %+v", path, asked, want)
		}
	}
}

func TestDispatchedJobs(t *testing.T) {
	w := newWorld(t)
	w.table()
	for path, want := range map[string]int{
		"/dispatchedjobs":                               http.StatusOK,
		"/namespaces/team/dispatchedjobs":               http.StatusOK,
		"/namespaces/team/dispatchedjobs/job":           http.StatusOK,
		"/namespaces/team/dispatchedjobs/none":          http.StatusNotFound,
		"/namespaces/team/dispatchedjobs/job?watch=1":   http.StatusBadRequest,
		"/namespaces/team/dispatchedjobs/job/status":    http.StatusNotFound,
		"/namespaces/Team/dispatchedjobs":               http.StatusBadRequest,
		"/namespaces/team/dispatchedjobs?name=job":      http.StatusBadRequest,
		"/namespaces/team/dispatchedjobs?limit=x":       http.StatusBadRequest,
		"/namespaces/team/dispatchedjobs?limit=1;a=b":   http.StatusBadRequest,
		"/watch/namespaces/team/dispatchedjobs?watch=1": http.StatusNotFound,
	} {
		code, body := w.ask(t.Context(), http.MethodGet, "reader", path)
		var object struct{ Kind, APIVersion string }
		if err := json.NewDecoder(body).Decode(&object); err != nil || code != want || (object.Kind == "Status") != (want != http.StatusOK) {
			t.Errorf("%s: %d, %+v, %v", path, code, object, err)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if code, _ := w.ask(t.Context(), method, "reader", "/namespaces/team/dispatchedjobs/job"); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, code)
		}
	}
}

// A flood of watches is bounded, per user and per namespace. Others have theirs, and lists and logs
// go on.
func TestAFloodOfWatches(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Watches, o.WatchesPerUser, o.Streams, o.StreamsPerUser = 25, 2, 5, 1 })
	w.table()
	ctx, cancel := context.WithCancel(t.Context())
	flood := func(namespace string) (open int) {
		for i := range 50 {
			code, _ := w.ask(ctx, http.MethodGet, fmt.Sprint("flood-", i/4), namespace+"/dispatchedjobs?watch=1")
			switch code {
			case http.StatusOK:
				open++
			case http.StatusTooManyRequests:
			default:
				t.Fatal(code)
			}
		}
		return open
	}
	if n := flood("/namespaces/evil"); n != 5 {
		t.Errorf("a namespace has %d of 25 watches", n)
	}
	if n := flood(""); n != 4 {
		t.Errorf("watches of all namespaces have %d of 25", n)
	}
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if code, _ := w.ask(ctx, http.MethodGet, "modest", "/namespaces/team/dispatchedjobs?watch=1"); code != want {
			t.Errorf("watch %d of another user in another namespace: %d", i, code)
		}
	}
	for _, path := range []string{"/namespaces/evil/dispatchedjobs", "/namespaces/team/jobs/job/pods"} {
		if code, _ := w.ask(ctx, http.MethodGet, "flood-0", path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	cancel()
}

// At the manager's end, a watch ends as one of the hub's would: the client goes on at another
// replica.
func TestAWatchEndsWithTheManager(t *testing.T) {
	w := newWorld(t)
	w.table()
	_, body := w.ask(t.Context(), http.MethodGet, "reader", "/namespaces/team/dispatchedjobs?watch=1")
	w.server.stop()
	if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
}
