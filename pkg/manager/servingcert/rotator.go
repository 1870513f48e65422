package servingcert

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/utils/clock"
)

// errNone is the error of a handshake before there is a certificate.
var errNone = errors.New("no serving certificate yet")

// Rotator makes and rotates one certificate. Its methods are safe for concurrent use.
type Rotator struct {
	options Options
	clock   clock.PassiveClock
	serve   atomic.Pointer[generation] // nil: nothing can be served
}

// New validates the options. A Rotator does nothing before SetupWithManager.
func New(options Options) (*Rotator, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return &Rotator{options: options, clock: clock.RealClock{}}, nil
}

// GetCertificate is for tls.Config. It fails until there is a certificate, shortly after the
// manager's start.
func (r *Rotator) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := r.serve.Load(); now != nil {
		return &now.pair, nil
	}
	return nil, fmt.Errorf("%w: Secret %s/%s", errNone, r.options.Namespace, r.options.SecretName)
}

// Configure sets GetCertificate and the minimum TLS version, 1.2. It's for webhook.Options.TLSOpts.
func (r *Rotator) Configure(config *tls.Config) {
	config.GetCertificate = r.GetCertificate
	config.MinVersion = tls.VersionTLS12
}

// Ready is a check for /readyz. It fails until there is a certificate.
func (r *Rotator) Ready(*http.Request) error {
	_, err := r.GetCertificate(nil)
	return err
}
