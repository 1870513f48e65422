package subresources_test

import (
	"crypto/tls"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/pki"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

// server is the aggregated API in this process.
type server struct {
	address string
	metrics *prometheus.Registry
	stop    func()
}

// serve starts the API, registers it, and waits until the hub's API server finds it available.
func serve(f *ferrytest.Ferry, t *testing.T, edits ...func(*subresources.Options)) *server {
	t.Helper()
	listener := f.Listen()
	authority, certificate := newCertificate(t)
	s := &server{address: listener.Addr().String(), metrics: prometheus.NewRegistry()}
	options := subresources.Options{
		Metrics: s.metrics,
		Endpoint: subresources.Endpoint{
			Listener:    listener,
			Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
		},
	}
	for _, edit := range edits {
		edit(&options)
	}
	s.stop = f.RunSubresources("subresources", options)
	f.RegisterAPI(s.address, authority.PEM)
	return s
}

func newCertificate(t *testing.T) (*pki.Authority, tls.Certificate) {
	t.Helper()
	authority, err := pki.NewAuthority("subresources-ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server(nil, ferrytest.SubresourcesService+"."+ferrytest.SystemNamespace+".svc")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return authority, certificate
}
