package subresources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// rbac is the hub's authorizer.
type rbac struct {
	authorizationclient.SubjectAccessReviewInterface
	allows func(*authorizationv1.SubjectAccessReviewSpec) bool
	asked  atomic.Int32
}

func (r *rbac) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.asked.Add(1)
	review.Status.Allowed = r.allows(&review.Spec)
	return review, ctx.Err()
}

func logOf(u *user.DefaultInfo, job string) *request {
	sub, _ := lookUp("log")
	return &request{user: u, key: types.NamespacedName{Namespace: "team", Name: job}, sub: sub}
}

// A user without rights who asks on and on asks the hub once; one with rights is reviewed each
// time.
func TestDenialsAreRemembered(t *testing.T) {
	hub := &rbac{allows: func(spec *authorizationv1.SubjectAccessReviewSpec) bool { return spec.User == "reader" }}
	r := newAccessReviewer(hub)
	for range 100 {
		err := r.check(t.Context(), logOf(&user.DefaultInfo{Name: "stranger"}, "job"))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a Role with verb get on jobs/log") {
			t.Fatalf("error %v", err)
		}
	}
	if asked := hub.asked.Load(); asked != 1 {
		t.Errorf("the hub was asked %d times about a stranger", asked)
	}
	for range 3 {
		if err := r.check(t.Context(), logOf(&user.DefaultInfo{Name: "reader"}, "job")); err != nil {
			t.Error(err)
		}
	}
	hub.allows = func(*authorizationv1.SubjectAccessReviewSpec) bool { return false }
	if err := r.check(t.Context(), logOf(&user.DefaultInfo{Name: "reader"}, "job")); !apierrors.IsForbidden(err) {
		t.Errorf("after the role was withdrawn: %v", err)
	}
	// Another who has the same name isn't the same user.
	hub.allows = func(spec *authorizationv1.SubjectAccessReviewSpec) bool { return len(spec.Groups) == 1 }
	if err := r.check(t.Context(), logOf(&user.DefaultInfo{Name: "stranger", Groups: []string{"readers"}}, "job")); err != nil {
		t.Error(err)
	}
}

// A user whose reviews hang leaves room for those of others.
func TestReviewsAreShared(t *testing.T) {
	waiting, release := make(chan struct{}, maxReviews), make(chan struct{})
	hub := &rbac{allows: func(spec *authorizationv1.SubjectAccessReviewSpec) bool {
		if spec.User == "flood" {
			waiting <- struct{}{}
			<-release
		}
		return true
	}}
	r := newAccessReviewer(hub)
	ended := make(chan error, maxReviews)
	for i := range maxReviews / 5 {
		go func() { ended <- r.check(t.Context(), logOf(&user.DefaultInfo{Name: "flood"}, fmt.Sprint("job-", i))) }()
		<-waiting
	}
	err := r.check(t.Context(), logOf(&user.DefaultInfo{Name: "flood"}, "job"))
	if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), `user "flood" has 10 access reviews open here`) {
		t.Errorf("error %v", err)
	}
	if err := r.check(t.Context(), logOf(&user.DefaultInfo{Name: "reader"}, "job")); err != nil {
		t.Errorf("another user: %v", err)
	}
	close(release)
	for range maxReviews / 5 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// nobody is authorized but by what a test lets through.
type nobody struct{ but string }

func (n nobody) check(_ context.Context, req *request) error {
	if req.user.GetName() == n.but {
		return nil
	}
	return forbidden(req)
}

// A user without rights takes no place, neither for a moment nor by many requests at once.
func TestWhoHasNoRightTakesNoPlace(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Streams, o.Requests = 1, 1 })
	w.authorize = nobody{but: "user-reader"}
	w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "a line") })
	as := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-Remote-User", name) }
	}
	for _, what := range []string{"log", "mirror"} {
		ended := make(chan error, 20)
		for range 20 {
			go func() {
				got, err := w.get(what, as("stranger"))
				if got.code != http.StatusForbidden {
					err = errors.Join(err, fmt.Errorf("code %d: %s", got.code, got.content))
				}
				ended <- err
			}()
			if got, err := w.get(what, as("reader")); err != nil || got.code != http.StatusOK {
				t.Errorf("%s: %d %s, %v", what, got.code, got.content, err)
			}
		}
		for range 20 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}

// A namespace whose users take all the streams that they can get leaves room for another.
func TestANamespaceLeavesStreamsToOthers(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Streams, o.StreamsPerUser = 25, 2 })
	w.worker.on(logPath, func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(out, "first")
		_ = http.NewResponseController(out).Flush()
		<-r.Context().Done()
	})
	open := func(name, namespace string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.api.URL+apiRoot+"/namespaces/"+namespace+"/jobs/job/log?follow=true&pod=job-a", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Remote-User", name)
		answer, err := w.api.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer.StatusCode
	}
	var codes []int
	for i := range 12 { // two streams each of six users
		codes = append(codes, open(fmt.Sprint("greedy-", i/2), namespace))
	}
	if got := strings.Count(fmt.Sprint(codes), "200"); got != 5 {
		t.Errorf("of 25 places, one namespace has %d: %v", got, codes)
	}
	// The other namespace has no Job, and so no log: what counts is that it isn't refused for want of
	// a place.
	if code := open("modest", "other"); code != http.StatusNotFound {
		t.Errorf("another namespace: %d", code)
	}
}
