package link

import (
	"errors"
	"io"
	"net/http"
	"testing"

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
