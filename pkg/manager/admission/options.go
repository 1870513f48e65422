package admission

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobferry/jobferry/pkg/manager/servingcert"
)

// Names of objects on the hub, which the chart makes.
const (
	// configurationName is that of the MutatingWebhookConfiguration.
	configurationName = "jobferry-dispatch"
	// secretName is that of the Secret with the manager's own certificates.
	secretName = "jobferry-webhook-cert"
	// path is the webhook's URL path.
	path = "/admit/jobs"
)

// Options say whether and how the webhook is served.
type Options struct {
	// Enabled serves the webhook. Default false: hubs since 1.36 need none.
	Enabled bool
	// BindAddress is the host:port to listen on. Default ":9443".
	BindAddress string
	// Namespace of the Service and the Secret.
	Namespace string
	// Service is the name of the Service that the API server calls. Default jobferry-webhook.
	Service string
	// CertDir is a directory with tls.crt and tls.key, such as a mounted Secret of cert-manager.
	// The manager reads them again when they change. Empty, the default: the manager makes
	// certificates itself, and injects them.
	CertDir string
	// CertLifetime of certificates that the manager makes. Default 90 days.
	CertLifetime time.Duration
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{BindAddress: ":9443", Service: "jobferry-webhook", CertLifetime: servingcert.DefaultLifetime}
}

// Validate reports all settings that can't be used.
func (o *Options) Validate() error {
	if !o.Enabled {
		return nil
	}
	var errs []error
	if err := o.checkAddress(); err != nil {
		errs = append(errs, err)
	}
	for _, problem := range validation.IsDNS1035Label(o.Service) {
		errs = append(errs, fmt.Errorf("admission webhook's service %q: %s", o.Service, problem))
	}
	if o.CertDir != "" {
		return errors.Join(errs...)
	}
	if _, err := o.rotator(); err != nil {
		errs = append(errs, fmt.Errorf("admission webhook: %w", err))
	}
	return errors.Join(errs...)
}

func (o *Options) checkAddress() error {
	_, text, err := net.SplitHostPort(o.BindAddress)
	port, invalid := strconv.Atoi(text)
	if err != nil || invalid != nil || port < 1 || port > 65535 {
		return fmt.Errorf("admission webhook's address %q: must be host:port, or :port for all addresses", o.BindAddress)
	}
	return nil
}

func (o *Options) rotator() (*servingcert.Rotator, error) {
	return servingcert.New(servingcert.Options{
		Namespace: o.Namespace, SecretName: secretName,
		DNSNames: servingcert.ServiceNames(o.Service, o.Namespace),
		Lifetime: o.CertLifetime,
		Targets:  []servingcert.Target{servingcert.MutatingWebhooks(configurationName)},
	})
}
