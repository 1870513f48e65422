package admission_test

import (
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// freePort finds a port below those of outgoing connections. It stays reserved, by its UDP port,
// until the test ends.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reserved, err := net.ListenPacket("udp4", address)
		if err != nil {
			continue
		}
		if listener, err := net.Listen("tcp4", address); err == nil {
			listener.Close()
			t.Cleanup(func() { reserved.Close() })
			return port
		}
		reserved.Close()
	}
	t.Fatal("no free port on loopback")
	return 0
}

// front stands before the managers like a Service: it forwards a connection to the first of them
// that takes it.
type front struct {
	port     int
	listener net.Listener
	mu       sync.Mutex
	backends []int
	open     map[*forwarded]bool
}

// forwarded is a connection of the API server's, and done when both sides have closed it.
type forwarded struct {
	client *net.TCPConn
	done   chan struct{}
}

func newFront(t testing.TB) *front {
	t.Helper()
	f := &front{port: freePort(t), open: map[*forwarded]bool{}}
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		t.Fatal(err)
	}
	f.listener = listener
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go f.forward(connection.(*net.TCPConn))
		}
	}()
	return f
}

// turn sets who is tried, in this order.
func (f *front) turn(backends ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backends = backends
}

// hangUp ends all connections in an orderly way, and returns when the API server knows.
func (f *front) hangUp() {
	f.mu.Lock()
	var open []*forwarded
	for c := range f.open {
		open = append(open, c)
	}
	f.mu.Unlock()
	for _, c := range open {
		_ = c.client.CloseWrite() // it may be closed already
		<-c.done
	}
}

func (f *front) forward(client *net.TCPConn) {
	defer client.Close()
	server := f.dial()
	if server == nil {
		return
	}
	defer server.Close()
	c := &forwarded{client, make(chan struct{})}
	f.mu.Lock()
	f.open[c] = true
	f.mu.Unlock()
	defer close(c.done)
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, c)
	}()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.CloseWrite()
	}()
	_, _ = io.Copy(server, client) // until the API server has closed its side
}

func (f *front) dial() net.Conn {
	f.mu.Lock()
	backends := f.backends
	f.mu.Unlock()
	for _, port := range backends {
		if server, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return server
		}
	}
	return nil
}
