package hostile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// maxHeap is how much more of the heap the manager, and this test with it, may use while a worker
// or a tenant does its worst.
const maxHeap = 160 << 20

// tamperer is a proxy in front of the API server of the hostile worker, which answers as the
// adversary likes.
type tamperer struct {
	server *httptest.Server

	mu      sync.Mutex
	answers map[string]http.HandlerFunc
}

func newTamperer(t *testing.T, config *rest.Config) *tamperer {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization") // the transport has credentials of its own
		},
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	a := &tamperer{answers: map[string]http.HandlerFunc{}}
	a.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a.mu.Lock()
		answer := a.answers[kindOf(req)]
		a.mu.Unlock()
		if answer == nil {
			answer = proxy.ServeHTTP
		}
		answer(w, req)
	}))
	t.Cleanup(func() { a.server.CloseClientConnections(); a.server.Close() })
	return a
}

// kindOf is a request's verb and the last part of its path, such as "watch jobs".
func kindOf(req *http.Request) string {
	resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	if req.URL.Query().Get("watch") != "" {
		return "watch " + resource
	}
	return strings.ToLower(req.Method) + " " + resource
}

// set replaces all false answers, and ends the connections that there are.
func (a *tamperer) set(answers map[string]http.HandlerFunc) {
	a.mu.Lock()
	a.answers = answers
	a.mu.Unlock()
	a.server.CloseClientConnections()
}

func (a *tamperer) kubeconfig(t *testing.T) []byte {
	t.Helper()
	const name = "tampered"
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: a.server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: "any"}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// restore has the registration of the hostile worker lead to its API server again.
func restore(t *testing.T, f *ferrytest.Ferry) {
	// the test's own has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	secrets := f.Hub.Client().CoreV1().Secrets(ferrytest.SystemNamespace)
	secret, err := secrets.Get(ctx, hostile, metav1.GetOptions{})
	if err == nil {
		secret.Data[v1alpha1.KubeconfigKey] = f.Cluster(hostile).ProxyKubeconfigBytes()
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Error(err)
	}
}

// endless sends the head, and then the filling until nobody reads it.
func endless(head, filling string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(filling, 64<<10/len(filling)))
		_, err := io.WriteString(w, head)
		for err == nil {
			_, err = w.Write(chunk)
		}
	}
}

// zippedSpaces is what 300 MiB of spaces become.
var zippedSpaces = sync.OnceValue(func() []byte {
	var zipped bytes.Buffer
	to := gzip.NewWriter(&zipped)
	for range 300 {
		_, _ = to.Write(bytes.Repeat([]byte(" "), 1<<20)) // a buffer takes all
	}
	_ = to.Close()
	return zipped.Bytes()
})

func zipBomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(zippedSpaces()) // fails with the connection
}

// heapPeak samples the heap until it's asked for the peak over what was in use at first.
func heapPeak() (peak func() int64) {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	percent := debug.SetGCPercent(25) // what is held counts, and not when Go collects the rest
	runtime.GC()
	first := inUse()
	var highest atomic.Int64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				highest.Store(max(highest.Load(), inUse()-first))
			case <-done:
				return
			}
		}
	}()
	return func() int64 {
		close(done)
		<-ended
		debug.SetGCPercent(percent)
		return highest.Load()
	}
}

// TestAnswersWithoutAnEnd has one of three workers answer without an end. It's not Ready with a
// reason, the manager's memory stays bounded, and Jobs on another worker run meanwhile. When it's
// honest again, it's Ready again.
func TestAnswersWithoutAnEnd(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", hostile)
	t.Cleanup(func() { restore(t, f) })
	job := `{"type":"ADDED","object":{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"`
	list := `{"kind":"JobList","apiVersion":"batch/v1","items":[`
	for i, row := range []struct {
		name    string
		answers map[string]http.HandlerFunc
		reason  string
	}{
		{"a probe of spaces", map[string]http.HandlerFunc{"get kube-system": endless("", " ")}, v1alpha1.ReasonAnswerTooLarge},
		{"a probe, zipped", map[string]http.HandlerFunc{"get kube-system": zipBomb}, v1alpha1.ReasonAnswerEncoded},
		{"a list", map[string]http.HandlerFunc{
			"watch jobs": http.NotFound, "get jobs": endless(list, `{"metadata":{"name":"j"}},`),
		}, v1alpha1.ReasonAnswerTooLarge},
		{"a list, zipped", map[string]http.HandlerFunc{"watch jobs": zipBomb, "get jobs": zipBomb}, v1alpha1.ReasonAnswerEncoded},
		{"an event", map[string]http.HandlerFunc{"watch jobs": endless(job, "x")}, v1alpha1.ReasonAnswerTooLarge},
		{"an event of a Pod", map[string]http.HandlerFunc{"watch pods": endless("{", " ")}, v1alpha1.ReasonAnswerTooLarge},
	} {
		t.Run(row.name, func(t *testing.T) {
			// Another kubeconfig ends the quarantine of the row before.
			a := newTamperer(t, f.Cluster(hostile).RESTConfig())
			f.ReplaceSecret(hostile, a.kubeconfig(t))
			f.WorkerUntil(hostile, ferrytest.Ready)
			peak := heapPeak()
			a.set(row.answers)
			f.WorkerUntil(hostile, ferrytest.NotReady(row.reason))
			name := fmt.Sprint("meanwhile-", i)
			f.Submit(name, ferrytest.OnWorker("w1"))
			f.HubJobUntil(name, rigtest.Complete)
			grown := peak()
			t.Logf("the heap grew by %d MiB", grown>>20)
			if grown > maxHeap {
				t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, maxHeap>>20)
			}
			a.set(nil)
			f.WorkerUntil(hostile, ferrytest.Ready)
		})
	}
}

// large gives a Job's Pods an environment of so many bytes.
func large(bytes int) rigtest.Option {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", bytes)}
	}
}

// TestLargeJobsOfATenantOfAWorker has somebody in a worker create large Jobs with the labels of
// mirrors. The manager's memory stays bounded, and the worker runs Jobs as before.
func TestLargeJobsOfATenantOfAWorker(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", hostile)
	f.Submit("first", ferrytest.OnWorker(hostile))
	first := f.MirrorUntil(hostile, "first", rigtest.Complete)
	peak := heapPeak()
	for i := range 80 {
		forged := rigtest.Job(f.NS, fmt.Sprint("forged-", i), rigtest.Suspended(), large(1_200_000))
		forged.Labels = map[string]string{v1alpha1.LabelOrigin: first.Labels[v1alpha1.LabelOrigin]}
		if i%2 == 0 {
			forged.Annotations = map[string]string{v1alpha1.AnnotationHubUID: fmt.Sprint("uid-", i)}
			forged.Finalizers = []string{"adversary.example/stays"}
		}
		f.Create(f.Cluster(hostile), forged)
	}
	f.Submit("second", ferrytest.OnWorker(hostile))
	f.HubJobUntil("second", rigtest.Complete)
	grown := peak()
	t.Logf("the heap grew by %d MiB", grown>>20)
	if grown > maxHeap {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, maxHeap>>20)
	}
	for i := range 80 {
		f.PatchMirror(hostile, fmt.Sprint("forged-", i), `{"metadata":{"finalizers":null,"labels":null}}`)
	}
}

// TestLargeJobsOfATenantOfTheHub has a tenant create large Jobs that are suspended, or wait for
// room. The manager's memory stays bounded, and such a Job runs when it's resumed, is suspended and
// resumed again, as any other.
func TestLargeJobsOfATenantOfTheHub(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	peak := heapPeak()
	for i := range 80 {
		waits := rigtest.Suspended()
		if i%2 == 1 {
			waits = func(j *batchv1.Job) {
				j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
			}
		}
		f.Submit(fmt.Sprint("large-", i), waits, large(1_200_000), ferrytest.OnWorker("w1"), rigtest.RunForever())
	}
	f.HubJobUntil("large-78", ferrytest.Suspended)
	f.EventUntil("large-79", "Pending", "never fits: Insufficient cpu")
	f.Patch("large-0", `{"spec":{"suspend":false}}`)
	f.HubJobUntil("large-0", rigtest.Running(1))
	f.Patch("large-0", `{"spec":{"suspend":true}}`)
	f.HubJobUntil("large-0", ferrytest.Suspended)
	f.Patch("large-0", `{"spec":{"suspend":false,"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}`)
	m := f.MirrorUntil("w1", "large-0", func(j *batchv1.Job) bool {
		return !ptr.Deref(j.Spec.Suspend, false) && len(j.Spec.Template.Spec.NodeSelector) == 1
	})
	if got := len(m.Spec.Template.Spec.Containers[0].Args[0]); got != 1_200_000 || mirror.Light(m) {
		t.Errorf("the mirror's Pods have %d bytes of arguments", got)
	}
	grown := peak()
	t.Logf("the heap grew by %d MiB", grown>>20)
	if grown > maxHeap {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, maxHeap>>20)
	}
}
