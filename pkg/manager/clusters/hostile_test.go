package clusters

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// adversary writes answers without an end, and counts what is read of them.
type adversary struct{ sent atomic.Int64 }

const longAnswer = 300 << 20

// write sends the head, and then the filling until it isn't read any more or 300 MiB are.
func (a *adversary) write(contentType, head, filling string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		chunk := []byte(strings.Repeat(filling, 64<<10/len(filling)))
		n, err := io.WriteString(w, head)
		for sent := n; err == nil && sent < longAnswer; sent += n {
			n, err = w.Write(chunk)
			a.sent.Add(int64(n))
		}
	}
}

// zippedSpaces is what 300 MiB of spaces become.
var zippedSpaces = sync.OnceValue(func() []byte {
	var zipped bytes.Buffer
	to := gzip.NewWriter(&zipped)
	for range longAnswer >> 20 {
		_, _ = to.Write(bytes.Repeat([]byte(" "), 1<<20)) // a buffer takes all
	}
	_ = to.Close()
	return zipped.Bytes()
})

// zipBomb sends them.
func zipBomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(zippedSpaces()) // fails with the connection
}

// TestAWorkerWhoseAnswersHaveNoEnd has one of two workers answer without an end. It's not Ready
// with a reason, little of the answer is read, and the other worker stays Ready. When it answers as
// it should, it's Ready again.
func TestAWorkerWhoseAnswersHaveNoEnd(t *testing.T) {
	var a adversary
	zippedSpaces()
	for name, row := range map[string]struct {
		kind   string
		answer http.HandlerFunc
		reason string
		says   string
		// reads is what may be read of it before the first time that nothing is sent to the worker,
		// without what the network holds.
		reads int64
	}{
		"probe":               {"get kube-system", a.write(jsonType, "", " "), v1alpha1.ReasonAnswerTooLarge, "GET /c/api/v1/namespaces/kube-system is larger than 1 MiB", 1 << 20},
		"version":             {"get version", a.write(jsonType, "", " "), v1alpha1.ReasonAnswerTooLarge, "GET /c/version is larger than 1 MiB", 1 << 20},
		"probe, compressed":   {"get kube-system", zipBomb, v1alpha1.ReasonAnswerEncoded, `Content-Encoding "gzip"`, 0},
		"event":               {"watch jobs", a.write(jsonType, `{"type":"ADDED","object":{"metadata":{"name":"`, "x"), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", 4 << 20},
		"event in protobuf":   {"watch jobs", a.write(protobufType+";stream=watch", "\x80\x00\x00\x00", "x"), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", 4 << 20},
		"nothing but spaces":  {"watch jobs", a.write(jsonType, "", " "), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", 4 << 20},
		"event of many lines": {"watch jobs", a.write(jsonType, "{", "\n"), v1alpha1.ReasonAnswerTooLarge, "an event of the answer", 4 << 20},
		"quantity that hangs": {"watch nodes", a.write(jsonType, `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"1e999999999"}}}}`, " "), v1alpha1.ReasonAnswerTooLarge, "/api/v1/nodes has a quantity of more than 64 characters", 4 << 20},
		"event of a Node":     {"watch nodes", a.write(jsonType, "{", " "), v1alpha1.ReasonAnswerTooLarge, "/api/v1/nodes", 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.registry.options.ProbeTimeout = 10 * time.Second // the machine is busy
			other := w.register("other", w.server.Add("d", "uid-2", "t").Kubeconfig("t"))
			w.untilState(other, Ready, v1alpha1.ReasonConnected)
			c := w.server.Add("c", "uid", "t")
			before := a.sent.Load()
			c.Answer(row.kind, row.answer)
			worker := w.register("w1", c.Kubeconfig("t"))
			view := w.untilState(worker, Disconnected, row.reason)
			if !strings.Contains(view.Message, row.says) {
				t.Errorf("says: %s", view.Message)
			}
			const inNetwork = 16 << 20
			if read := a.sent.Load() - before; read > 2*row.reads+inNetwork {
				t.Errorf("%d bytes were read", read)
			}
			if other.View().State != Ready {
				t.Errorf("the other worker: %+v", other.View())
			}
			c.Answer(row.kind, nil)
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
		})
	}
}

// TestALargeHeader: it isn't held, though the rest of the answer is as it should be.
func TestALargeHeader(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Answer("get kube-system", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Filling", strings.Repeat("x", 128<<10))
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"uid"}}`)
	})
	worker := w.register("w1", c.Kubeconfig("t"))
	w.until("it's refused", func() bool { return worker.View().State == Disconnected })
	c.Answer("get kube-system", nil)
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
}

// TestAListWithoutAnEnd: pages are asked for with fewer objects each time, at last with one.
func TestAListWithoutAnEnd(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	var a adversary
	c.Answer("watch jobs", http.NotFound) // so that it's listed
	c.Answer("get jobs", a.write("application/json", `{"kind":"JobList","apiVersion":"batch/v1","items":[`, `{"metadata":{"name":"j"}},`))
	worker := w.register("w1", c.Kubeconfig("t"))
	view := w.untilState(worker, Disconnected, v1alpha1.ReasonAnswerTooLarge)
	if want := "GET /c/apis/batch/v1/jobs is larger than 16 MiB"; !strings.Contains(view.Message, want) {
		t.Errorf("says: %s", view.Message)
	}
	if n := len(worker.Mirrors()); n != 0 {
		t.Errorf("%d mirrors are known", n)
	}
}

// TestAReadWithoutAnEnd: a read on behalf of a Job fails, and the worker isn't Ready from then on.
func TestAReadWithoutAnEnd(t *testing.T) {
	w := newWorld(t)
	// the machine is busy, and the bound comes first
	w.registry.options.RequestTimeout = 30 * time.Second
	c := w.server.Add("c", "uid", "t")
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	var a adversary
	c.Answer("get j", a.write("application/json", "", " "))
	err := worker.Client().Get(context.Background(), client.ObjectKey{Namespace: "n", Name: "j"}, &batchv1.Job{})
	var broken *link.BoundError
	if !errors.As(err, &broken) {
		t.Fatalf("the read: %v", err)
	}
	w.untilState(worker, Disconnected, v1alpha1.ReasonAnswerTooLarge)
}

// TestRedirects has a worker redirect each of the clients to another server, which must not hear of
// it, the token least of all.
func TestRedirects(t *testing.T) {
	var heard atomic.Int64
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := newWorld(t)
			c := w.server.Add("c", "uid", "t")
			redirect := func(to string) http.HandlerFunc {
				return func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, to, code) }
			}
			c.Answer("get j", redirect(elsewhere.URL+"/x"))
			c.Answer("get k", redirect("/c/followed"))
			c.Answer("watch nodes", redirect(elsewhere.URL+"/x"))
			c.Answer("get nodes", redirect("/c/followed"))
			worker := w.register("w1", c.Kubeconfig("t"))
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
			for _, name := range []string{"j", "k"} {
				err := worker.Client().Get(context.Background(), client.ObjectKey{Namespace: "n", Name: name}, &batchv1.Job{})
				if err == nil {
					t.Errorf("the read of %s succeeded", name)
				}
			}
			w.until("nodes are listed", func() bool { return c.Requests("get nodes") > 0 })
			c.Answer("get kube-system", redirect(elsewhere.URL+"/x"))
			w.untilState(worker, Disconnected, v1alpha1.ReasonUnreachable)
			if n := heard.Load(); n != 0 || c.Requests("get followed") != 0 || c.Requests("get x") != 0 {
				t.Errorf("redirects were followed: %d, %d, %d", n, c.Requests("get followed"), c.Requests("get x"))
			}
		})
	}
}
