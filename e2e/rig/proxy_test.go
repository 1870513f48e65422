package rig_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/rig"
)

// patience is far more than anything on loopback takes.
const patience = time.Minute

func TestProxyForwards(t *testing.T) {
	_, dial := newProxy(t)
	conn := dial()
	ping(t, conn)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("after our end came %q, %v; want the other's end", rest, err)
	}
}

func TestProxyLatency(t *testing.T) {
	proxy, dial := newProxy(t)
	conn := dial()
	proxy.Latency(50 * time.Millisecond)
	if took := ping(t, conn); took < 100*time.Millisecond {
		t.Errorf("a round trip took %s, want twice 50 ms", took)
	}
}

func TestProxyBandwidth(t *testing.T) {
	proxy, dial := newProxy(t)
	conn := dial()
	proxy.Bandwidth(1 << 20)
	sent := bytes.Repeat([]byte("x"), 1<<17)
	began := time.Now()
	go func() { _, _ = conn.Write(sent) }() // its failure shows in what comes back
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 120*time.Millisecond {
		t.Errorf("128 KiB at 1 MiB/s took %s", took)
	}
}

// A black hole keeps present connections open and silent, and hides their ends; healed, they go on
// where they were.
func TestProxyBlackHole(t *testing.T) {
	proxy, dial := newProxy(t)
	present := dial()
	ping(t, present)
	proxy.BlackHole()
	fresh := dial()
	for name, conn := range map[string]*net.TCPConn{"present": present, "fresh": fresh} {
		if _, err := conn.Write([]byte("held")); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s connection: %v, want silence", name, err)
		}
	}
	proxy.Heal()
	for _, conn := range []*net.TCPConn{present, fresh} {
		expect(t, conn, "held")
	}
}

func TestProxyReset(t *testing.T) {
	proxy, dial := newProxy(t)
	idle := dial()
	ping(t, idle)
	proxy.Reset()
	if _, err := idle.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the idle connection: %v, want a reset", err)
	}
	fresh, err := net.Dial("tcp", proxy.Address())
	if err == nil { // else it was broken before it had been made
		defer fresh.Close()
		_, err = fresh.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("a fresh connection works")
	}
	proxy.Heal()
	ping(t, dial())
}

func TestProxyHalfOpen(t *testing.T) {
	proxy, dial := newProxy(t)
	present := dial()
	ping(t, present)
	proxy.HalfOpen()
	proxy.Heal()
	if _, err := present.Write([]byte("lost")); err != nil {
		t.Errorf("the connection doesn't look open: %v", err)
	}
	if err := present.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := present.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection: %v, want silence", err)
	}
	ping(t, dial())
	present.Close()
	proxy.Close() // returns when nothing of the half-open connection is left, either
}

func TestProxyEndsWithItsConnections(t *testing.T) {
	proxy, dial := newProxy(t)
	conn := dial()
	ping(t, conn)
	proxy.BlackHole()
	proxy.Close() // returns only when nothing of it runs any more
	if n := proxy.Connections(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	if _, err := net.Dial("tcp", proxy.Address()); err == nil {
		t.Error("it still listens")
	}
}

// newProxy starts a proxy in front of a server that sends back what it gets.
func newProxy(t *testing.T) (proxy *rig.Proxy, dial func() *net.TCPConn) {
	t.Helper()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { echo.Close() })
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn) // ends with the connection
			}()
		}
	}()
	proxy, err = rig.NewProxy("127.0.0.1:0", echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy, func() *net.TCPConn {
		t.Helper()
		conn, err := net.Dial("tcp", proxy.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn.(*net.TCPConn)
	}
}

// ping sends a word and waits for it to come back.
func ping(t *testing.T, conn *net.TCPConn) time.Duration {
	t.Helper()
	began := time.Now()
	if err := conn.SetDeadline(began.Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	expect(t, conn, "ping")
	return time.Since(began)
}

func expect(t *testing.T, conn *net.TCPConn, want string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("read %q, %v; want %q", got, err, want)
	}
}
