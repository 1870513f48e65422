package link

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
)

// get requests the version of the worker that a transport leads to.
func get(t *testing.T, transport *Transport) (status, protocol int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, AnyHost+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.ProtoMajor, errors.Join(err, resp.Body.Close())
}

func TestATransportLeadsToItsWorker(t *testing.T) {
	server := clustertest.NewServer(func() {})
	t.Cleanup(server.Close)
	c := server.Add("c", "uid", "token")
	for protocol, options := range map[int]TransportOptions{1: {HTTP1: true}, 2: {}} {
		transport, err := NewTransport(c.Kubeconfig("token"), options)
		if err != nil {
			t.Fatal(err)
		}
		if status, got, err := get(t, transport); err != nil || status != http.StatusOK || got != protocol {
			t.Fatalf("got %d by HTTP/%d, %v, want HTTP/%d", status, got, err, protocol)
		}
		transport.closeAll()
		if _, _, err := get(t, transport); err != nil {
			t.Errorf("after its connections were closed: %v", err)
		}
		transport.revoke()
		if _, _, err := get(t, transport); !errors.Is(err, errRevoked) {
			t.Errorf("after it was revoked: %v, want %v", err, errRevoked)
		}
		transport.mu.Lock()
		if n := len(transport.open); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		transport.mu.Unlock()
	}
	var refusal *kubeconfigError
	if _, err := NewTransport([]byte("rubbish"), TransportOptions{}); !errors.As(err, &refusal) {
		t.Errorf("a kubeconfig that can't be read: %v", err)
	}
}

// TestAWorkerSaysNotWhenToAskAgain: client-go would wait as long as it's told to, and ask again,
// with nobody knowing of it.
func TestAWorkerSaysNotWhenToAskAgain(t *testing.T) {
	c, l := connectedLink(t)
	watcher, err := l.Watcher(batchv1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // of what waits
	t.Cleanup(cancel)
	for request, send := range map[string]func() error{
		"get j":     func() error { return l.Client().Get(ctx, client.ObjectKey{Namespace: "n", Name: "j"}, &batchv1.Job{}) },
		"get jobs":  func() error { return watcher.Get().Resource("jobs").Do(ctx).Error() },
		"get nodes": func() error { return l.Client().List(ctx, &corev1.NodeList{}) },
		"watch jobs": func() error {
			_, err := watcher.Get().Resource("jobs").Param("watch", "true").Watch(ctx)
			return err
		},
	} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
			c.Answer(request, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "86400")
				http.Error(w, "maintenance", status)
			})
			before := c.Requests(request)
			err := send()
			var answered apierrors.APIStatus
			if !errors.As(err, &answered) || int(answered.Status().Code) != status || c.Requests(request) != before+1 {
				t.Errorf("%s, %d: %v, after %d requests", request, status, err, c.Requests(request)-before)
			}
		}
	}
}
