package handshake

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
)

// endless is a connection on which the other end sends without an end.
type endless struct{ net.Conn }

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestBounds(t *testing.T) {
	c := &Conn{Conn: endless{}}
	for _, step := range []struct {
		begin func()
		most  int64
	}{{c.AwaitHello, maxHello}, {c.Begin, maxBytes}} {
		step.begin()
		if n, err := io.Copy(&bytes.Buffer{}, c); n != step.most || !errors.Is(err, errTooLarge) {
			t.Errorf("%d bytes are read, %v; want %d", n, err, step.most)
		}
	}
	c.End()
	if n, err := io.CopyN(io.Discard, c, 10*maxBytes); err != nil {
		t.Errorf("after the handshake, %d bytes are read, %v", n, err)
	}
}

func TestVerify(t *testing.T) {
	for _, row := range []struct {
		certificates, names int
		fits                bool
	}{{0, 0, true}, {maxCertificates, maxNames, true}, {maxCertificates + 1, 1, false}, {1, maxNames + 1, false}} {
		var state tls.ConnectionState
		for range row.certificates {
			state.PeerCertificates = append(state.PeerCertificates, &x509.Certificate{DNSNames: make([]string, row.names)})
		}
		if err := Verify(state); (err == nil) != row.fits {
			t.Errorf("%+v: %v", row, err)
		}
	}
}
