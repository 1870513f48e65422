package serve

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// serving starts a server until the test ends, and returns its address.
func serving(t *testing.T, handler http.Handler, config *tls.Config) string {
	t.Helper()
	server, listener, err := New("test", "127.0.0.1:0", handler, config)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// Any Pod of the network may open connections, and send headers that don't end: they take little
// memory, and others are answered.
func TestHeadersWithoutAnEnd(t *testing.T) {
	address := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil)
	before := costtest.Heap()
	headers := append([]byte("GET / HTTP/1.1\r\nHost: x\r\nX: "), bytes.Repeat([]byte("x"), 1<<20)...)
	for range 3 * MaxStrangers {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = c.Write(headers) // refused at some point
	}
	if took := costtest.Heap() - before; took > 24<<20 {
		t.Errorf("%d MiB are held", took>>20)
	}
	answer, err := http.Get("http://" + address) //nolint:noctx // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusNoContent {
		t.Errorf("the answer is %s", answer.Status)
	}
}

// A client that sends much by many streams of a connection, before anybody reads it, takes little
// memory.
func TestStreamsThatNobodyReads(t *testing.T) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	held, end := make(chan string, 2*maxStreams), make(chan struct{})
	address := serving(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			held <- r.Proto
			<-end
		}
	}), &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	defer close(end)
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's own server
	}}
	send := func(method string, body []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+address, bytes.NewReader(body))
		if err != nil {
			return
		}
		if answer, err := client.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	}
	send(http.MethodGet, nil) // for one connection
	before := costtest.Heap()
	for range maxStreams / 2 {
		go send(http.MethodPost, make([]byte, 1<<20))
	}
	for range maxStreams / 2 {
		if proto := <-held; proto != "HTTP/2.0" {
			t.Fatalf("it's served by %s", proto)
		}
	}
	if took := costtest.Heap() - before - maxStreams/2<<20; took > 24<<20 { // but for what the test sends
		t.Errorf("%d MiB are held", took>>20)
	}
}
