package serve

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/jobferry/jobferry/pkg/util/serve/servetest"
)

// pipes is a listener of connections in memory, whose clients take what they read and no more.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// inMemory serves encrypted connections until the test ends. Its own goroutines are in the test's
// bubble, so time passes as they wait.
func inMemory(t *testing.T, server *http.Server) (dial func() net.Conn) {
	t.Helper()
	listener := make(pipes)
	server.ConnContext = WithConn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(tls.NewListener(Limit(listener, true), server.TLSConfig))
	}()
	t.Cleanup(func() {
		close(listener)
		_ = server.Close()
		<-ended
	})
	return func() net.Conn {
		client, of := net.Pipe()
		listener <- of
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
}

func encrypted(t *testing.T, conn net.Conn) net.Conn {
	t.Helper()
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // the test's own server
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	return client
}

func configFor(t *testing.T) *tls.Config {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	// Tickets are written after the handshake, for which a client would have to read.
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, SessionTicketsDisabled: true}
}

// Who asks for much and reads nothing of it loses the connection.
func TestAClientThatReadsNothing(t *testing.T) {
	config := configFor(t)
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		conn := encrypted(t, inMemory(t, Bounded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}), config))())
		began := time.Now()
		servetest.NewClient(t, conn, 1<<30).Get("/", "x", "y")
		<-ended
		if took := time.Since(began); took > 2*WriteByteTimeout { // TLS needs some seconds for its end
			t.Errorf("it takes %s", took)
		}
	})
}

// The webhook's answer, and those for health and metrics, are to be taken in time.
func TestAnAnswerThatNobodyTakes(t *testing.T) {
	config := configFor(t)
	synctest.Test(t, func(t *testing.T) {
		made, listener, err := New("test", "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }), config)
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close() // for one in memory
		client := servetest.NewClient(t, encrypted(t, inMemory(t, made)()), 0)
		began := time.Now()
		client.Get("/", "x", "y")
		client.Ended(1)
		if took := time.Since(began); took > writeTimeout {
			t.Errorf("it takes %s", took)
		}
	})
}

// Before a client has proved anything, it may send few bytes, and has little time.
func TestAHelloWithoutAnEnd(t *testing.T) {
	config := configFor(t)
	synctest.Test(t, func(t *testing.T) {
		dial := inMemory(t, Bounded(http.NotFoundHandler(), config))
		hello := []byte{22, 3, 1, 4, 0} // a record of a handshake, with 1 KiB
		hello = append(hello, 1, 0, 0xf0, 0)
		hello = append(hello, make([]byte, 1<<10-4)...)
		taken := 0
		for conn := dial(); taken < 1<<20; {
			n, err := conn.Write(hello)
			if taken += n; err != nil {
				break
			}
			copy(hello[5:], make([]byte, 4))
		}
		if taken > 20<<10 {
			t.Errorf("%d bytes of a hello were read", taken)
		}
		began := time.Now()
		if _, err := io.Copy(io.Discard, dial()); err != nil || time.Since(began) > readHeaderTimeout {
			t.Errorf("a client that says nothing is sent away after %s: %v", time.Since(began), err)
		}
	})
}

// Strangers that take no answer have few requests under way, each for a short time, and hinder
// nobody who has a name.
func TestStrangersRequestsAreBounded(t *testing.T) {
	config := configFor(t)
	synctest.Test(t, func(t *testing.T) {
		var strangers Strangers
		next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/known" {
				Met(r.Context())
			}
			_, _ = io.WriteString(w, "x")
		})
		dial := inMemory(t, Bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			strangers.Serve(r.Header.Get("Name"), next, w, r)
		}), config))
		began := time.Now()
		nobody := servetest.NewClient(t, encrypted(t, dial()), 0)
		for range 2 * MaxRequests {
			nobody.Get("/", "name", "")
		}
		if answered := nobody.Ended(MaxRequests); answered > 0 || time.Since(began) > 0 {
			t.Errorf("of %d that wait, %d were dropped, after %s", MaxRequests, answered, time.Since(began))
		}
		known := servetest.NewClient(t, encrypted(t, dial()), 0)
		known.Get("/known", "name", "hub")
		other := servetest.NewClient(t, encrypted(t, dial()), 0)
		other.Get("/", "name", "other")
		if answered := other.Ended(1); answered != 1 || time.Since(began) != StrangerTimeout {
			t.Errorf("another client got %d answers, after %s", answered, time.Since(began))
		}
		nobody.Ended(MaxRequests)
		synctest.Wait()
		if len(strangers.requests) > 0 {
			t.Errorf("requests count that have ended: %v", strangers.requests)
		}
		<-time.After(time.Second) // of the bubble
		if err := known.WriteWindowUpdate(1, 1); err != nil {
			t.Fatal(err)
		}
		for {
			frame, err := known.ReadFrame()
			if err != nil {
				t.Fatalf("who is known has little time: %v", err)
			}
			if of := frame.Header(); of.StreamID == 1 && of.Flags&1 != 0 { // the end of the stream
				break
			}
		}
	})
}
