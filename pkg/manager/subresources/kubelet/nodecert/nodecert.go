// Package nodecert has the certificate with which a replica of the manager serves the kubelet's
// API: self-signed, or issued by the hub's signer kubernetes.io/kubelet-serving.
//
// That signer wants the name of a node (system:node:…, in system:nodes) and an address. API servers
// check the address alone, so one name will do for all Nodes that stand for workers. No controller
// of Kubernetes approves a request to this signer: an administrator does, or an approver that knows
// these requests. Each replica has a key of its own, in memory, and so makes a request when it
// starts, and in the last part of the certificate's life.
package nodecert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
)

// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=create;list;watch

// NodeName is the node in the certificate's name.
const NodeName = "jobferry-manager"

// Certificate is what GetCertificate returns. It's a manager's Runnable.
type Certificate struct {
	own tls.Certificate
	// issued is nil if none is requested. Before there is one, it has the self-signed one.
	issued certificate.Manager
}

// New makes a self-signed certificate for an IP address. With a hub, it's replaced by one of the
// hub's signer once somebody has approved that.
func New(address string, hub kubernetes.Interface) (*Certificate, error) {
	ip := net.ParseIP(address)
	if ip == nil {
		return nil, fmt.Errorf("serving certificate: %q isn't an IP address", address)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(address, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	c := &Certificate{}
	if c.own, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	if hub == nil {
		return c, nil
	}
	c.issued, err = certificate.NewManager(&certificate.Config{
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) { return hub, nil },
		Template: &x509.CertificateRequest{
			Subject:     pkix.Name{CommonName: "system:node:" + NodeName, Organization: []string{"system:nodes"}},
			IPAddresses: []net.IP{ip},
		},
		SignerName: certificatesv1.KubeletServingSignerName, GetUsages: certificate.DefaultKubeletServingGetUsages,
		CertificateStore:        memory{},
		BootstrapCertificatePEM: certPEM, BootstrapKeyPEM: keyPEM,
	})
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return c, nil
}

// GetCertificate is for tls.Config.
func (c *Certificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.issued != nil {
		if issued := c.issued.Current(); issued != nil { // nil: it has expired
			return issued, nil
		}
	}
	return &c.own, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each replica has its own.
func (c *Certificate) NeedLeaderElection() bool { return false }

// Start requests the certificate, and the next one in time, until the context ends.
func (c *Certificate) Start(ctx context.Context) error {
	if c.issued != nil {
		c.issued.Start()
		defer c.issued.Stop()
	}
	<-ctx.Done()
	return nil
}

// memory is a certificate.Store that keeps nothing: the manager has the certificate in memory.
type memory struct{}

// Current implements certificate.Store.
func (memory) Current() (*tls.Certificate, error) {
	none := certificate.NoCertKeyError("each process has another key")
	return nil, &none
}

// Update implements certificate.Store.
func (memory) Update(certPEM, keyPEM []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, errors.Join(errors.New("the hub's signer issued a certificate that can't be used"), err)
	}
	return &pair, nil
}
