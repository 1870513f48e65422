package servingcert

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/utils/clock"
)

// errNone is what a client's handshake fails with until there is a certificate.
var errNone = errors.New("no serving certificate yet")

// Keeper keeps one certificate. Its methods may be called by several goroutines.
type Keeper struct {
	options Options
	clock   clock.PassiveClock
	serve   atomic.Pointer[generation] // as was decided last; nil: nothing can be served
}

// New checks the options. Nothing happens before SetupWithManager.
func New(options Options) (*Keeper, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return &Keeper{options: options, clock: clock.RealClock{}}, nil
}

// GetCertificate is for tls.Config. It fails until there is a certificate, which takes a moment
// after the manager's start.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := k.serve.Load(); now != nil {
		return &now.pair, nil
	}
	return nil, fmt.Errorf("%w: Secret %s/%s", errNone, k.options.Namespace, k.options.SecretName)
}

// Configure sets GetCertificate and the oldest version of TLS that's spoken, 1.2; for
// webhook.Options.TLSOpts.
func (k *Keeper) Configure(config *tls.Config) {
	config.GetCertificate = k.GetCertificate
	config.MinVersion = tls.VersionTLS12
}

// Ready is a check for /readyz: there is a certificate to serve.
func (k *Keeper) Ready(*http.Request) error {
	_, err := k.GetCertificate(nil)
	return err
}
