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
	}{{c.AwaitHello, maxClient}, {c.Begin, maxServer}} {
		step.begin()
		if n, err := io.Copy(&bytes.Buffer{}, c); n != step.most || !errors.Is(err, errTooLarge) {
			t.Errorf("%d bytes are read, %v; want %d", n, err, step.most)
		}
	}
	c.End()
	if n, err := io.CopyN(io.Discard, c, 10*maxServer); err != nil {
		t.Errorf("after the handshake, %d bytes are read, %v", n, err)
	}
}

func TestVerify(t *testing.T) {
	for _, row := range []struct {
		certificates, names int
		fits, fitsClient    bool
	}{
		{0, 0, true, true}, {maxCertificates, 1, true, true}, {maxCertificates + 1, 1, false, false},
		{2, maxClientNames, true, false}, {2, maxNames, false, false},
	} {
		var state tls.ConnectionState
		for range row.certificates {
			state.PeerCertificates = append(state.PeerCertificates, &x509.Certificate{DNSNames: make([]string, row.names)})
		}
		if Verify(state) == nil != row.fits || verify(state, maxClientNames) == nil != row.fitsClient {
			t.Errorf("%+v: %v, of a client %v", row, Verify(state), verify(state, maxClientNames))
		}
	}
}
