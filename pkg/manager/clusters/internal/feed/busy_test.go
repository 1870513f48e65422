package feed

import (
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
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// busy answers each request with 429, as its answer or in it, and counts them.
type busy struct {
	requests atomic.Int32
	inEvent  bool
}

func (b *busy) RoundTrip(req *http.Request) (*http.Response, error) {
	b.requests.Add(1)
	if b.inEvent {
		event := `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}}`
		return &http.Response{
			StatusCode: http.StatusOK, Request: req, Body: io.NopCloser(strings.NewReader(event)), Header: http.Header{"Content-Type": {"application/json"}},
		}, nil
	}
	return &http.Response{StatusCode: http.StatusTooManyRequests, Request: req, Body: http.NoBody, Header: http.Header{}}, nil
}

// TestAnAPIServerThatIsTooBusy: a watch is opened less and less often, the failure is known, and an
// informer that is stopped meanwhile ends at once.
func TestAnAPIServerThatIsTooBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { testTooBusy(t, &busy{}) })
}

// TestAWatchThatSaysTooBusy is the same of one that is opened, and says so then, each time.
func TestAWatchThatSaysTooBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { testTooBusy(t, &busy{inEvent: true}) })
}

func testTooBusy(t *testing.T, server *busy) {
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
	i := newInformer(informerSource{
		link: l, api: api, resource: "nodes", narrow: func(*metav1.ListOptions) {}, intake: nodeIntake(),
		sink: fanOut[string, *corev1.Node]{(*corev1.Node).GetName, []store[string, *corev1.Node]{seen}, func() {}}.sink,
	}, func() {})
	i.start(t.Context())
	<-time.After(10 * time.Minute)
	synctest.Wait()
	if n := server.requests.Load(); n < 20 || n > 80 {
		t.Errorf("%d requests in 10 minutes", n)
	}
	if f := i.lastFailure(); f == nil || !apierrors.IsTooManyRequests(f.err) || !server.inEvent && time.Since(f.since) < 9*time.Minute {
		t.Errorf("the failure is %+v", f)
	}
	stopped := time.Now()
	if i.stop(); time.Since(stopped) > 0 {
		t.Errorf("it ends after %s", time.Since(stopped))
	}
}
