package tokens

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

var west = types.NamespacedName{Namespace: "jobferry-system", Name: "west"}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// aToken is the token of an account with a UID.
func aToken(account string, uid types.UID, issued time.Time, lifetime time.Duration) string {
	payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"kubernetes.io":{"namespace":"jobferry-system","serviceaccount":{"name":%q,"uid":%q}}}`,
		issued.Unix(), issued.Add(lifetime).Unix(), account, uid)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func aSecret(token string, edits ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "jobferry-system", Name: "west", Annotations: map[string]string{v1alpha1.AnnotationTokenDuration: "1h"}},
		Data: map[string][]byte{v1alpha1.KubeconfigKey: []byte("current-context: a\nclusters: [{name: c, cluster: {server: https://x}}]\n" +
			"users: [{name: u, user: {token: " + token + "}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n")},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func TestDecide(t *testing.T) {
	hour := aToken("hub", "1", noon, time.Hour)
	for name, row := range map[string]struct {
		secret  *corev1.Secret
		renewed bool
	}{
		"ours":                {aSecret(hour), true},
		"without a lifetime":  {aSecret(hour, func(s *corev1.Secret) { s.Annotations = nil }), false},
		"with rubbish for it": {aSecret(hour, func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationTokenDuration] = "soon" }), false},
		"with a negative one": {aSecret(hour, func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationTokenDuration] = "-1h" }), false},
		"of another kind":     {aSecret("opaque"), false},
		"no kubeconfig":       {aSecret(hour, func(s *corev1.Secret) { s.Data = nil }), false},
		"with a client certificate": {aSecret(hour, func(s *corev1.Secret) {
			s.Data[v1alpha1.KubeconfigKey] = []byte("current-context: a\nusers: [{name: u, user: {client-certificate-data: eA==}}]\ncontexts: [{name: a, context: {user: u}}]\n")
		}), false},
		"being deleted": {aSecret(hour, func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: noon} }), false},
	} {
		got := decide(row.secret, defaultFraction)
		if (got != nil) != row.renewed {
			t.Errorf("%s: %+v", name, got)
		}
		if got != nil && (got.at.Before(noon.Add(30*time.Minute)) || got.at.After(noon.Add(40*time.Minute)) || got.lifetime != time.Hour) {
			t.Errorf("%s: renewed at %s", name, got.at)
		}
	}
}

func TestRetry(t *testing.T) {
	token, _ := boundtoken.Parse(aToken("hub", "1", noon, 720*time.Hour))
	for left, want := range map[time.Duration]time.Duration{
		300 * time.Hour: 10 * time.Minute, time.Hour: 3 * time.Minute, time.Minute: 10 * time.Second, -time.Hour: 10 * time.Second,
	} {
		if got := retry(token, token.Expires.Add(-left)); got != want {
			t.Errorf("%s left: %s", left, got)
		}
	}
}

// world is a hub with one registration, and its worker.
type world struct {
	t      *testing.T
	clock  *testingclock.FakePassiveClock
	hub    client.Client
	answer func(context.Context) (string, error)
	known  bool

	mu    sync.Mutex // held by who asks and reports: the workers are asked side by side
	asked []authenticationv1.TokenRequestSpec
	said  metav1.Condition
	*renewer
}

func (w *world) of(secret string) (string, client.Client, bool) {
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{SubResourceCreate: func(
		ctx context.Context, _ client.Client, sub string, object, body client.Object, _ ...client.SubResourceCreateOption,
	) error {
		if sub != "token" || object.GetName() != "hub" || object.GetNamespace() != "jobferry-system" {
			w.t.Errorf("asked %s of %s", sub, object.GetName())
		}
		request := body.(*authenticationv1.TokenRequest)
		w.mu.Lock()
		w.asked = append(w.asked, request.Spec)
		w.mu.Unlock()
		token, err := w.answer(ctx)
		request.Status.Token = token
		return err
	}})
	return secret, c, w.known
}

func (w *world) Report(_ string, c metav1.Condition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = c
}

func newWorld(t *testing.T, secret *corev1.Secret) *world {
	w := &world{t: t, clock: testingclock.NewFakePassiveClock(noon), hub: fake.NewClientBuilder().WithObjects(secret).Build(), known: true}
	w.answer = func(context.Context) (string, error) { return aToken("hub", "1", w.clock.Now(), time.Hour), nil }
	w.renewer = newRenewer(w.hub, w, Options{Clock: w.clock})
	return w
}

// sync reconciles the Secret, and once more when the worker has answered.
func (w *world) sync() reconcile.Result {
	w.t.Helper()
	result := w.reconcile(west)
	if result == (reconcile.Result{}) {
		<-w.answered
		result = w.reconcile(west)
	}
	return result
}

func (w *world) reconcile(secret types.NamespacedName) reconcile.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: secret})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func (w *world) token() string {
	w.t.Helper()
	var s corev1.Secret
	if err := w.hub.Get(w.t.Context(), west, &s); err != nil {
		w.t.Fatal(err)
	}
	return boundtoken.Of(s.Data[v1alpha1.KubeconfigKey])
}

func (w *world) step(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// A token is renewed in time, and nobody is asked before.
func TestRenewed(t *testing.T) {
	first := aToken("hub", "1", noon, time.Hour)
	w := newWorld(t, aSecret(first))
	if next := w.sync().RequeueAfter; next < 30*time.Minute || next > 40*time.Minute || len(w.asked) != 0 {
		t.Fatalf("after %s, asked %v", next, w.asked)
	}
	w.step(41 * time.Minute)
	w.sync()
	if len(w.asked) != 1 || *w.asked[0].ExpirationSeconds != 3600 {
		t.Fatalf("asked %+v", w.asked)
	}
	if got, _ := boundtoken.Parse(w.token()); !got.Expires.Equal(noon.Add(101 * time.Minute)) {
		t.Errorf("it expires %s", got.Expires)
	}
	if w.sync(); len(w.asked) != 1 || w.said.Status != metav1.ConditionTrue || !strings.Contains(w.said.Message, "13:41:00") {
		t.Errorf("asked %d times, says %+v", len(w.asked), w.said)
	}
}

// What a worker may answer: the token stays, the condition says so, and the worker is asked again
// later.
func TestNotRenewed(t *testing.T) {
	for name, row := range map[string]struct {
		answer string
		err    error
		says   string
	}{
		"forbidden":          {"", apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, "hub", errors.New("no")), "register west again"},
		"conflict":           {"", apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "s", errors.New("the UID")), "tries again"},
		"no token":           {"", nil, "something else"},
		"rubbish":            {strings.Repeat("x", 1<<20), nil, "something else"},
		"of another account": {aToken("other", "1", noon.Add(45*time.Minute), 9*time.Hour), nil, "something else"},
		"of a later account": {aToken("hub", "2", noon.Add(45*time.Minute), 9*time.Hour), nil, "something else"},
		"expired":            {aToken("hub", "1", noon.Add(31*time.Minute), 14*time.Minute+minLeft-time.Second), nil, "set the clocks"},
		"issued long ago":    {aToken("hub", "1", noon.Add(-8760*time.Hour), 8761*time.Hour), nil, "set the clocks"},
		"issued later":       {aToken("hub", "1", noon.Add(2*time.Hour), 9*time.Hour), nil, "set the clocks"},
		"for a short time":   {aToken("hub", "1", noon.Add(45*time.Minute), minLifetime-time.Second), nil, "a token for 9m59s"},
	} {
		t.Run(name, func(t *testing.T) {
			first := aToken("hub", "1", noon, time.Hour)
			w := newWorld(t, aSecret(first))
			w.answer = func(context.Context) (string, error) { return row.answer, row.err }
			w.step(45 * time.Minute)
			next := w.sync().RequeueAfter
			if w.token() != first || next != 45*time.Second || w.said.Status != metav1.ConditionFalse || !strings.Contains(w.said.Message, row.says) ||
				!strings.Contains(w.said.Message, "13:00:00") {
				t.Errorf("again after %s, says %+v", next, w.said)
			}
		})
	}
}

// A worker that issues tokens which are due already, or any that aren't taken, isn't asked all the
// time, and few of its tokens become changes of the Secret.
func TestWorkerWithAWrongClock(t *testing.T) {
	for name, row := range map[string]struct {
		issued   time.Duration // before now
		lifetime time.Duration
		pause    time.Duration
		written  bool
	}{
		"as far off as may be": {maxSkew, maxSkew + minLeft, 5 * time.Minute, true},
		"a year":               {8760 * time.Hour, 8761 * time.Hour, minRetry, false},
	} {
		t.Run(name, func(t *testing.T) {
			first := aToken("hub", "1", noon.Add(-24*time.Hour), 24*time.Hour+time.Minute)
			w := newWorld(t, aSecret(first))
			w.answer = func(context.Context) (string, error) {
				return aToken("hub", "1", w.clock.Now().Add(-row.issued), row.lifetime), nil
			}
			for range 10 {
				w.sync()
			}
			w.step(row.pause - time.Second)
			if next := w.sync().RequeueAfter; len(w.asked) != 1 || next != time.Second {
				t.Errorf("asked %d times, again after %s", len(w.asked), next)
			}
			w.step(time.Second)
			if w.sync(); len(w.asked) != 2 {
				t.Errorf("asked %d times", len(w.asked))
			}
			if written := w.token() != first; written != row.written {
				t.Errorf("the Secret was changed: %t", written)
			}
		})
	}
}

// Without a worker there's nobody to ask.
func TestNotRegistered(t *testing.T) {
	w := newWorld(t, aSecret(aToken("hub", "1", noon, time.Hour)))
	w.known = false
	w.step(50 * time.Minute)
	if next := w.sync().RequeueAfter; next != minRetry || len(w.asked) != 0 {
		t.Errorf("after %s, asked %v", next, w.asked)
	}
}

// TestManyWorkersHang: a worker's token is renewed at once, however many others don't answer. Each
// of these is asked once at a time.
func TestManyWorkersHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hanging = 100
		w := newWorld(t, aSecret(aToken("hub", "1", noon, time.Hour)))
		w.step(50 * time.Minute)
		renew, began := w.answer, time.Now()
		w.answer = func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		for i := range 2 * hanging {
			name := fmt.Sprint("w", i%hanging)
			if i < hanging {
				secret := aSecret(aToken("hub", "1", noon, time.Hour), func(s *corev1.Secret) { s.Name = name })
				if err := w.hub.Create(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
			}
			w.reconcile(types.NamespacedName{Namespace: west.Namespace, Name: name})
			synctest.Wait()
		}
		w.answer = renew
		w.sync()
		if token, _ := boundtoken.Parse(w.token()); len(w.asked) != hanging+1 || !token.Issued.After(noon) || time.Since(began) > 0 {
			t.Errorf("asked %d times, the token was issued at %s, after %s", len(w.asked), token.Issued, time.Since(began))
		}
		for range hanging {
			<-w.answered
		}
		if took := time.Since(began); took > requestTimeout {
			t.Errorf("they are waited for for %s", took)
		}
	})
}
