package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// selfSigned is a certificate of loopback with so many other names, and bytes of something else.
func selfSigned(t *testing.T, names, bytes int) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, URIs: slices.Repeat([]*url.URL{{Scheme: "a", Host: "b"}}, names),
		ExtraExtensions: []pkix.Extension{{Id: []int{1, 2, 3}, Value: make([]byte, bytes)}},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// A worker's certificate becomes many times its size, and is held with each connection, and with
// each error of its verification.
func TestCertificatesOfAWorkerAreSmall(t *testing.T) {
	for name, row := range map[string]struct {
		names, bytes int
		untrusted    bool
		want         string
	}{
		"usual":      {names: 10},
		"many names": {names: 2000, want: "are too large"},
		"large":      {names: 10, bytes: 100 << 10, want: "are too large"},
		"untrusted":  {names: 10, untrusted: true, want: "signed by unknown authority"},
	} {
		for _, http2 := range []bool{true, false} {
			certificate := selfSigned(t, row.names, row.bytes)
			trusted := certificate.Certificate[0]
			if row.untrusted {
				trusted = selfSigned(t, 1, 0).Certificate[0]
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", 100<<10)) // more than a handshake may have
			}))
			server.EnableHTTP2, server.TLS = http2, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
			server.StartTLS()
			_, _, err := get(t, transportTo(t, server, trusted))
			server.Close()
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: %v", name, err)
			}
			var unverified *tls.CertificateVerificationError
			var unknown x509.UnknownAuthorityError
			if is := errors.As(err, &unverified); is != row.untrusted || is && len(unverified.UnverifiedCertificates) > 0 || errors.As(err, &unknown) {
				t.Errorf("%s: the error has the certificates: %v", name, err)
			}
		}
	}
}
