package subresources

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
)

// authority issues client certificates.
type authority struct {
	t           *testing.T
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key}
	a.certificate = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// client makes a client certificate.
func (a *authority) client(name string) *x509.Certificate {
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *authority) sign(template *x509.Certificate) *x509.Certificate {
	a.t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	content, err := x509.CreateCertificate(rand.Reader, template, parent, &a.key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(content)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate
}

// Whoever has no certificate of the front proxy is a stranger, also without a user in the headers.
func TestTheFrontProxyIsKnown(t *testing.T) {
	of := newAuthority(t)
	front, err := newFrontProxy(fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: frontProxyConfigMap},
		Data: map[string]string{
			frontProxyCA:    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: of.certificate.Raw})),
			usernameHeaders: `["X-Remote-User"]`, groupHeaders: `["X-Remote-Group"]`, uidHeaders: `[]`,
			extraHeaderPrefixes: `["X-Remote-Extra-"]`, allowedNames: `["front-proxy"]`,
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { front.run(ctx) })
	defer running.Wait()
	defer cancel()
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, read := front.authority.VerifyOptions()
		return read && len(front.headers.AllowedClientNames()) > 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		state *tls.ConnectionState
		want  bool
	}{
		"the front proxy":       {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{of.client("front-proxy")}}, true},
		"another name":          {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{of.client("other")}}, false},
		"another authority":     {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{newAuthority(t).client("front-proxy")}}, false},
		"without a certificate": {&tls.ConnectionState{}, false},
		"without TLS":           {nil, false},
	} {
		if got := front.isProxy(&http.Request{TLS: row.state}); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
