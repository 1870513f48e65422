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

// Keeper makes and rotates one certificate. Its methods are safe for concurrent use.
type Keeper struct {
	options Options
	clock   clock.PassiveClock
	serve   atomic.Pointer[generation] // nil: nothing can be served
}

// New validates the options. A Keeper does nothing before SetupWithManager.
func New(options Options) (*Keeper, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return &Keeper{options: options, clock: clock.RealClock{}}, nil
}

// GetCertificate is for tls.Config. It fails until there is a certificate, shortly after the
// manager's start.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := k.serve.Load(); now != nil {
		return &now.pair, nil
	}
	return nil, fmt.Errorf("%w: Secret %s/%s", errNone, k.options.Namespace, k.options.SecretName)
}

// Configure sets GetCertificate and the minimum TLS version, 1.2. It's for webhook.Options.TLSOpts.
func (k *Keeper) Configure(config *tls.Config) {
	config.GetCertificate = k.GetCertificate
	config.MinVersion = tls.VersionTLS12
}

// Ready is a check for /readyz. It fails until there is a certificate.
func (k *Keeper) Ready(*http.Request) error {
	_, err := k.GetCertificate(nil)
	return err
}
