package pki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"
)

// A server and a client with certificates of one authority trust each other; those of another are
// refused.
func TestHandshake(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	server, err := ours.Server([]net.IP{net.IPv4(127, 0, 0, 1)}, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		signer *Authority
		ok     bool
	}{"ours": {ours, true}, "theirs": {theirs, false}} {
		client, err := tc.signer.Client("jane", "group")
		if err != nil {
			t.Fatal(err)
		}
		user, err := handshake(t, ours, server, client)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if tc.ok && user != "jane" {
			t.Errorf("%s: the server sees the user %q", name, user)
		}
	}
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// handshake returns the client's name as the server reads it.
func handshake(t *testing.T, authority *Authority, server, client Pair) (user string, err error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM)
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	clientSide := tls.Client(a, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", Certificates: []tls.Certificate{certificate(t, client)}})
	// the server's verdict is the one that counts
	go func() { _, _ = io.Copy(io.Discard, clientSide) }()
	serverSide := tls.Server(b, &tls.Config{
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, Certificates: []tls.Certificate{certificate(t, server)},
	})
	if err := serverSide.Handshake(); err != nil {
		return "", err
	}
	return serverSide.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func certificate(t *testing.T, p Pair) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
