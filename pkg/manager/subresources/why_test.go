package subresources

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// explains answers for Jobs by their names.
type explains struct{ asked atomic.Int32 }

func (e *explains) Explain(ctx context.Context, job types.NamespacedName) (*v1alpha1.PlacementExplanation, error) {
	e.asked.Add(1)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if job.Name == "ended" {
		return nil, apierrors.NewBadRequest("Job \"ended\" has ended")
	}
	return &v1alpha1.PlacementExplanation{Namespace: job.Namespace, Name: job.Name, Message: "0/1 clusters available"}, nil
}

// issue makes a serving certificate, as package servingcert does.
func issue(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "jobferry"}, DNSNames: []string{"jobferry-subresources.system.svc"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	content, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(content)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key, Leaf: leaf}
}

// replica of the manager, with a certificate.
type replica struct {
	*leader
	explains *explains
	server   *httptest.Server
}

// newReplica serves what other replicas may ask.
func newReplica(t *testing.T, of *hub, certificate tls.Certificate, leads bool) *replica {
	t.Helper()
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	r := &replica{explains: &explains{}}
	r.leader = newLeader(of, elected, Options{
		Explainer: r.explains, Namespace: "system",
		Endpoint: Endpoint{Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }},
	}.withDefaults())
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+peerPath, r.servePeer)
	r.server = httptest.NewUnstartedServer(mux)
	r.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert}
	r.server.StartTLS()
	t.Cleanup(r.server.Close)
	return r
}

func (r *replica) address(t *testing.T) netip.AddrPort {
	t.Helper()
	address, err := netip.ParseAddrPort(r.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// elect has the hub's Lease name a leader.
func elect(of *hub, holder string, labels map[string]string) {
	of.put(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "jobferry-manager", Labels: labels},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder)},
	})
}

var aJob = types.NamespacedName{Namespace: namespace, Name: "job"}

// Whichever replica is asked, the leader answers, also with its errors.
func TestWhyIsAnsweredByTheLeader(t *testing.T) {
	of, certificate := &hub{objects: map[string]client.Object{}}, issue(t)
	leads, follows := newReplica(t, of, certificate, true), newReplica(t, of, certificate, false)
	elect(of, "leads", LeaseLabels(leads.address(t)))
	for _, r := range []*replica{leads, follows} {
		got, err := r.Explain(t.Context(), aJob)
		if err != nil || got.Name != "job" || got.Message == "" {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = r.Explain(t.Context(), types.NamespacedName{Namespace: namespace, Name: "ended"})
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("%v", err)
		}
	}
	if leads.explains.asked.Load() != 4 || follows.explains.asked.Load() != 0 {
		t.Errorf("the leader explained %d, the other %d", leads.explains.asked.Load(), follows.explains.asked.Load())
	}
}

// While there is no leader that can be asked, the user learns why, and that it can be tried again.
func TestWhyWithoutALeader(t *testing.T) {
	certificate := issue(t)
	for name, test := range map[string]struct {
		lead func(*testing.T, *hub)
		says string
	}{
		"never elected":    {func(*testing.T, *hub) {}, "no replica of the manager leads now"},
		"released":         {func(_ *testing.T, of *hub) { elect(of, "", nil) }, "no replica of the manager leads now"},
		"an older release": {func(_ *testing.T, of *hub) { elect(of, "old", nil) }, "doesn't say where it can be reached"},
		"leads no more": {func(t *testing.T, of *hub) {
			elect(of, "other", LeaseLabels(newReplica(t, of, certificate, false).address(t)))
		}, "doesn't lead any more"},
		"another certificate": {func(t *testing.T, of *hub) {
			elect(of, "other", LeaseLabels(newReplica(t, of, issue(t), true).address(t)))
		}, "doesn't answer"},
		"hangs": {func(t *testing.T, of *hub) {
			elect(of, "hangs", LeaseLabels(hanging(t)))
		}, "doesn't answer: "},
		"gone": {func(t *testing.T, of *hub) {
			gone := newReplica(t, of, certificate, true)
			gone.server.Close()
			elect(of, "gone", LeaseLabels(gone.address(t)))
		}, "doesn't answer"},
		"no certificate yet": {func(t *testing.T, of *hub) {
			elect(of, "other", LeaseLabels(newReplica(t, of, certificate, true).address(t)))
		}, "doesn't answer"},
	} {
		t.Run(name, func(t *testing.T) {
			of := &hub{objects: map[string]client.Object{}}
			test.lead(t, of)
			asks := newReplica(t, of, certificate, false)
			if name == "hangs" {
				asks.dialTimeout = 10 * time.Millisecond
			}
			if name == "no certificate yet" {
				asks.certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none yet") }
			}
			_, err := asks.Explain(t.Context(), aJob)
			if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

// hanging is an address at which connections are made, and nothing is answered.
func hanging(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return netip.MustParseAddrPort(listener.Addr().String())
}

// An explanation that takes too long counts, whoever was too slow: it isn't as if nobody had been
// there.
func TestWhyTakesTooLong(t *testing.T) {
	of := &hub{objects: map[string]client.Object{}}
	elect(of, "hangs", LeaseLabels(hanging(t)))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := newReplica(t, of, issue(t), false).Explain(ctx, aJob); !apierrors.IsTimeout(err) {
		t.Error(err)
	}
}

// Only who has the key of the replicas is answered: nobody without a certificate, and nobody with
// another.
func TestOnlyReplicasAskTheLeader(t *testing.T) {
	of, certificate := &hub{objects: map[string]client.Object{}}, issue(t)
	leads := newReplica(t, of, certificate, true)
	trusted := x509.NewCertPool()
	trusted.AddCert(leads.server.Certificate())
	for name, test := range map[string]struct {
		certificates []tls.Certificate
		code         int
	}{
		"a replica": {[]tls.Certificate{certificate}, http.StatusOK},
		"nobody":    {nil, http.StatusUnauthorized},
		"another":   {[]tls.Certificate{issue(t)}, http.StatusUnauthorized},
	} {
		web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			RootCAs: trusted, ServerName: "jobferry-subresources.system.svc", Certificates: test.certificates,
		}}}
		answer, err := web.Get(leads.server.URL + "/leader/namespaces/team/jobs/job/why")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != test.code {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, test.code)
		}
	}
}

// A label has an address of either family, and nothing else is taken for one.
func TestLeaseLabels(t *testing.T) {
	for _, text := range []string{"10.1.2.3:6443", "[fd00::1]:6443", "[::1]:1"} {
		labels := LeaseLabels(netip.MustParseAddrPort(text))
		got, err := leaderAddress(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
		if err != nil || netip.MustParseAddrPort(got) != netip.MustParseAddrPort(text) {
			t.Errorf("%s: %v is %s, %v", text, labels, got, err)
		}
	}
	for _, value := range []string{"", "10.1.2.3", "10.1.2.3_", "_6443", "evil.example_443", "10.1.2.3_99999"} {
		if got, err := leaderAddress(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelAddress: value}}}); err == nil {
			t.Errorf("%q is %s", value, got)
		}
	}
}

// A server is reached where it listens, or else where the process reaches the hub.
func TestReachable(t *testing.T) {
	for bind, want := range map[string]string{"10.1.2.3:6443": "10.1.2.3:6443", ":6443": "127.0.0.1:6443", "0.0.0.0:6443": "127.0.0.1:6443"} {
		got, err := Reachable(t.Context(), bind, "https://127.0.0.1:8443")
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", bind, got, err, want)
		}
	}
	if got, err := Reachable(t.Context(), ":6443", "https://127.0.0.1"); err != nil || got.String() != "127.0.0.1:6443" {
		t.Errorf("without a port: %v, %v", got, err)
	}
	if got, err := Reachable(t.Context(), "nonsense", "https://127.0.0.1"); err == nil {
		t.Errorf("%v", got)
	}
}

// An explanation is for users who have the right to it.
func TestWhy(t *testing.T) {
	w := newWorld(t)
	got, err := w.get("why")
	var e v1alpha1.PlacementExplanation
	if err != nil || got.code != http.StatusOK || json.Unmarshal([]byte(got.content), &e) != nil || e.Name != "job" {
		t.Fatalf("%+v, %v", got, err)
	}
	w.refused("why?worker=w", http.StatusBadRequest, "unknown parameter")
	w.authorize = nobody{}
	w.refused("why", http.StatusForbidden, "verb get on jobs/why")
}

// Whoever goes away doesn't end the explanation: its cost counts all the same. The end of the
// replica does end it.
func TestWhyForOneWhoIsGone(t *testing.T) {
	gone, goes := context.WithCancel(t.Context())
	goes()
	for name, stopping := range map[string]context.Context{"serves": t.Context(), "stops": gone} {
		h := &handler{
			backends: backends{leader: &leader{Explainer: &explains{}, leads: closed()}},
			options:  Options{}.withDefaults(), pace: newPace(clocktesting.NewFakePassiveClock(time.Now()), time.Second), stopping: stopping,
		}
		r := httptest.NewRequestWithContext(gone, http.MethodGet, "/", nil)
		err := h.why(&responseWriter{ResponseWriter: httptest.NewRecorder()}, r, &request{key: aJob})
		if (err == nil) != (name == "serves") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A namespace has one explanation at a time, and a pause after it that's as long as the explanation
// was expensive. There's none if nobody began with it.
func TestPace(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	p := newPace(clock, 15*time.Second)
	begin := func(namespace string, allowed bool) func(error) {
		t.Helper()
		done, err := p.begin(namespace)
		if allowed != (err == nil) || err != nil && !apierrors.IsTooManyRequests(err) {
			t.Errorf("%s: %v", namespace, err)
		}
		return done
	}
	done := begin("a", true)
	begin("a", false)
	begin("b", true)(nil)
	clock.Step(100 * time.Millisecond)
	done(nil)
	begin("a", false)
	clock.Step(1000 * time.Millisecond)
	begin("a", false)
	clock.Step(101 * time.Millisecond)
	done = begin("a", true)
	clock.Step(5 * time.Second)
	done(unavailable("no replica leads"))
	done = begin("a", true)
	clock.Step(time.Second)
	done(apierrors.NewTimeoutError("too long", 0))
	clock.Step(11 * time.Second)
	begin("a", false)
	clock.Step(time.Millisecond)
	begin("a", true)
	clock.Step(16 * time.Second) // the explanation has failed badly
	begin("a", true)
}
