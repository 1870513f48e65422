package feed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// failing answers each request for a watch with an error, as its answer or in an event, and counts
// them.
type failing struct {
	watches atomic.Int32
	reason  metav1.StatusReason
	code    int
	inEvent bool
}

func (f *failing) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := func(code int, body string) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Request: req, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{"Content-Type": {"application/json"}},
		}, nil
	}
	f.watches.Add(1)
	status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, f.reason, f.code)
	if f.inEvent {
		return answer(http.StatusOK, `{"type":"ERROR","object":`+status+`}`)
	}
	return answer(f.code, status)
}

// TestWatchesThatTheAPIServerAnswersWithAnError: a watch is opened less and less often, the failure
// is known since its begin, and an informer that is stopped meanwhile ends at once.
func TestWatchesThatTheAPIServerAnswersWithAnError(t *testing.T) {
	for name, server := range map[string]*failing{
		"it's too busy":            {reason: metav1.StatusReasonTooManyRequests, code: 429},
		"an event: it's too busy":  {reason: metav1.StatusReasonTooManyRequests, code: 429, inEvent: true},
		"an event: internal error": {reason: metav1.StatusReasonInternalError, code: 500, inEvent: true},
		"an event: it has expired": {reason: metav1.StatusReasonExpired, code: 410, inEvent: true},
		"an event: no reason":      {inEvent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testFailingWatches(t, server) })
		})
	}
}

func testFailingWatches(t *testing.T, server *failing) {
	t.Helper()
	i := nodeInformer(t, server)
	i.start(t.Context())
	<-time.After(10 * time.Minute)
	synctest.Wait()
	if n := server.watches.Load(); n < 15 || n > 80 {
		t.Errorf("%d watches in 10 minutes", n)
	}
	if f := i.lastFailure(); f == nil || apierrors.ReasonForError(f.err) != server.reason || time.Since(f.since) < 9*time.Minute {
		t.Errorf("the failure is %+v", f)
	}
	stopped := time.Now()
	if i.stop(); time.Since(stopped) > 0 {
		t.Errorf("it ends after %s", time.Since(stopped))
	}
}

// late sends the error of each watch when that has gone on for a bit.
type late struct {
	failing
	after time.Duration
}

func (l *late) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := l.failing.RoundTrip(req)
	event := res.Body
	body, w := io.Pipe()
	sent := time.AfterFunc(l.after, func() { _, _ = io.Copy(w, event) })
	context.AfterFunc(req.Context(), func() {
		sent.Stop()
		_ = w.Close()
	})
	res.Body = body
	return res, err
}

// TestWatchesThatFailLater: only a watch that goes on for long makes the pause after the next error
// a short one.
func TestWatchesThatFailLater(t *testing.T) {
	for _, c := range []struct {
		after       time.Duration
		least, most int32
	}{{2 * time.Second, 10, 60}, {14 * time.Second, 10, 30}, {16 * time.Second, 34, 40}} {
		t.Run(c.after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &late{failing{reason: metav1.StatusReasonExpired, code: 410, inEvent: true}, c.after}
				i := nodeInformer(t, server)
				i.start(t.Context())
				<-time.After(10 * time.Minute)
				synctest.Wait()
				if n := server.watches.Load(); n < c.least || n > c.most {
					t.Errorf("%d watches in 10 minutes", n)
				}
				i.stop()
			})
		})
	}
}

// expiring answers a watch with an ERROR event that its resourceVersion has expired, once, and then
// with nothing.
type expiring struct {
	failing
}

func (e *expiring) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := e.failing.RoundTrip(req)
	if e.watches.Load() > 1 {
		_ = res.Body.Close()
		body, w := io.Pipe()
		context.AfterFunc(req.Context(), func() { _ = w.Close() })
		res.Body = body
	}
	return res, err
}

// TestAnExpiredVersionIsNoFailure: after a long outage, an honest API server says so once.
func TestAnExpiredVersionIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &expiring{failing: failing{reason: metav1.StatusReasonExpired, code: 410, inEvent: true}}
		i := nodeInformer(t, server)
		i.start(t.Context())
		<-time.After(time.Minute)
		synctest.Wait()
		if f := i.lastFailure(); f != nil || server.watches.Load() != 2 {
			t.Errorf("%+v, %d watches", f, server.watches.Load())
		}
		i.stop()
	})
}

// nodeInformer lists no nodes, and watches them at a server.
func nodeInformer(t *testing.T, server http.RoundTripper) *informer {
	t.Helper()
	l, err := link.New(link.Options{QPS: 1, Burst: 1, Clock: clock.RealClock{}, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := rest.RESTClientForConfigAndClient(&rest.Config{Host: link.AnyHost, APIPath: "/api", QPS: -1, ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}}, &http.Client{Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	seen := &seenNodes{nodes: map[string]*corev1.Node{}}
	into := fanOut[string, *corev1.Node]{(*corev1.Node).GetName, []store[string, *corev1.Node]{seen}, func() {}}
	return newInformer(informerSource{
		link: l, api: api, resource: "nodes", narrow: func(*metav1.ListOptions) {}, intake: nodeIntake(),
		sink: func(from cache.ListerWatcher, intake *intake, onEnd cache.WatchErrorHandlerWithContext) (runner, synced) {
			lw, _ := from.(*cache.ListWatch)
			lw.ListWithContextFunc = func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
			}
			return into.sink(from, intake, onEnd)
		},
	}, func() {})
}
