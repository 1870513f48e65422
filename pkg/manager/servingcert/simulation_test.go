package servingcert

import (
	"context"
	"crypto/x509"
	"math/rand/v2"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// world is a hub with two replicas, and an API server that is late to notice another bundle.
type world struct {
	t        *testing.T
	hub      client.Client
	now      time.Time
	replicas []*replica
	noticed  []seen // what was in the webhook configuration, and when
}

type replica struct {
	*reconciler
	clock *clocktesting.FakePassiveClock
	due   time.Time
}

type seen struct {
	at     time.Time
	bundle []byte
}

func newWorld(t *testing.T) *world {
	scheme := newScheme()
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cert"}, Data: map[string][]byte{"note": []byte("kept")}},
		&admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hook"},
			Webhooks:   []admissionv1.MutatingWebhook{{Name: "a.example.org"}, {Name: "b.example.org"}},
		}).Build()
	w := &world{t: t, hub: hub, now: start}
	for range 2 {
		k, err := New(Options{
			Namespace: "ns", SecretName: "cert", DNSNames: names, Lifetime: 90 * time.Hour, Settle: time.Hour,
			Targets: []Target{MutatingWebhooks("hook"), APIService("absent")},
		})
		if err != nil {
			t.Fatal(err)
		}
		clock := clocktesting.NewFakePassiveClock(start)
		k.clock = clock
		w.replicas = append(w.replicas, &replica{&reconciler{Rotator: k, cached: hub, writer: hub}, clock, start})
	}
	return w
}

// step has one replica reconcile now. What it writes is an event for both, a minute later.
func (w *world) step(r *replica) {
	before := w.versions()
	r.clock.SetTime(w.now)
	result, err := r.Reconcile(context.Background(), ctrl.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	if result.RequeueAfter > 0 {
		r.due = w.now.Add(result.RequeueAfter)
	}
	if w.versions() != before {
		for _, each := range w.replicas {
			each.due = w.now.Add(time.Minute)
		}
	}
	if bundle := w.bundle(); len(w.noticed) == 0 || string(w.noticed[len(w.noticed)-1].bundle) != string(bundle) {
		w.noticed = append(w.noticed, seen{w.now, bundle})
	}
}

func (w *world) versions() string {
	var secret corev1.Secret
	var hook admissionv1.MutatingWebhookConfiguration
	for name, o := range map[string]client.Object{"cert": &secret, "hook": &hook} {
		key := client.ObjectKey{Name: name}
		if name == "cert" {
			key.Namespace = "ns"
		}
		if err := w.hub.Get(context.Background(), key, o); err != nil {
			w.t.Fatal(err)
		}
	}
	return secret.ResourceVersion + "/" + hook.ResourceVersion
}

func (w *world) bundle() []byte {
	var hook admissionv1.MutatingWebhookConfiguration
	if err := w.hub.Get(context.Background(), client.ObjectKey{Name: "hook"}, &hook); err != nil {
		w.t.Fatal(err)
	}
	if string(hook.Webhooks[0].ClientConfig.CABundle) != string(hook.Webhooks[1].ClientConfig.CABundle) {
		w.t.Error("the webhooks of one configuration trust different certificates")
	}
	return hook.Webhooks[0].ClientConfig.CABundle
}

// check has an API server that's up to half an hour behind call a replica.
func (w *world) check(r *replica) {
	cert, err := r.GetCertificate(nil)
	if err != nil {
		w.t.Fatalf("%s: %v", w.now, err)
	}
	for i, s := range w.noticed {
		outdated := i+1 < len(w.noticed) && w.now.Sub(w.noticed[i+1].at) > 30*time.Minute
		if outdated || len(s.bundle) == 0 {
			continue
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(s.bundle)
		if _, err := cert.Leaf.Verify(x509.VerifyOptions{DNSName: names[0], Roots: pool, CurrentTime: w.now}); err != nil {
			w.t.Fatalf("%s: an API server that trusts what it saw at %s: %v", w.now, s.at, err)
		}
	}
}

// Over two dozen exchanges, whichever replica comes first, no call fails.
func TestNoCallFails(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w := newWorld(t)
	for range 2 {
		for _, r := range w.replicas {
			w.step(r)
		}
	}
	for w.now.Before(start.Add(60 * 24 * time.Hour)) {
		w.now = w.now.Add(time.Duration(1+random.IntN(20)) * time.Minute)
		for _, i := range random.Perm(len(w.replicas)) {
			if r := w.replicas[i]; !r.due.After(w.now) {
				w.step(r)
			}
			w.check(w.replicas[i])
		}
	}
	var secret corev1.Secret
	if err := w.hub.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "cert"}, &secret); err != nil {
		t.Fatal(err)
	}
	if generations, _ := parseSecret(secret.Data); len(generations) == 0 || len(generations) > 2 {
		t.Errorf("%d generations are left", len(generations))
	}
	if string(secret.Data["note"]) != "kept" {
		t.Error("an entry that isn't ours was touched")
	}
	if len(w.noticed) < 40 {
		t.Errorf("the bundle changed only %d times in 60 days of certificates of 90 hours", len(w.noticed))
	}
}

func TestRotatorBeforeTheFirstCertificate(t *testing.T) {
	r := newWorld(t).replicas[0]
	if err := r.Ready(nil); err == nil {
		t.Error("ready without a certificate")
	}
}
