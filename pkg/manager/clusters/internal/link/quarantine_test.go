package link

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
)

// newLink is a Link whose probes are far between.
func newLink(t *testing.T) *Link {
	t.Helper()
	l, err := New(Options{
		Worker: "w1", QPS: 100, Burst: 100, ProbeInterval: time.Hour, ProbeTimeout: 10 * time.Second,
		RetryDelay: time.Second, MaxBackoff: time.Minute, RequestTimeout: 10 * time.Second, DialTimeout: 10 * time.Second,
		Clock: clock.RealClock{}, Wake: func() {},
		Mismatch: func(types.UID) (reason, message string) { return "", "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// connectedLink is a cluster, and a Link to it.
func connectedLink(t *testing.T) (*clustertest.Cluster, *Link) {
	t.Helper()
	server := clustertest.NewServer(func() {})
	t.Cleanup(server.Close)
	c, l := server.Add("c", "uid", "t"), newLink(t)
	l.Lead(To(c.Kubeconfig("t")))
	l.Keep(t.Context())
	return c, l
}

// TestRenewedTokensEndNoQuarantine has a worker that is in quarantine get new credentials, as one
// does that has its token renewed all the time: nothing is sent to it.
func TestRenewedTokensEndNoQuarantine(t *testing.T) {
	server := clustertest.NewServer(func() {})
	t.Cleanup(server.Close)
	c := server.Add("c", "uid", "t")
	l := newLink(t)
	l.Lead(To(c.Kubeconfig("t")))
	cause := &BoundError{Reason: v1alpha1.ReasonAnswerTooLarge}
	l.replaceTarget()
	l.Break(cause)
	l.Keep(t.Context())
	for _, token := range []string{"t1", "t2", "t"} {
		before := l.transport.Load()
		l.Lead(To(c.Kubeconfig(token)))
		l.Keep(t.Context())
		if pause := l.Due(); pause < maxQuarantine/2-time.Minute || c.Requests("get kube-system") > 0 || l.Observation().Reason != cause.Reason {
			t.Errorf("%d probes are sent, the next after %s: %+v", c.Requests("get kube-system"), pause, l.Observation())
		}
		if l.transport.Load() == before {
			t.Error("the credentials aren't used")
		}
	}
	another := server.Add("d", "uid", "t")
	l.Lead(To(another.Kubeconfig("t")))
	if l.Keep(t.Context()); another.Requests("get kube-system") == 0 {
		t.Error("another server isn't tried")
	}
}

// TestAnErrorPageIsNoQuarantine: of a load balancer whose API server doesn't answer, the status is
// told, to whomever it's sent.
func TestAnErrorPageIsNoQuarantine(t *testing.T) {
	for _, repeated := range []int{60, 1 << 20} {
		page := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			for range repeated {
				if _, err := io.WriteString(w, styled); err != nil {
					return // it isn't read any more
				}
			}
		}
		c, l := connectedLink(t)
		for request, send := range map[string]func() error{
			"get j": func() error {
				return l.Client().Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "j"}, &batchv1.Job{})
			},
			"watch jobs": func() error {
				_, err := l.probes.Get().AbsPath("/apis/batch/v1/jobs").Param("watch", "true").Watch(t.Context())
				return err
			},
		} {
			c.Answer(request, page)
			var answered apierrors.APIStatus
			if err := send(); !errors.As(err, &answered) || answered.Status().Code != http.StatusBadGateway {
				t.Errorf("%s: %v", request, err)
			}
		}
		c.Answer("get kube-system", page)
		l.due = l.now()
		l.Keep(t.Context())
		if o := l.Observation(); o.Reason != v1alpha1.ReasonUnreachable || !strings.Contains(o.Message, "the API server answers 502") {
			t.Errorf("a probe: %+v", o)
		}
		if l.broken.Load() != nil || l.quarantine.count > 0 {
			t.Errorf("a bound is broken: %+v", l.broken.Load())
		}
	}
}

func TestQuarantinesGrow(t *testing.T) {
	var q quarantine
	now, cause := time.Unix(0, 0), &BoundError{}
	for i, want := range []time.Duration{10, 20, 40, 80, 150, 150} {
		q.begin(cause, now, 10*time.Second)
		if q.opens.Sub(now) != want*time.Second || q.ends.Sub(now) != 2*want*time.Second {
			t.Errorf("quarantine %d opens after %s, want %ds", i, q.opens.Sub(now), want)
		}
		now = q.ends
	}
	now = now.Add(maxQuarantine + time.Second)
	if q.begin(cause, now, 10*time.Second); q.opens.Sub(now) != 10*time.Second {
		t.Errorf("after a good time it opens after %s", q.opens.Sub(now))
	}
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 1, 1: 1, 2: 2, 3: 4, 6: 30, 60: 30} {
		if got := backoff(time.Second, 30*time.Second, failures); got != want*time.Second {
			t.Errorf("after %d failures: %v, want %v", failures, got, want*time.Second)
		}
	}
}

func TestSameServer(t *testing.T) {
	edit := func(change func(*clientcmdapi.Config)) *Target { return To(kubeconfig(t, change)) }
	first := To(kubeconfig(t))
	for name, row := range map[string]struct {
		other *Target
		same  bool
	}{
		"another token": {edit(func(c *clientcmdapi.Config) {
			for _, user := range c.AuthInfos {
				user.Token = "another"
			}
		}), true},
		"another server": {edit(func(c *clientcmdapi.Config) {
			for _, cluster := range c.Clusters {
				cluster.Server = "https://another"
			}
		}), false},
		"another CA": {edit(func(c *clientcmdapi.Config) {
			for _, cluster := range c.Clusters {
				cluster.CertificateAuthorityData = []byte("another")
			}
		}), false},
		"rubbish": {To([]byte("rubbish")), false},
		"none":    {Nowhere("", ""), false},
		"nil":     {nil, false},
	} {
		if got := first.sameServer(row.other); got != row.same {
			t.Errorf("%s: same server: %t", name, got)
		}
	}
}
