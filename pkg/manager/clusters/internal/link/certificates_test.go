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
	"net/http/httptrace"
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
		"many names": {names: 2000, want: "is too large"},
		"large":      {names: 10, bytes: 100 << 10, want: "is too large"},
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

// A request's own trace, such as client-go's, is called for it alone, and isn't kept.
func TestTracesOfRequests(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	transport := transportTo(t, server, server.Certificate().Raw)
	var first, second int
	for _, calls := range []*int{&first, &second, &second} {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { *calls++ }})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, AnyHost+"/version", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if first != 1 || second != 2 {
		t.Errorf("the first request's trace is called %d times, the others' %d", first, second)
	}
}
